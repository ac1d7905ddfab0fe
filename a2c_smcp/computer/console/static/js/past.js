// The calls that are over as one list without gaps, newest first. Pure.
import { MOST_ENDED } from "./state.js";

/** How many calls that are over a snapshot has at the most; a page with fewer of them has them all. */
export const EARLIER = 100;

/** The newest calls, and behind them what the list had already, as long as nothing is missing in between. */
export function joined(first, list) {
  const last = first.calls.at(-1);
  const at = last ? list.calls.findIndex((call) => call.id === last.id) : -1;
  if (at < 0) return { calls: first.calls, more: first.more };
  return { calls: [...first.calls, ...list.calls.slice(at + 1)].slice(0, MOST_ENDED), more: list.more };
}

// The ended calls as one list without gaps, newest first. Pure.
import { MOST_ENDED } from "./state.js";

/** A snapshot has at most so many ended calls; a page with fewer has all of them. */
export const EARLIER = 100;

/** The newest calls, followed by those of the list, if nothing is missing in between. */
export function joined(first, list) {
  const last = first.calls.at(-1);
  const at = last ? list.calls.findIndex((call) => call.id === last.id) : -1;
  if (at < 0) return { calls: first.calls, more: first.more };
  return { calls: [...first.calls, ...list.calls.slice(at + 1)].slice(0, MOST_ENDED), more: list.more };
}

// The ended calls as one list without gaps, newest first. Pure.
import { MOST_ENDED } from "./state.js";

/** A snapshot has at most so many ended calls; a page with fewer has all of them. */
export const EARLIER = 100;

/** The newest calls, followed by those of the list, if nothing is missing in between. */
export function joined(first, list) {
  const last = first.calls.at(-1);
  const at = last ? list.calls.findIndex((call) => call.id === last.id) : -1;
  if (at < 0 && first.calls.length < EARLIER && list.calls[0]?.recorded) {
    // These are the first calls of this run, so those that the page knows from the record follow without a gap.
    const newer = new Set(first.calls.map((call) => call.id));
    return { calls: [...first.calls, ...list.calls.filter((call) => !newer.has(call.id))].slice(0, MOST_ENDED), more: list.more };
  }
  if (at < 0) return { calls: first.calls, more: first.more };
  return { calls: [...first.calls, ...list.calls.slice(at + 1)].slice(0, MOST_ENDED), more: list.more };
}

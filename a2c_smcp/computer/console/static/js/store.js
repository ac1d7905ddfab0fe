// The state of this tab. Components follow a part of it. Many messages in a short time are drawn once.
import { useEffect, useRedraw, useRef } from "./html.js";
import { EMPTY } from "./state.js";

// `status` is that of the way to the computer, since `statusSince`; `retryAt` is when it is tried again, null for now.
let state = { ...EMPTY, status: "connecting", statusSince: Date.now() / 1000, retryAt: null };
const subscribers = new Set();
let drawing = false;

export function current() {
  return state;
}

export function change(next) {
  state = { ...state, ...next };
  if (drawing) return;
  drawing = true;
  // Not requestAnimationFrame: a tab in the background draws no frames, but its title must change.
  setTimeout(() => {
    drawing = false;
    for (const told of [...subscribers]) told();
  }, 16);
}

/** A part of the state; the component is drawn again when that part is another value. */
export function useStore(select) {
  const draw = useRedraw();
  const latest = useRef();
  latest.current = { select, value: select(state) };
  useEffect(() => {
    const told = () => {
      if (latest.current.select(state) !== latest.current.value) draw();
    };
    subscribers.add(told);
    told();
    return () => subscribers.delete(told);
  }, []);
  return latest.current.value;
}

/** The computer's clock, in seconds: deadlines are times of the computer. */
export function serverNow() {
  return Date.now() / 1000 + state.skew;
}

export function forgetDecision(id) {
  change({ pending: state.pending.filter((decision) => decision.id !== id) });
}

export function forgetNotice(id) {
  change({ notices: state.notices.filter((notice) => notice.id !== id) });
}

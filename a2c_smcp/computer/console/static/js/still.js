// Lists that do not move under the pointer, and buttons that do not take a click that was meant for something else.
import { useCallback, useEffect, useReducer, useRef, useState } from "./html.js";

/** How long a new decision takes no answer, in milliseconds. */
export const DEAF = 500;

/** Whether the pointer, or the focus, is inside an element: `[isInside, propsForTheElement]`. */
export function useInside() {
  const [inside, setInside] = useState(0);
  const set = (bit, on) => setInside((before) => (on ? before | bit : before & ~bit));
  const props = {
    onPointerEnter: (event) => event.pointerType === "mouse" && set(1, true),
    onPointerLeave: () => set(1, false),
    onFocusIn: (event) => event.target.matches(":focus-visible") && set(2, true),
    onFocusOut: () => set(2, false),
  };
  return [inside !== 0, props];
}

/**
 * Items in the order of their first showing. New ones come last. One that goes stays, marked `gone`, as long as `held`:
 * what is below it must not jump up while somebody is about to press a button there.
 */
export function useStill(items, held) {
  const shown = useRef([]);
  const next = new Map(items.map((item) => [item.id, item]));
  const known = new Set(shown.current.map(({ item }) => item.id));
  shown.current = [
    ...shown.current
      .map(({ item }) => (next.has(item.id) ? { item: next.get(item.id), gone: false } : { item, gone: true }))
      .filter(({ gone }) => !gone || held),
    ...items.filter((item) => !known.has(item.id)).map((item) => ({ item, gone: false })),
  ];
  return shown.current;
}

/**
 * Whether a button listens: not in the half second after it appeared, moved, or its page came to the front.
 * `[listens, guard]`: `guard(handler)` drops clicks that no person made or that came too early.
 */
export function useDeaf(element, place) {
  const from = useRef(performance.now() + DEAF);
  const [, draw] = useReducer((count) => count + 1, 0);
  const deafen = useCallback(() => {
    from.current = performance.now() + DEAF;
    draw();
  }, []);
  useEffect(() => {
    const seen = () => document.visibilityState === "visible" && deafen();
    const watch = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && deafen(), {
      threshold: 0.2,
    });
    if (element.current) watch.observe(element.current);
    window.addEventListener("focus", deafen);
    document.addEventListener("visibilitychange", seen);
    return () => {
      watch.disconnect();
      window.removeEventListener("focus", deafen);
      document.removeEventListener("visibilitychange", seen);
    };
  }, []);
  useEffect(deafen, [place]);
  const left = from.current - performance.now();
  useEffect(() => {
    if (left <= 0) return undefined;
    const timer = setTimeout(draw, left + 5);
    return () => clearTimeout(timer);
  });
  const guard = (handler) => (event) => {
    event.preventDefault();
    if (event.isTrusted && performance.now() >= from.current) handler(event);
  };
  return [left <= 0, guard];
}

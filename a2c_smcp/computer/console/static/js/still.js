// Lists that do not move under the pointer. steady.js is for what moves nevertheless.
import { useRef, useState } from "./html.js";

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

/** Whether the pointer is at an element: `[isAt, propsForTheElement]`. */
export function usePointerAt() {
  const [at, setAt] = useState(false);
  return [at, { onPointerEnter: (event) => setAt(event.pointerType === "mouse"), onPointerLeave: () => setAt(false) }];
}

/**
 * Items in the order in which they first appeared; new ones come last. While `held`, an item that goes stays and is marked
 * `gone`: what is below it must not jump up while somebody is about to press a button there.
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

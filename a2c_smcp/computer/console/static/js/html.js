// Preact with htm: components without a build step. Everything that a component shows is text, never markup.
import { h } from "preact";
import htm from "htm";
import { useEffect, useReducer } from "preact/hooks";

export { createContext, render } from "preact";
export { useContext, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
export const html = htm.bind(h);

/** Calls `handler` for these events of `target` while the component is there; `keys` are what the handler depends on. */
export function useListener(target, types, handler, keys = []) {
  useEffect(() => {
    for (const type of types) target.addEventListener(type, handler);
    return () => types.forEach((type) => target.removeEventListener(type, handler));
  }, keys);
}

/** A function that draws the component again. */
export function useRedraw() {
  const [, draw] = useReducer((count) => count + 1, 0);
  return draw;
}

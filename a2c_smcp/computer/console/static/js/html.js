// Preact with htm: components without a build step. Everything that a component shows is text, never markup.
import { h } from "preact";
import htm from "htm";
import { useReducer } from "preact/hooks";

export { createContext, render } from "preact";
export { useCallback, useContext, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
export const html = htm.bind(h);

/** A function that draws the component again. */
export function useRedraw() {
  const [, draw] = useReducer((count) => count + 1, 0);
  return draw;
}

// Preact with htm: components without a build step. Everything that a component shows is text, never markup.
import { h } from "preact";
import htm from "htm";

export { createContext, render } from "preact";
export { useCallback, useContext, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
export const html = htm.bind(h);

// Preact with htm: components without a build step. Everything that a component shows is text, never markup.
import { h } from "preact";
import htm from "htm";

export { render } from "preact";
export { useCallback, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
export const html = htm.bind(h);

// Which view is shown: the fragment `#/tools/greet` means the view "tools" with the rest ["greet"].
import { useListener, useState } from "./html.js";

export const VIEWS = ["decisions", "calls", "servers", "tools", "rules", "desktop", "finder", "office"];

function read() {
  const [view, ...rest] = location.hash.replace(/^#\/?/, "").split("/").map(decoded);
  return VIEWS.includes(view) ? { view, rest } : { view: "calls", rest: [] };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}

export function path(view, ...rest) {
  return `#/${[view, ...rest].map(encodeURIComponent).join("/")}`;
}

export function go(view, ...rest) {
  location.hash = path(view, ...rest);
}

export function useRoute() {
  const [route, setRoute] = useState(read);
  useListener(window, ["hashchange"], () => setRoute(read()));
  return route;
}

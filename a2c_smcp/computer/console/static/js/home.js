// What a page may change about its computer: the config file that gets new servers, and where the office is.
import { get } from "./api.js";
import { useLoaded } from "./parts.js";

/** `{ file, office_url }`, each null if it cannot be changed; null until the computer has answered. */
export function useHome() {
  return useLoaded((signal) => get("home", {}, signal), []).value;
}

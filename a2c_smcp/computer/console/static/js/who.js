// The name of the place where somebody decided: this browser, the terminal, or another device.
import { t } from "./i18n.js";
import { deviceName } from "./session.js";

const OURS = ["browser", "terminal", "callback", "inputs", "rule"];

export function who(by) {
  if (!by) return "";
  if (by === deviceName()) return t("who.here");
  return OURS.includes(by) ? t(`who.${by}`) : `“${shownName(by)}”`;
}

/** The name of a browser, in the reader's language: the computer makes it of known words, such as “Chrome on Linux (2)”. */
export function shownName(name) {
  const [, browser, system, number = ""] = /^(.+?)(?: on ([A-Za-z]+))?( \(\d+\))?$/.exec(name) ?? [null, name];
  const known = browser === "Unknown browser" ? t("who.unknown") : browser;
  return (system ? t("who.on", { browser: known, system }) : known) + number;
}

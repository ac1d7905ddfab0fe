// How the place is called where somebody decided: this browser, the terminal, or another device by its name.
import { t } from "./i18n.js";
import { deviceName } from "./session.js";

const OURS = ["browser", "terminal", "callback", "inputs"];

export function who(by) {
  if (!by) return "";
  if (by === deviceName()) return t("who.here");
  return OURS.includes(by) ? t(`who.${by}`) : `“${by}”`;
}

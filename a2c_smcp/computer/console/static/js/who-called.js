// A call in one line: the tool, its server, who called it, and with what.
import { html } from "./html.js";
import { t } from "./i18n.js";

export function Who({ call }) {
  return html`<span class="who"><b class="mono">${call.tool}</b> <span class="muted">${call.server ?? ""} · ${call.agent ?? t("calls.you")}</span></span>`;
}

export function oneLine(text) {
  return text.replace(/\s*\n\s*/g, " ");
}

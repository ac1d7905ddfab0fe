// A call in one line: the tool, its server, who called it, and with what.
import { html } from "./html.js";
import { t } from "./i18n.js";

export function Who({ call }) {
  // An agent chooses its name: "you" in a frame is not the person.
  const agent = call.agent === null ? t("calls.you") : html`<bdi class="given">${call.agent}</bdi>`;
  return html`<span class="who"><b class="mono">${call.tool}</b> <span class="muted">${call.server ?? ""} · ${agent}</span></span>`;
}

export function oneLine(text) {
  return text.replace(/\s*\n\s*/g, " ");
}

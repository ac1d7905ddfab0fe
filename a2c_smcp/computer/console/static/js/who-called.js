// A call in one line: the tool, its server, who called it, and with what.
import { html } from "./html.js";
import { t } from "./i18n.js";

export function Who({ call }) {
  // An agent chooses its name: "you" in a frame is not the person.
  const given = html`<bdi class="given">${call.agent}</bdi>`;
  const agent = call.agent === null ? t("calls.you") : call.claimed ? html`${t("calls.claimed")} ${given}` : given;
  return html`<span class="who"><b class="mono">${call.tool}</b> <span class="muted">${call.server ?? ""} · ${agent}</span></span>`;
}

/** The agent of a call on a card, for texts: an agent may say that it is anybody. `name` makes what it says harmless. */
export function agentOf(call, name = (text) => text) {
  if (!call.agent) return t("decisions.noagent");
  return call.claimed ? t("decisions.agent.says", { agent: name(call.agent.text) }) : name(call.agent.text);
}

export function oneLine(text) {
  return text.replace(/\s*\n\s*/g, " ");
}

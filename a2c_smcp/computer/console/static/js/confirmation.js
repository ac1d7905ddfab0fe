// May this call run? Who asks for which tool, what the server says about it, and the exact arguments.
import { post } from "./api.js";
import { Arguments } from "./arguments.js";
import { html, useState } from "./html.js";
import { listed, moment, t } from "./i18n.js";
import { Icon } from "./icons.js";
import { Chip, Problem, useAction } from "./parts.js";
import { RuleProposal } from "./rule-proposal.js";
import { SteadyButton } from "./steady.js";
import { agentOf } from "./who-called.js";
import { Name, Said, Words } from "./words.js";

const HINTS = { destructiveHint: "bad", openWorldHint: "warn", readOnlyHint: "ok" };

export function Confirmation({ decision, open, folded, ready, answer }) {
  const { call, tool } = decision;
  const [seen, setSeen] = useState(false);
  const [unread, setUnread] = useState({ lines: 0, names: [] });
  if (folded) return html`<h3><${Name} of=${call.tool} /></h3>`;
  return html`<div>
    <p class="asks"><span class="avatar" aria-hidden="true"><${Icon} name="decisions" /></span>${t(decision.reads ? "decisions.asks.read" : "decisions.asks")}</p>
    <h3><${Name} of=${call.tool} /></h3>
    ${tool.dangerous ? html`<p class="danger-sign">${t(tool.hints.destructiveHint ? "decisions.destructive" : "decisions.marked")}</p>` : null}
    <${Changed} decision=${decision} />
    <${Facts} decision=${decision} />
    <${About} call=${call} tool=${tool} />
    <h4>${t("decisions.arguments")}</h4>
    <${Arguments} decision=${decision} onSeen=${() => setSeen(true)} onUnread=${setUnread} />
    ${open ? html`<${Buttons} decision=${decision} ready=${ready} unread=${seen ? null : unread} answer=${answer} />` : null}
  </div>`;
}

/** A tool for which there is a rule, and that is another one now: what has changed, word by word. */
function Changed({ decision: { before, difference } }) {
  if (!before) return null;
  if (!difference.length) return html`<p class="danger-sign">${t("decisions.rugpull.unknown")}</p>`;
  return html`<div class="danger-sign">
    <p>${t("decisions.rugpull", { parts: listed(difference.map(({ part }) => t(`decisions.part.${part}`))) })}</p>
    <dl class="difference">
      ${difference.map(({ part, changes, cut }) => html`<div key=${part}><dt>${t(`decisions.part.${part}`)}</dt><dd>${changes.map(([kind, words], at) => html`<${ChangedWords} key=${at} kind=${kind} words=${words} />`)}${cut ? html`<b class="cut"> ${t("decisions.cut.difference", { characters: cut })}</b>` : null}</dd></div>`)}
    </dl>
  </div>`;
}

function ChangedWords({ kind, words }) {
  const said = html`<${Words} of=${words} />`;
  if (kind === "same") return said;
  return kind === "gone" ? html`<del>${said}</del>` : html`<ins>${said}</ins>`;
}

function Facts({ decision: { call, asked_at } }) {
  const asked = moment(asked_at);
  return html`<dl class="asked">
    <div><dt>${t(call.claimed ? "decisions.agent.claimed" : "decisions.agent")}</dt><dd>${call.agent ? html`<${Name} of=${call.agent} />` : t("decisions.noagent")}${call.claimed ? html`<p class="muted hint">${t("decisions.agent.hint")}</p>` : null}</dd></div>
    ${call.agent_key ? html`<div><dt>${t("decisions.agent.key")}</dt><dd><${Name} of=${call.agent_key} /></dd></div>` : null}
    ${call.office ? html`<div><dt>${t("decisions.office")}</dt><dd><${Name} of=${call.office} /></dd></div>` : null}
    <div><dt>${t("decisions.server")}</dt><dd><${Name} of=${call.server} /></dd></div>
    ${call.shown_as ? html`<div><dt>${t("decisions.shownas")}</dt><dd><${Name} of=${call.shown_as} /></dd></div>` : null}
    <div><dt>${t("decisions.since")}</dt><dd><time datetime=${asked.iso} title=${asked.full}>${asked.short}</time></dd></div>
  </dl>`;
}

function About({ call, tool, caption }) {
  const hints = Object.entries(HINTS).filter(([hint]) => tool.hints[hint] === true);
  const says = tool.title || tool.description.join("") || hints.length;
  if (!says) return html`<p class="muted">${t("decisions.undescribed")}</p>`;
  return html`<${Said} by=${call.server} caption=${caption}>
    ${tool.title ? html`<p><b><${Words} of=${tool.title} /></b></p>` : null}
    <div class="description" tabindex="0" role="group" aria-label=${t("decisions.description")}><${Words} of=${tool.description} />${tool.description_cut ? html`<b class="cut"> ${t("decisions.cut.description", { characters: tool.description_cut })}</b>` : null}</div>
    ${hints.length ? html`<p class="hints">${hints.map(([hint, tone]) => html`<${Chip} key=${hint} tone=${tone}>${t(`hint.${hint}`)}<//>`)}</p>` : null}
  <//>`;
}

/** What is still to be read before the call can be allowed. The line keeps its place, so that no button moves. */
function Unread({ id, unread }) {
  const names = unread?.names ?? [];
  const shown = names.slice(0, 2).map((name, at) => html` <span key=${at} class="given mono"><${Words} of=${name} /></span>`);
  const said = unread === null ? "\u00a0" : unread.lines ? t("decisions.unread", { count: unread.lines }) : t("decisions.unread.end");
  return html`<p id=${id} class="muted hint unread">${said}${unread?.lines ? shown : null}${names.length > 2 && unread.lines ? " …" : ""}</p>`;
}

function Buttons({ decision, ready, unread, answer }) {
  const { call, tool } = decision;
  const [reason, setReason] = useState("");
  const names = { tool: call.tool.text, server: call.server.text, agent: agentOf(call) };
  const id = `reason-${decision.id}`;
  const why = `unread-${decision.id}`;
  const allow = { ready: ready && unread === null, title: unread ? t("decisions.unseen") : null, "aria-describedby": unread ? why : null };
  const refuse = (how) => answer({ answer: how, ...(reason.trim() ? { reason: reason.trim() } : {}) });
  return html`<div>
    <div class="field why-not"><label for=${id} class="muted">${t("decisions.reason")}</label>
      <input id=${id} type="text" maxlength="1000" autocomplete="off" value=${reason} onInput=${(event) => setReason(event.currentTarget.value)} /></div>
    <div class="actions">
      <${SteadyButton} ...${allow} data-answer="yes" class=${tool.dangerous ? "" : "primary"} aria-label=${t("decisions.yes.name", names)} onAnswer=${() => answer({ answer: "yes" })}>${t("decisions.yes")}<//>
      <${SteadyButton} ready=${ready} data-answer="no" class="danger" aria-label=${t("decisions.no.name", names)} onAnswer=${() => refuse("no")}>${t("decisions.no")}<//>
    </div>
    <${Unread} id=${why} unread=${unread} />
    <div class="always">
      <${RuleProposal} ...${{ decision, allow, names, answer }} />
      <${SteadyButton} ...${allow} data-answer="always" class="quiet small" aria-label=${t("decisions.always.name", names)} onAnswer=${() => answer({ answer: "always" })}>${t("decisions.always")}<//>
      <${SteadyButton} ready=${ready} data-answer="never" class="quiet small" aria-label=${t("decisions.never.name", names)} onAnswer=${() => refuse("never")}>${t("decisions.never")}<//>
    </div>
  </div>`;
}

/** Undoes the rule that was made on this card. */
export function UndoRule({ decision }) {
  const { call, decided } = decision;
  const [done, setDone] = useState(false);
  const [undo, busy, error] = useAction(async () => {
    await post("undo-rule", { id: decided.rule });
    setDone(true);
  });
  const tool = call.tool.text;
  if (done) return html`<p class="muted" role="status">${t("decisions.undone", { tool })}</p>`;
  return html`<${SteadyButton} ready=${!busy} class="small" data-answer="undo" aria-label=${t("decisions.undo.name", { tool })} onAnswer=${() => undo()}>${t("decisions.undo")}<//><${Problem} text=${error} />`;
}

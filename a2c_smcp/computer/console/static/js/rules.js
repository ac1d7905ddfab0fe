// The rules, in the order in which they decide: how often each decided, and when last. One click undoes a rule.
import { post } from "./api.js";
import { html } from "./html.js";
import { moment, t } from "./i18n.js";
import { Chip, Problem, useAction } from "./parts.js";
import { phrase } from "./rule-words.js";

const TONES = { allow: "ok", ask: "warn", deny: "bad" };

export function Rules({ rules, file, problem, onChange }) {
  const [undo, busy, error] = useAction(async (id) => {
    await post("undo-rule", { id });
    onChange();
  });
  if (!rules.length && !problem) return null;
  return html`<section class="rules" aria-label=${t("rules.title")}>
    <h2>${t("rules.title")}</h2>
    ${problem ? html`<p class="danger-sign" role="alert">${t("rules.problem", { problem })}</p>` : null}
    ${file ? html`<p class="muted hint">${t("rules.file", { file })}</p>` : null}
    <ol>
      ${rules.map((rule) => html`<li key=${rule.id} data-rule=${rule.id}><${Rule} rule=${rule} busy=${busy} onUndo=${() => undo(rule.id)} /></li>`)}
    </ol>
    <${Problem} text=${error} />
  </section>`;
}

function Rule({ rule, busy, onUndo }) {
  const last = rule.last === null ? null : moment(rule.last);
  return html`<div>
    <p><${Chip} tone=${TONES[rule.effect]}>${t(`rule.${rule.effect}`)}<//> ${rule.phrases.map(phrase).join(t("rule.and"))}</p>
    ${rule.asleep ? html`<p class="danger-sign">${t("rules.asleep")}</p>` : null}
    ${rule.reason ? html`<p class="muted">${t("decisions.was.reason", { reason: rule.reason })}</p>` : null}
    <p class="line muted">
      <span>${last ? html`${t("rules.matched", { count: rule.matched })} <time datetime=${last.iso} title=${last.full}>${last.short}</time>` : t("rules.unmatched")}</span><span class="grow"></span>
      ${rule.source === "config" ? html`<span>${t("rules.config")}</span>` : html`<button type="button" class="small quiet" disabled=${busy} aria-label=${t("rules.undo.name", { rule: rule.phrases.map(phrase).join(t("rule.and")) })} onClick=${onUndo}>${t("rules.undo")}</button>`}
    </p>
  </div>`;
}

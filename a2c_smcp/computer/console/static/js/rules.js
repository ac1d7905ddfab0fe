// The rules, in the order in which they decide: what each says, who made it, how often it decided. They are written, edited,
// moved, undone and tested here.
import { get, post } from "./api.js";
import { html, useState } from "./html.js";
import { duration, moment, t } from "./i18n.js";
import { Chip, Empty, Loading, Problem, useAction, useLoaded, useTick } from "./parts.js";
import { RuleEditor } from "./rule-editor.js";
import { RuleTest } from "./rule-test.js";
import { phrase } from "./rule-words.js";
import { SteadyButton } from "./steady.js";
import { serverNow, useStore } from "./store.js";
import { who } from "./who.js";

const TONES = { allow: "ok", ask: "warn", deny: "bad" };

/** All rules as the computer has them, and `load` to read them again. */
export function useRules() {
  const stamp = useStore((state) => state.stamps.tools);
  const [round, setRound] = useState(0);
  const found = useLoaded((signal) => get("rules", {}, signal), [stamp, round], 300);
  return { ...found, load: () => setRound((before) => before + 1) };
}

export function Rules() {
  const { value, error, loading, load } = useRules();
  const [writing, setWriting] = useState(null); // the id of the rule that is edited, or "" for a new one
  const [change, busy, wrong] = useAction(async (path, body) => {
    await post(path, body);
    load();
  });
  if (loading) return html`<${Loading} />`;
  const { rules = [], file = null, problem = "", gone = 0 } = value ?? {};
  const own = rules.filter((rule) => rule.source !== "config");
  const done = () => (setWriting(null), load());
  return html`<section class="rules" aria-label=${t("rules.title")}>
      <p class="muted">${file ? t("rules.file", { file }) : t("rules.nofile")}</p>
      <${Problem} text=${error ?? wrong} />
      ${problem ? html`<p class="danger-sign" role="alert">${t("rules.problem", { problem })}</p>` : null}
      ${gone ? html`<p class="danger-sign" role="alert">${t("rules.gone", { count: gone })}</p>` : null}
      ${writing === "" ? html`<${RuleEditor} onDone=${done} onClose=${() => setWriting(null)} />` : html`<p><button type="button" data-open="rule" onClick=${() => setWriting("")}>${t("rules.write")}</button></p>`}
      ${rules.length ? null : html`<${Empty} icon="rules" title=${t("rules.none")} />`}
      <ol>
        ${rules.map((rule) => html`<li key=${rule.id} class="card" data-rule=${rule.id}>
          <${Rule} rule=${rule} at=${own.indexOf(rule)} count=${own.length} busy=${busy} change=${change} onEdit=${() => setWriting(rule.id)} />
          ${writing === rule.id ? html`<${RuleEditor} rule=${rule} onDone=${done} onClose=${() => setWriting(null)} />` : null}
        </li>`)}
      </ol>
    </section>
    <${RuleTest} />`;
}

export function RuleWords({ rule }) {
  return html`<${Chip} tone=${TONES[rule.effect]}>${t(`rule.${rule.says}`)}<//> ${wordsOf(rule)}`;
}

function wordsOf({ phrases }) {
  return phrases.map(phrase).join(t("rule.and"));
}

function Rule({ rule, at, count, busy, change, onEdit }) {
  const last = rule.last === null ? null : moment(rule.last);
  const named = { rule: wordsOf(rule) };
  const { id } = rule;
  return html`<div>
    <p><${RuleWords} rule=${rule} /></p>
    ${rule.asleep ? html`<p class="danger-sign">${t("rules.asleep")}</p>` : null}
    ${rule.expires === null ? null : html`<${Left} until=${rule.expires} />`}
    ${rule.reason ? html`<p class="muted">${t("decisions.was.reason", { reason: rule.reason })}</p>` : null}
    <p class="muted"><${Made} rule=${rule} /> · ${last ? html`${t("rules.matched", { count: rule.matched })} <time datetime=${last.iso} title=${last.full}>${last.short}</time>` : t("rules.unmatched")}</p>
    ${rule.source === "config"
      ? null
      : html`<p class="line">
          <${SteadyButton} class="small" ready=${!busy && at > 0} aria-label=${t("rules.up.name", named)} onAnswer=${() => change("move-rule", { id, up: true })}>${t("rules.up")}<//>
          <${SteadyButton} class="small" ready=${!busy && at < count - 1} aria-label=${t("rules.down.name", named)} onAnswer=${() => change("move-rule", { id })}>${t("rules.down")}<//>
          ${rule.text ? html`<button type="button" class="small" disabled=${busy} aria-label=${t("rules.edit.name", named)} onClick=${onEdit}>${t("rules.edit")}</button>` : null}
          <${SteadyButton} class="small danger" data-answer="undo-rule" ready=${!busy} aria-label=${t("rules.undo.name", named)} onAnswer=${() => change("undo-rule", { id })}>${t("rules.undo")}<//>
        </p>`}
  </div>`;
}

/** Who made a rule, as the comment above it in the file says. */
function Made({ rule: { source, made, comment } }) {
  if (source === "config") return html`<span>${t("rules.config")}</span>`;
  const said = made ? t("rules.made", { when: made.at, by: who(made.by) }) : t("rules.byhand");
  return html`<span>${said}${comment ? html` <q>${comment}</q>` : null}</span>`;
}

function Left({ until }) {
  useTick(1000);
  const left = until - serverNow();
  return html`<p class="muted">${left > 0 ? t("rules.left", { time: duration(left) }) : t("rules.over")}</p>`;
}

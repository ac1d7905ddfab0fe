// Writes a rule, or edits one, as it stands in the file. When the typing pauses the page says it in words, or what is wrong,
// and what it would have decided of past calls.
import { post } from "./api.js";
import { useChecked } from "./checked.js";
import { html, useState } from "./html.js";
import { moment, t } from "./i18n.js";
import { Chip, Problem, useAction } from "./parts.js";
import { phrase } from "./rule-words.js";
import { SteadyButton } from "./steady.js";

const FIRST_TEXT = 'effect = "ask"\ntool = "*"\n';

export function RuleEditor({ rule = null, onDone, onClose }) {
  const [text, setText] = useState(rule?.text ?? FIRST_TEXT);
  const [hour, setHour] = useState(false);
  const [first, setFirst] = useState(false);
  const body = { text, hour, ...(rule ? { replaces: rule.id, was: rule.text } : { first }) };
  const checked = useChecked("check-rule", text.trim() ? body : null);
  const [save, busy, error] = useAction(async () => {
    await post("save-rule", body);
    onDone();
  });
  const ready = Boolean(checked && !checked.problems.length && !busy);
  const submit = (event) => {
    event.preventDefault();
    if (ready && event.isTrusted) save();
  };
  const id = `rule-${rule?.id ?? "new"}`;
  const box = (set) => (event) => set(event.currentTarget.checked);
  return html`<form class=${`editor rule-editor ${rule ? "" : "card"}`} aria-label=${t("rules.write")} onSubmit=${submit} autocomplete="off">
    <div class="field">
      <label for=${id}>${t("rules.text")}</label>
      <textarea id=${id} class="mono entry" rows="6" spellcheck="false" autocapitalize="off" value=${text} readonly=${busy} aria-describedby=${`${id}-found`}
        aria-invalid=${Boolean(checked?.problems.length)} onInput=${(event) => setText(event.currentTarget.value)}></textarea>
      <div id=${`${id}-found`} role="status"><${Found} checked=${checked} /></div>
    </div>
    <label class="check"><input type="checkbox" checked=${hour} onChange=${box(setHour)} />${t("rules.hour")}</label>
    ${rule ? null : html`<label class="check"><input type="checkbox" checked=${first} onChange=${box(setFirst)} />${t("rules.first")}</label>`}
    <${Problem} text=${error} />
    <div class="actions">
      <${SteadyButton} type="submit" class="primary" data-answer="save-rule" ready=${ready}>${t("rules.save")}<//>
      <button type="button" class="quiet" onClick=${onClose}>${t("servers.close")}</button>
    </div>
  </form>`;
}

function Found({ checked }) {
  if (!checked) return null;
  if (checked.problems.length) return html`<ul class="checked">${checked.problems.map((problem) => html`<li key=${problem} class="problem">${problem}</li>`)}</ul>`;
  const { calls: count, found, past } = checked;
  return html`<ul class="checked">
      <li>${t(`rule.${checked.says}`)} ${checked.phrases.map(phrase).join(t("rule.and"))}</li>
      ${checked.warnings.map((warning) => html`<li key=${warning} class="reason">${warning}</li>`)}
      <li>${found ? t("rules.past", { count, found }) : t("rules.past.none", { count })}</li>
    </ul>
    ${past.length ? html`<ul class="past">${past.map((call, at) => html`<${PastCall} key=${at} call=${call} />`)}</ul>` : null}`;
}

function PastCall({ call }) {
  const { short, full, iso } = moment(call.at);
  return html`<li><time class="muted mono" datetime=${iso} title=${full}>${short}</time> <b class="mono">${call.tool}</b> <bdi class="given">${call.agent ?? t("calls.you")}</bdi>
    <${Chip}>${effectOf(call.before)}<//> → <${Chip}>${effectOf(call.after)}<//> <span class="muted mono preview">${call.arguments}</span></li>`;
}

/** What becomes of a call by a verdict; null means that no rule decides. */
export function effectOf(verdict) {
  return t(`rules.effect.${verdict?.effect ?? "none"}`);
}

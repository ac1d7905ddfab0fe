// One call that is over: what became of it, by whom, with what, and its result.
import { get } from "./api.js";
import { html } from "./html.js";
import { t } from "./i18n.js";
import { Block, Chip, Loading, Problem, useLoaded } from "./parts.js";
import { who } from "./who.js";

const TONES = { succeeded: "ok", failed: "bad", refused: "bad", timed_out: "bad" };

export function toneOf(call) {
  return TONES[call.outcome] ?? "warn";
}

/** What became of it, and who decided that, if somebody did. */
export function OutcomeOf({ call }) {
  return html`<${Chip} tone=${toneOf(call)}>${outcomeText(call)}<//>
    ${call.verdict === "allowed" ? html`<span class="muted">${t("calls.by.allowed", { by: who(call.decided_by) })}</span>` : null}`;
}

function outcomeText(call) {
  if (call.verdict === "refused") return t("calls.by.refused", { by: who(call.decided_by) });
  if (call.verdict === "cancelled") return t("calls.by.cancelled", { by: who(call.decided_by) });
  return t(`calls.was.${call.outcome}`);
}

/** The arguments and the result, whole; `level` is that of its headings. */
export function CallDetails({ call, level }) {
  const { value, error, loading } = useLoaded((signal) => get("result", { id: call.id }, signal), [call.id]);
  if (loading) return html`<${Loading} />`;
  const whole = value ?? { ...call, content: call.text ? [{ type: "text", text: call.text }] : [], structured: null };
  const heading = `h${level}`;
  return html`<div class="details" role="group" aria-label=${t("calls.details", { tool: call.tool })}>
    <${heading}>${t("calls.arguments")}<//>
    <${Block} text=${whole.arguments} label=${t("calls.arguments")} copy=${true} />
    <${heading}>${t("calls.result")}<//>
    <${Content} content=${whole.content} />
    ${whole.structured ? html`<${heading}>${t("calls.structured")}<//><${Block} text=${whole.structured} label=${t("calls.structured")} copy=${true} />` : null}
    <${Problem} text=${error} />
  </div>`;
}

function Content({ content }) {
  if (!content.length) return html`<p class="muted">${t("calls.noresult")}</p>`;
  return content.map((item, at) => html`<${Item} key=${at} item=${item} />`);
}

function Item({ item }) {
  if (item.type === "image") return html`<img class="result" src=${item.url} alt=${t("calls.image")} />`;
  if (item.type === "text") {
    return html`<div>${item.title ? html`<p class="muted mono">${item.title}</p>` : null}<${Block} text=${item.text} label=${t("calls.result")} copy=${true} /></div>`;
  }
  return html`<p><${Chip}>${item.text} ${item.title}<//></p>`;
}

// One call that is over: what became of it, by whom, with what, and its result.
import { get } from "./api.js";
import { html } from "./html.js";
import { moment, t } from "./i18n.js";
import { Block, Chip, Loading, Problem, useLoaded } from "./parts.js";
import { useStore } from "./store.js";
import { who } from "./who.js";

const TONES = { succeeded: "ok", failed: "bad", refused: "bad", timed_out: "bad" };

export function toneOf(call) {
  return TONES[call.outcome] ?? "warn";
}

/** What became of it, and who decided that, if somebody did. */
export function OutcomeOf({ call }) {
  return html`<${Chip} tone=${toneOf(call)}>${outcomeText(call)}<//>
    ${call.verdict === "allowed" ? html`<span class="muted">${t("calls.by.allowed", { by: who(call.decided_by) })}</span>` : null}
    ${call.rule && call.outcome !== "refused" ? html`<span class="muted">${t("calls.by.rule", { rule: call.rule })}</span>` : null}`;
}

function outcomeText(call) {
  if (call.verdict === "refused") return t("calls.by.refused", { by: who(call.decided_by) });
  if (call.outcome === "refused" && call.rule) return t("calls.by.rule.refused", { rule: call.rule });
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
    ${whole.recorded && !whole.content.length ? html`<p class="muted">${resultText(whole)}</p>` : html`<${Content} content=${whole.content} />`}
    ${whole.structured ? html`<${heading}>${t("calls.structured")}<//><${Block} text=${whole.structured} label=${t("calls.structured")} copy=${true} />` : null}
    <${Story} call=${call} heading=${heading} />
    <${Problem} text=${error} />
  </div>`;
}

/** What the record knows of a result that it does not have. */
function resultText({ recorded, text }) {
  const kept = t("calls.recorded", { bytes: recorded.bytes ?? "?", digest: recorded.digest?.slice(0, 23) ?? "" });
  if (recorded.reads) return t("calls.recorded.read", { count: recorded.reads });
  return text ? `${text} ${kept}` : kept;
}

/** The steps of a call as the record has them: asked, decided, ended. */
function Story({ call, heading }) {
  const recorded = useStore((state) => state.recorded);
  const { value } = useLoaded((signal) => (recorded ? get("story", { id: call.id }, signal) : null), [call.id, recorded]);
  if (!value?.steps.length) return null;
  return html`<${heading}>${t("calls.story")}<//>
    <ol class="story">${value.steps.map((step) => html`<${Step} key=${step.number} step=${step} />`)}</ol>`;
}

function Step({ step }) {
  const { short, full, iso } = moment(step.at);
  return html`<li><time class="muted mono" datetime=${iso} title=${full}>${short}</time> ${stepText(step)}</li>`;
}

/** One step as a sentence. */
export function stepText({ kind, what, outcome, how, place, rule, reason, always, count }) {
  if (kind === "asked") return t(`calls.step.asked.${what}`);
  if (kind === "decided") {
    const said = t(`calls.step.${outcome}${how === "rule" ? ".rule" : always ? ".always" : ""}`, { by: how === "rule" ? rule ?? "" : who(place) });
    return reason ? `${said} ${reason}` : said;
  }
  if (kind === "read") return `${t("calls.step.read", { count })} · ${t(`calls.was.${outcome}`)}`;
  if (kind === "running") return t("calls.step.running");
  if (kind === "call") return `${t(`calls.was.${outcome}`)} · ${t(`calls.how.${how}`, { by: rule ?? who(place) })}`;
  return kind;
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

// "Allow like this": the narrowest rule that covers a call, in words. The person may widen each part of it.
import { html, useState } from "./html.js";
import { t } from "./i18n.js";
import { phrase } from "./rule-words.js";
import { SteadyButton } from "./steady.js";

export function RuleProposal({ decision, allow, names, answer }) {
  const { proposal } = decision;
  const [open, setOpen] = useState(false);
  const [widths, setWidths] = useState([]);
  if (proposal.none) return proposal.none === "secret" ? html`<p class="muted hint">${t("decisions.like.secret")}</p>` : null;
  const width = (at) => widths[at] ?? 0;
  const widen = (at, to) => setWidths(proposal.parts.map((_, each) => (each === at ? to : width(each))));
  const send = () => answer({ answer: "like", widths: proposal.parts.map((_, at) => width(at)) });
  return html`<div class="like">
    <button type="button" class="quiet small" aria-expanded=${open} data-open="like" aria-label=${t("decisions.like.open.name", names)} onClick=${() => setOpen(!open)}>${t("decisions.like.open")}</button>
    ${open
      ? html`<section class="proposal" aria-label=${t("decisions.like.rule")}>
          <p class="muted hint">${t("decisions.like.rule")}</p>
          <ul>
            ${proposal.fixed.map((each) => html`<li key=${each.key}>${phrase(each)}</li>`)}
            ${proposal.parts.map((part, at) => html`<li key=${`part ${at}`}><${Part} part=${part} width=${width(at)} onWiden=${(to) => widen(at, to)} /></li>`)}
          </ul>
          <${SteadyButton} ...${allow} data-answer="like" class="small" aria-label=${t("decisions.like.name", names)} onAnswer=${send}>${t("decisions.like")}<//>
        </section>`
      : null}
  </div>`;
}

function Part({ part, width, onWiden }) {
  const label = t("decisions.like.part", { name: part.name || t("decisions.agent") });
  const { examples } = part.steps[width];
  return html`<select aria-label=${label} value=${String(width)} onChange=${(event) => onWiden(Number(event.currentTarget.value))}>
    ${part.steps.map((step, at) => html`<option key=${at} value=${String(at)}>${phrase(step)}</option>`)}
    </select>
    ${examples.length ? html`<p class="muted hint examples">${t("decisions.like.also", { values: examples.join(" · ") })}</p>` : null}`;
}

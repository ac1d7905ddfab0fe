// The decisions that wait for the person, always in the same place on a wide screen.
import { post } from "./api.js";
import { DecisionCard } from "./decision-card.js";
import { html, useState } from "./html.js";
import { sentences, t } from "./i18n.js";
import { Empty, Problem, useAction } from "./parts.js";
import { troubles, useStanding } from "./standing.js";
import { SteadyButton } from "./steady.js";
import { useInside, usePointerAt, useStill } from "./still.js";
import { useStore } from "./store.js";

export function Decisions() {
  const pending = useStore((state) => state.pending);
  const [inside, props] = useInside();
  const [at, listProps] = usePointerAt();
  // A decided card stays until the pointer has left, so that no other card jumps into its place.
  const all = useStill(pending, inside);
  const shown = all.slice(0, 30); // a flood of decisions must not stop the page
  const open = pending.filter((decision) => !decision.decided);
  const { isKnown } = useStanding();
  return html`<div class="decisions" ...${props}>
    <div class="cards-head"><h2>${t("decisions.title")}${open.length ? html`<span class="count">${open.length}</span>` : null}</h2>
      <${RefuseAll} calls=${open.filter((decision) => decision.kind === "confirmation")} /></div>
    <p class="visually-hidden" role="status">${open.length ? t("decisions.count", { count: open.length }) : t(isKnown ? "decisions.none" : "decisions.none.known")}</p>
    ${shown.length === 0
      ? html`<${Nothing} isKnown=${isKnown} />`
      : html`<ul class="cards" ...${listProps}>
          ${shown.map(({ item, gone }) => html`<${DecisionCard} key=${item.id} decision=${item} gone=${gone} held=${inside} near=${inside && at} />`)}
        </ul>`}
    ${open.some((decision) => decision.kind === "confirmation") ? html`<p id="about-rules" class="muted hint about-rules">${t("decisions.always.reach")}</p>` : null}
    ${all.length > shown.length ? html`<p class="muted">${t("decisions.more", { count: all.length - shown.length })}</p>` : null}
  </div>`;
}

/** Nothing waits; or, if a way is cut, nothing that this page knows of. */
function Nothing({ isKnown }) {
  const state = useStore((all) => all);
  if (isKnown) return html`<${Empty} icon="decisions" title=${t("decisions.empty")} hint=${t("decisions.empty.hint")} />`;
  return html`<${Empty} icon="decisions" title=${t("decisions.empty.known")} hint=${sentences(troubles(state))} />`;
}

/** Refuses the calls that wait now, after a second click. Calls that come later are not refused. */
function RefuseAll({ calls }) {
  const [chosen, setChosen] = useState(null);
  const [refuse, busy, error] = useAction(async () => {
    await post("refuse-all", { shown: chosen.map(({ id, digest }) => ({ id, digest })) });
    setChosen(null);
  });
  if (chosen) {
    return html`<span class="refuse-all">
      <${SteadyButton} key="yes" data-answer="refuse-these" class="danger small" ready=${!busy} onAnswer=${() => refuse()}>${t("decisions.refuseall.sure", { count: chosen.length })}<//>
      <button type="button" class="small quiet" onClick=${() => setChosen(null)}>${t("decisions.refuseall.not")}</button>
      <${Problem} text=${error} />
    </span>`;
  }
  if (calls.length < 3) return null;
  return html`<span class="refuse-all"><${SteadyButton} key="ask" data-answer="refuse-all" class="small" onAnswer=${() => setChosen(calls)}>${t("decisions.refuseall", { count: calls.length })}<//></span>`;
}

export function usePendingCount() {
  return useStore((state) => state.pending.filter((decision) => !decision.decided).length);
}

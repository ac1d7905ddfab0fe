// The decisions that wait for the person, always in the same place on a wide screen.
import { html } from "./html.js";
import { DecisionCard } from "./decision-card.js";
import { t } from "./i18n.js";
import { Empty } from "./parts.js";
import { useInside, useStill } from "./still.js";
import { useStore } from "./store.js";

export function Decisions({ title = true }) {
  const pending = useStore((state) => state.pending);
  const [inside, props] = useInside();
  // What was decided stays until the pointer has left: nothing may jump into its place.
  const shown = useStill(pending.filter((decision) => !decision.away), inside);
  const open = pending.filter((decision) => !decision.decided).length;
  return html`<div class="decisions" ...${props}>
    ${title ? html`<h2>${t("decisions.title")}${open ? html`<span class="count">${open}</span>` : null}</h2>` : null}
    <p class="visually-hidden" role="status">${open ? t("decisions.count", { count: open }) : t("decisions.none")}</p>
    ${shown.length === 0
      ? html`<${Empty} icon="decisions" title=${t("decisions.empty")} hint=${t("decisions.empty.hint")} />`
      : html`<ul class="cards">
          ${shown.map(({ item, gone }, place) => html`<${DecisionCard} key=${item.id} decision=${item} gone=${gone} place=${place} held=${inside} />`)}
        </ul>`}
  </div>`;
}

export function usePendingCount() {
  return useStore((state) => state.pending.filter((decision) => !decision.decided).length);
}

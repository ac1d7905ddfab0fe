// Calls: the running ones with time, progress and what they wait for; below them the ended ones.
import { post } from "./api.js";
import { Elapsed } from "./elapsed.js";
import { History } from "./history.js";
import { html, useMemo } from "./html.js";
import { t } from "./i18n.js";
import { Chip, Problem, useAction } from "./parts.js";
import { SteadyButton } from "./steady.js";
import { useInside, useStill } from "./still.js";
import { useStore } from "./store.js";
import { VirtualList } from "./virtual.js";
import { oneLine, Who } from "./who-called.js";

export function Calls() {
  return html`<section aria-labelledby="calls-running">
      <h2 id="calls-running">${t("calls.running")}</h2>
      <${RunningCalls} />
    </section>
    <${History} />`;
}

function RunningCalls() {
  const running = useStore((state) => state.running);
  const pending = useStore((state) => state.pending);
  const waits = useMemo(() => waitingCalls(pending), [pending]);
  const [inside, props] = useInside();
  const shown = useStill(running, inside);
  const row = ({ item, gone }, attributes) =>
    html`<${RunningCall} key=${item.id} call=${item} gone=${gone} waits=${waits.get(item.id)} attributes=${attributes} />`;
  // One element for both: the pointer must be seen to leave it, or ended calls would stay for ever.
  return html`<div ...${props}>
    ${shown.length
      ? html`<${VirtualList} class="rows" items=${shown} keyOf=${idOf} estimate=${84} row=${row} />`
      : html`<p class="muted">${t("calls.running.none")}</p>`}
  </div>`;
}

function idOf({ item }) {
  return item.id;
}

/** What each call waits for, by its id: a confirmation, an answer to its question, or "server", if only its server is known. */
function waitingCalls(pending) {
  const waits = new Map();
  for (const { kind, call, calls = [], decided } of pending) {
    if (decided) continue;
    if (call) waits.set(call.id, kind);
    else for (const each of calls) if (!waits.has(each.id)) waits.set(each.id, "server");
  }
  return waits;
}

function RunningCall({ call, gone, waits, attributes }) {
  const [cancel, busy, error] = useAction(() => post("cancel", { id: call.id }));
  // Not `disabled`: the button would lose the focus without a word.
  const deaf = gone || busy;
  const waiting = !gone && waits;
  return html`<li class="row running" data-gone=${gone ? "" : null} ...${attributes}>
    <div class="line">
      <span class=${`dot ${gone ? "" : waiting ? "warn" : "live"}`} aria-hidden="true"></span>
      <${Who} call=${call} />
      ${waiting ? html`<${Chip} tone="warn">${t(`calls.waits.${waits}`)}<//>` : null}
      <span class="grow"></span>
      ${gone ? null : html`<${Elapsed} since=${call.started_at} />`}
      <${SteadyButton} class="danger small" ready=${!deaf} aria-label=${t("calls.cancel.name", { tool: call.tool })} onAnswer=${() => cancel()}>${t("calls.cancel")}<//>
    </div>
    ${call.arguments === "{}" ? null : html`<p class="preview mono">${oneLine(call.arguments)}</p>`}
    ${call.progress ? html`<${Progress} progress=${call.progress} />` : null}
    <${Problem} text=${error} />
  </li>`;
}

export function Progress({ progress }) {
  const { total, message } = progress;
  const done = progress.progress;
  const known = total > 0;
  return html`<div class="progress">
    <progress max=${known ? total : null} value=${known ? done : null} aria-label=${message ?? ""}></progress>
    <span class="muted">${message ?? ""}${known ? ` ${Math.floor((100 * done) / total)} %` : ""}</span>
  </div>`;
}

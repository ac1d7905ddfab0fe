// The arguments of a call: a row for each, with real line breaks. A call can be allowed after the person has seen their end.
import { get } from "./api.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./html.js";
import { t } from "./i18n.js";
import { Problem, useAction } from "./parts.js";
import { Words } from "./words.js";

/**
 * `onSeen` is called once the end of the arguments was visible in the window; until then `onUnread` is called with the
 * number of lines that were not seen yet, and the names of their arguments.
 */
export function Arguments({ decision, onSeen, onUnread }) {
  const box = useRef(null);
  const end = useRef(null);
  const [whole, setWhole] = useState(null);
  const [open, setOpen] = useState(false);
  const [below, setBelow] = useState(0);
  const [wasLong, setWasLong] = useState(false);
  const { rows, cut, hidden } = whole ?? decision;
  const [load, busy, error] = useAction(async (secrets) => {
    const loaded = await get("decision", secrets ? { id: decision.id, secrets: "shown" } : { id: decision.id });
    if (loaded.digest !== decision.digest) throw new Error(t("decisions.changed"));
    setWhole(loaded);
  });
  const look = () => {
    const lines = linesBelow(box.current);
    setBelow(lines);
    if (lines || cut) setWasLong(true);
    onUnread(unreadIn(box.current, lines, rows));
  };
  useLayoutEffect(look, [rows, open]);
  useEffect(() => {
    if (!box.current) return undefined; // there are no arguments
    const watch = new ResizeObserver(look);
    watch.observe(box.current);
    return () => watch.disconnect();
  }, [rows, open]);
  useEffect(() => (cut ? undefined : whenInSight(end.current, onSeen)), [rows]);
  const show = () => {
    setOpen(true);
    if (cut) load(false);
  };
  if (!rows.length) return html`<p class="muted" ref=${end}>${t("decisions.noarguments")}</p>`;
  return html`<div class="arguments">
    <div ref=${box} class=${`box ${open ? "open" : ""}`} tabindex="0" role="group" aria-label=${t("decisions.arguments")} onScroll=${look}>
      <dl>${rows.map((row, at) => html`<${Row} key=${at} row=${row} />`)}</dl>
      <div ref=${end} class="end"></div>
    </div>
    ${hidden ? html`<p class="more"><span>${t("decisions.hidden")}</span> <button type="button" class="small" data-reveal="" disabled=${busy} onClick=${() => load(true)}>${t("decisions.reveal")}</button></p>` : null}
    ${wasLong ? html`<p class="more" role="status"><span>${said(below, cut, rows)}</span> ${open && !cut ? null : html`<button type="button" class="small" disabled=${busy} onClick=${show}>${t("decisions.showall")}</button>`}</p>` : null}
    <${Problem} text=${error} />
  </div>`;
}

function Row({ row }) {
  return html`<div class="argument" data-text=${row.is_text ? "" : null}>
    <dt class="mono"><${Words} of=${row.name} /></dt>
    <dd class="mono"><${Words} of=${row.text} />${row.more ? html`<b class="cut"> ${t("decisions.cut", { lines: row.more_lines, characters: row.more })}</b>` : null}</dd>
  </div>`;
}

/** Calls `seen` once a part of the element is visible in the window. */
function whenInSight(element, seen) {
  const watch = new IntersectionObserver((entries) => {
    // An element that only touches the edge counts as intersecting.
    if (!entries.some((entry) => entry.intersectionRatio > 0)) return;
    watch.disconnect();
    seen();
  });
  watch.observe(element);
  return () => watch.disconnect();
}

function linesBelow(element) {
  if (!element) return 0;
  const hidden = element.scrollHeight - element.scrollTop - element.clientHeight;
  return hidden <= 2 ? 0 : Math.ceil(hidden / (Number.parseFloat(getComputedStyle(element).lineHeight) || 20));
}

/** What is out of sight: lines, and the names of the arguments that they belong to. */
function unreadIn(box, below, rows) {
  if (!box) return { lines: 0, names: [] };
  const bottom = box.getBoundingClientRect().bottom;
  const ends = [...box.querySelectorAll(".argument")].map((each) => each.getBoundingClientRect().bottom);
  const names = rows.filter((row, at) => row.more || (below && ends[at] > bottom + 2)).map((row) => row.name);
  return { lines: withCut(below, rows), names };
}

function withCut(below, rows) {
  return below + rows.reduce((sum, row) => sum + row.more_lines, 0);
}

function said(below, cut, rows) {
  const more = cut ? withCut(below, rows) : below;
  return more ? t("decisions.below", { count: more }) : t("decisions.allseen");
}

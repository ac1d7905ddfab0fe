// Ended calls. The computer searches and filters them: it keeps more calls than the page has.
import { download, get } from "./api.js";
import { CallDetails, OutcomeOf, toneOf } from "./call-details.js";
import { html, useMemo, useRedraw, useRef, useState } from "./html.js";
import { duration, moment, t } from "./i18n.js";
import { Chip, Empty, Loading, Problem, useAction, useLoaded } from "./parts.js";
import { EARLIER, joined } from "./past.js";
import { useInside } from "./still.js";
import { useStore } from "./store.js";
import { VirtualList } from "./virtual.js";
import { oneLine, Who } from "./who-called.js";

const OUTCOMES = ["succeeded", "failed", "cancelled", "refused", "unanswered", "nobody", "timed_out"];
const NOTHING = { calls: [], more: false };
const ALL = { q: "", outcome: "", person: "", day: "", reads: "" };

export function History() {
  const [query, setQuery] = useState(ALL);
  const [inside, props] = useInside();
  const { calls, more, news, loading, error, load } = useCalls(query, inside);
  const [open, setOpen] = useState(new Set());
  const toggle = (id) => setOpen((before) => (before.has(id) ? new Set([...before].filter((each) => each !== id)) : new Set([...before, id])));
  const row = (call, attributes) =>
    html`<${EndedCall} key=${call.id} call=${call} open=${open.has(call.id)} onToggle=${toggle} attributes=${attributes} />`;
  const filtered = isFiltered(query);
  const recorded = useStore((state) => state.recorded);
  return html`<section class="history" aria-labelledby="calls-history">
    <h2><span id="calls-history">${t("calls.history")}</span>${news ? html`<span class="news">${t("calls.new", { count: news })}</span>` : null}</h2>
    ${calls.length || filtered || recorded ? html`<${SearchBar} query=${query} onChange=${setQuery} />` : null}
    <${Problem} text=${error} />
    <div ...${props} aria-busy=${loading}>
      ${calls.length
        ? html`<${VirtualList} class="rows" items=${calls} keyOf=${idOf} estimate=${74} row=${row} />`
        : loading
          ? html`<${Loading} />`
          : html`<${Empty} icon="calls" title=${t(filtered ? "calls.history.nomatch" : "calls.history.none")} />`}
      ${more && !loading ? html`<${Earlier} load=${load} />` : null}
    </div>
  </section>`;
}

function idOf(call) {
  return call.id;
}

function isFiltered(query) {
  return Boolean(query.q.trim() || query.outcome || query.person || query.day || query.reads);
}

/** The query as the computer reads it: a day has its beginning and its end, by the clock of the reader. */
function asked({ day, ...query }) {
  if (!day) return query;
  const [year, month, date] = day.split("-").map(Number);
  const midnight = (days) => new Date(year, month - 1, date + days).getTime() / 1000;
  return { ...query, since: midnight(0), until: midnight(1) };
}

/**
 * The calls that match, newest first, and whether there are `more`, which `load` gets. While `held`, the list stays as
 * it is; `news` counts the calls that it does not show yet.
 */
function useCalls(query, held) {
  const ended = useStore((state) => state.ended);
  const recorded = useStore((state) => state.recorded);
  const filtered = isFiltered(query);
  const key = JSON.stringify(query);
  const newest = useRef(null);
  if (!held) newest.current = ended.at(-1)?.id;
  const search = async (signal) => (filtered ? { key, ...(await get("history", asked(query), signal)) } : null);
  const { value, error } = useLoaded(search, [key, filtered ? newest.current : null], 500); // milliseconds between two searches: matching calls that end come in by themselves
  const live = useMemo(() => ({ calls: [...ended].reverse(), more: recorded || ended.length >= EARLIER }), [ended, recorded]);
  const first = filtered ? (value?.key === key ? value : null) : live;
  const list = useRef({ key: null, first: null, calls: [], more: false });
  const draw = useRedraw();
  const other = list.current.key !== key;
  if (first && first !== list.current.first && (!held || other || !list.current.calls.length)) {
    list.current = { key, first, ...joined(first, other ? NOTHING : list.current) };
  }
  const load = async () => {
    const before = list.current.calls.at(-1)?.id;
    const answer = await get("history", before ? { ...asked(query), before } : asked(query));
    // Meanwhile the list may be another one.
    if (list.current.key !== key || list.current.calls.at(-1)?.id !== before) return;
    list.current = { ...list.current, calls: [...list.current.calls, ...answer.calls], more: answer.more };
    draw();
  };
  // The calls for the old words are shown until the new ones are there, or asking for them has failed.
  const { calls, more } = other && !first && error ? NOTHING : list.current;
  return { calls, more, news: filtered ? 0 : newer(live.calls, calls), loading: !first && !error, error: filtered ? error : null, load };
}

function newer(live, shown) {
  if (!shown.length) return 0;
  const at = live.findIndex((call) => call.id === shown[0].id);
  return at < 0 ? live.length : at;
}

function SearchBar({ query, onChange }) {
  const recorded = useStore((state) => state.recorded);
  const set = (name) => (event) => onChange({ ...query, [name]: event.currentTarget.value });
  const [save, busy, error] = useAction(() => saved(query));
  return html`<form class="calls-tools" role="search" aria-label=${t("calls.search")} onSubmit=${(event) => event.preventDefault()} autocomplete="off">
      <input type="search" maxlength="200" aria-label=${t("calls.search")} placeholder=${t("calls.search")} value=${query.q} onInput=${set("q")} />
      <select aria-label=${t("calls.outcome")} value=${query.outcome} onChange=${set("outcome")}>
        <option value="">${t("calls.outcome.any")}</option>
        ${OUTCOMES.map((outcome) => html`<option key=${outcome} value=${outcome}>${t(`calls.was.${outcome}`)}</option>`)}
      </select>
      <input type="date" aria-label=${t("calls.day")} title=${t("calls.day")} value=${query.day} onInput=${set("day")} />
      <label class="check"><input type="checkbox" checked=${query.person === "1"} onChange=${(event) => onChange({ ...query, person: event.currentTarget.checked ? "1" : "" })} />${t("calls.person")}</label>
      ${recorded ? html`<label class="check"><input type="checkbox" checked=${query.reads === "1"} onChange=${(event) => onChange({ ...query, reads: event.currentTarget.checked ? "1" : "" })} />${t("calls.reads")}</label>` : null}
      <button type="button" disabled=${busy} aria-describedby="calls-export-note" onClick=${() => save()}>${t("calls.export")}</button>
      <p id="calls-export-note" class="muted">${t("calls.export.note")}</p>
    </form>
    <${Problem} text=${error} />`;
}

async function saved(query) {
  const url = URL.createObjectURL(await download("export", asked(query)));
  const link = document.createElement("a");
  link.href = url;
  link.download = `a2c-calls-${new Date().toISOString().slice(0, 10)}.jsonl`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

function Earlier({ load }) {
  const [run, busy, error] = useAction(load);
  return html`<p class="earlier"><button type="button" disabled=${busy} onClick=${() => run()}>${t("calls.earlier")}</button></p>
    <${Problem} text=${error} />`;
}

function EndedCall({ call, open, onToggle, attributes }) {
  const { short, full, iso } = moment(call.started_at);
  return html`<li class="row ended" ...${attributes}>
    <button type="button" class="line" aria-expanded=${open} onClick=${() => onToggle(call.id)}>
      <span class=${`dot ${toneOf(call)}`} aria-hidden="true"></span>
      <${Who} call=${call} />
      <${OutcomeOf} call=${call} />
      <span class="grow"></span>
      ${call.code ? html`<${Chip} tone="bad">${call.code}<//>` : null}
      <span class="time mono">${duration(call.duration)}</span>
      <time class="muted mono" datetime=${iso} title=${full}>${short}</time>
      ${call.arguments === "{}" ? null : html`<span class="preview mono">${oneLine(call.arguments)}</span>`}
    </button>
    ${open ? html`<${CallDetails} call=${call} level=${3} />` : null}
  </li>`;
}

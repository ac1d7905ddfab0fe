// Documents: search, type, paging; then one of them.
import { get } from "./api.js";
import { Document } from "./document.js";
import { html, useState } from "./html.js";
import { date, t } from "./i18n.js";
import { Icon } from "./icons.js";
import { Chip, Empty, Loading, Problem, useLoaded } from "./parts.js";
import { path } from "./router.js";
import { useStore } from "./store.js";

const PART = 20;

export function Finder({ rest }) {
  const [query, setQuery] = useState({ keywords: "", type: "", offset: 0 });
  const [uri, page] = rest;
  return uri ? html`<${Document} key=${uri} uri=${uri} page=${page === undefined ? null : Number(page)} />` : html`<${Search} query=${query} onChange=${setQuery} />`;
}

function Search({ query, onChange }) {
  const stamp = useStore((state) => state.stamps.finder);
  const { keywords, type, offset } = query;
  const { value, error, loading } = useLoaded(
    (signal) => get("finder", { keywords, type, offset, limit: PART }, signal),
    [keywords, type, offset, stamp],
    200,
  );
  const documents = value?.documents ?? [];
  const types = [...new Set([...documents.map((document) => document.file_type), type].filter(Boolean))].sort();
  const search = (event) => {
    event.preventDefault();
    onChange({ ...query, keywords: new FormData(event.currentTarget).get("keywords"), offset: 0 });
  };
  return html`<section aria-label=${t("nav.finder")}>
    <form class="search" role="search" onSubmit=${search}>
      <input type="search" name="keywords" defaultValue=${keywords} aria-label=${t("finder.search")} placeholder=${t("finder.search")} />
      <select aria-label=${t("finder.type")} value=${type} onChange=${(event) => onChange({ ...query, type: event.currentTarget.value, offset: 0 })}>
        <option value="">${t("finder.type.any")}</option>
        ${types.map((each) => html`<option key=${each} value=${each}>${each}</option>`)}
      </select>
      <button type="submit" class="primary"><${Icon} name="search" />${t("finder.find")}</button>
    </form>
    <${Problem} text=${error} />
    ${loading ? html`<${Loading} />` : documents.length === 0 ? html`<${Empty} icon="finder" title=${t("finder.none")} />` : html`<${Results} documents=${documents} />`}
    ${value && value.total > 0
      ? html`<nav class="paging" aria-label=${t("finder.range", { from: offset + 1, to: offset + documents.length, total: value.total })}>
          <button type="button" disabled=${offset === 0} onClick=${() => onChange({ ...query, offset: Math.max(0, offset - PART) })}>${t("finder.previous")}</button>
          <span class="muted">${t("finder.range", { from: offset + 1, to: offset + documents.length, total: value.total })}</span>
          <button type="button" disabled=${offset + documents.length >= value.total} onClick=${() => onChange({ ...query, offset: offset + PART })}>${t("finder.next")}</button>
        </nav>`
      : null}
  </section>`;
}

function Results({ documents }) {
  return html`<ul class="documents">
    ${documents.map(
      (document) => html`<li key=${document.uri}>
        <a class="card document" href=${path("finder", document.uri)}>
          <span class="line"><b>${document.title}</b><${Chip}>${document.file_type}<//></span>
          ${document.summary ? html`<span class="summary">${document.summary}</span>` : null}
          ${document.file_name && document.file_name !== document.title ? html`<span class="file mono"><bdi>${document.file_name}</bdi></span>` : null}
          <span class="muted facts">
            <span>${t("finder.pages", { count: document.page_count })}</span>
            <span>${document.server}</span>
            ${document.last_modified ? html`<span>${t("finder.modified", { when: date(document.last_modified) })}</span>` : null}
            ${(document.keywords ?? []).slice(0, 6).map((word) => html`<span key=${word}>#${word}</span>`)}
          </span>
        </a>
      </li>`,
    )}
  </ul>`;
}

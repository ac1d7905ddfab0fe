// One document: its pages, a page as it reads, and the elements and tables on it.
import { get } from "./api.js";
import { html, useMemo, useState } from "./html.js";
import { t } from "./i18n.js";
import { Icon } from "./icons.js";
import { Block, Chip, Fold, Loading, Problem, useLoaded } from "./parts.js";
import { path } from "./router.js";
import { useStore } from "./store.js";

const PART = 50;

export function Document({ uri, page }) {
  const stamp = useStore((state) => state.stamps.finder);
  const [offset, setOffset] = useState(0);
  const { value, error, loading } = useLoaded((signal) => get("document", { uri, offset }, signal), [uri, offset, stamp], 300);
  const pages = value?.pages ?? [];
  const total = value?.page_total ?? value?.page_count ?? pages.length;
  const shown = page ?? pages[0]?.page_index ?? null;
  return html`<section class="reader" aria-label=${value?.title ?? uri}>
    <p><a class="back" href=${path("finder")}><${Icon} name="back" />${t("finder.back")}</a></p>
    <h2>${value?.title ?? uri}</h2>
    <p class="muted mono uri">${uri}</p>
    <${Problem} text=${error} />
    ${loading ? html`<${Loading} />` : null}
    <div class="columns">
      <nav class="pages" aria-label=${t("finder.pages.of")}>
        ${pages.map(
          (each) => html`<a key=${each.page_index} href=${path("finder", uri, String(each.page_index))} aria-current=${each.page_index === shown ? "page" : null}>
            <span class="muted mono">${each.page_index}</span> ${each.title || t("finder.page", { number: each.page_index })}
          </a>`,
        )}
        ${total > PART
          ? html`<span class="paging">
              <button type="button" class="small" disabled=${offset === 0} onClick=${() => setOffset(Math.max(0, offset - PART))}>${t("finder.previous")}</button>
              <button type="button" class="small" disabled=${offset + PART >= total} onClick=${() => setOffset(offset + PART)}>${t("finder.next")}</button>
            </span>`
          : null}
      </nav>
      ${shown === null ? null : html`<${Page} key=${shown} uri=${uri} page=${shown} stamp=${stamp} />`}
    </div>
  </section>`;
}

function Page({ uri, page, stamp }) {
  const { value, error, loading } = useLoaded((signal) => get("page", { uri, page }, signal), [uri, page, stamp], 300);
  // Rendered by the computer from Markdown, where markup in the text stays text.
  const markup = useMemo(() => ({ __html: value?.html ?? "" }), [value?.html]);
  if (loading) return html`<${Loading} />`;
  const elements = value?.page?.elements ?? [];
  return html`<article class="page">
    <${Problem} text=${error} />
    <div class="paper" dangerouslySetInnerHTML=${markup}></div>
    ${value?.cut ? html`<p class="muted">${t("finder.cut")}</p>` : null}
    <h3>${t("finder.elements")}</h3>
    ${elements.length === 0 ? html`<p class="muted">${t("finder.elements.none")}</p>` : null}
    ${elements.map((element) => html`<${Element} key=${element.element_id} document=${uri} element=${element} />`)}
  </article>`;
}

function Element({ document, element }) {
  const [open, setOpen] = useState(false);
  const title = html`<${Chip}>${element.category}<//> <span class="mono">${element.element_id}</span> <span class="muted">${element.summary ?? ""}</span>`;
  return html`<details class="fold" onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary><${Icon} name="chevron" />${title}</summary>
    ${open ? html`<${ElementDetails} document=${document} id=${element.element_id} />` : null}
  </details>`;
}

function ElementDetails({ document, id }) {
  const { value, error, loading } = useLoaded((signal) => get("element", { uri: document, id }, signal), [document, id]);
  if (loading) return html`<${Loading} />`;
  return html`<div class="details">
    <${Problem} text=${error} />
    ${value?.table ? html`<${Table} name=${id} table=${value.table} />` : null}
    ${value ? html`<${Fold} title="JSON" open=${!value.table}><${Block} text=${value.text} label="JSON" copy=${true} /><//>` : null}
  </div>`;
}

function Table({ name, table: { headers, rows, cut } }) {
  const number = /^-?[\d.]+(e[+-]?\d+)?$/i;
  return html`<div class="table" tabindex="0" role="region" aria-label=${name}>
    <table>
      ${headers.length ? html`<thead><tr>${headers.map((header, at) => html`<th key=${at} scope="col">${header}</th>`)}</tr></thead>` : null}
      <tbody>
        ${rows.map((row, at) => html`<tr key=${at}>${row.map((cell, place) => html`<td key=${place} class=${number.test(cell) ? "align-right" : null}>${cell}</td>`)}</tr>`)}
      </tbody>
    </table>
    ${cut ? html`<p class="muted">${t("finder.cut.table")}</p>` : null}
  </div>`;
}

// Words of agents, MCP servers and files. They never look like words of the page, and nothing in them is hidden.
import { html } from "./html.js";
import { t } from "./i18n.js";
import { Chip } from "./parts.js";

/** A text in parts, of which every second one is the escape of a character that would not show. */
export function Words({ of }) {
  return html`<span class="words">${of.map((part, at) => (at % 2 ? html`<mark key=${at}>${part}</mark>` : part))}</span>`;
}

/** A name that somebody chose: framed, and marked if it mixes letters of several scripts. */
export function Name({ of }) {
  return html`<span class="given mono"><${Words} of=${of.words} /></span>${of.mixed ? html` <${Chip} tone="warn">${t("words.mixed")}<//>` : null}`;
}

/** What a server says, framed as its own words. */
export function Said({ by, caption = t("words.said"), children }) {
  return html`<figure class="said">
    <figcaption class="muted">${caption} <${Name} of=${by} /></figcaption>
    <blockquote>${children}</blockquote>
  </figure>`;
}

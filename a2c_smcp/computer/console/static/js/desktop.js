// The windows as the agent sees them, in its order, changing as they change.
import { get } from "./api.js";
import { html, useEffect, useRef, useState } from "./html.js";
import { t } from "./i18n.js";
import { Empty, Loading, Problem, useLoaded } from "./parts.js";
import { useStore } from "./store.js";

export function Desktop() {
  const stamp = useStore((state) => state.stamps.desktop);
  const { value, error, loading } = useLoaded((signal) => get("desktop", {}, signal), [stamp], 200);
  if (loading) return html`<${Loading} />`;
  const windows = value?.windows ?? [];
  return html`<section aria-labelledby="desktop">
    <h2 id="desktop">${t("desktop.title")} <span class="muted">${t("desktop.count", { count: windows.length })}</span></h2>
    <${Problem} text=${error} />
    ${windows.length === 0
      ? html`<${Empty} icon="desktop" title=${t("desktop.none")} hint=${t("desktop.none.hint")} />`
      : html`<ol class="windows">${windows.map((each) => html`<${Window} key=${each.uri} window=${each} />`)}</ol>`}
  </section>`;
}

function Window({ window: { uri, text } }) {
  const before = useRef(text);
  const [changed, setChanged] = useState(false);
  useEffect(() => {
    if (before.current === text) return undefined;
    before.current = text;
    setChanged(true);
    const timer = setTimeout(() => setChanged(false), 1200);
    return () => clearTimeout(timer);
  }, [text]);
  return html`<li class=${`window ${changed ? "changed" : ""}`}>
    <header><span class="lights" aria-hidden="true"></span><h3 class="mono">${uri}</h3></header>
    <pre tabindex="0" role="region" aria-label=${uri}>${text}</pre>
  </li>`;
}

// Tools: filter, schema, a form made from the schema, and the call.
import { get } from "./api.js";
import { ToolCall } from "./tool-call.js";
import { html, useMemo, useState } from "./html.js";
import { t } from "./i18n.js";
import { Icon } from "./icons.js";
import { Block, Chip, Empty, Fold, Loading, Problem, useLoaded } from "./parts.js";
import { path } from "./router.js";
import { ToolRule } from "./tool-rule.js";
import { useStore } from "./store.js";
import { VirtualList } from "./virtual.js";

export function Tools({ rest }) {
  const stamp = useStore((state) => state.stamps.tools);
  const { value, error, loading } = useLoaded((signal) => get("tools", {}, signal), [stamp], 300);
  const [filter, setFilter] = useState("");
  if (loading) return html`<${Loading} />`;
  const { tools = [] } = value ?? {};
  const chosen = tools.find((tool) => tool.name === rest[0]);
  return html`<section class=${`tools ${chosen ? "chosen" : ""}`} aria-label=${t("nav.tools")}>
    <div class="index">
      <input type="search" class="filter" aria-label=${t("tools.filter")} placeholder=${t("tools.filter")} value=${filter} onInput=${(event) => setFilter(event.currentTarget.value)} />
      <${Problem} text=${error} />
      ${value?.conflicts.length ? html`<p class="reason"><a href=${path("servers")}>${t("tools.clashes", { count: value.conflicts.length })}</a></p>` : null}
      <${ToolList} tools=${tools} filter=${filter} chosen=${chosen} />
    </div>
    <div class="chosen-tool">
      ${chosen ? html`<${Tool} key=${chosen.name} tool=${chosen} />` : tools.length ? html`<${Empty} icon="tools" title=${t("tools.pick")} />` : null}
    </div>
  </section>`;
}

function ToolList({ tools, filter, chosen }) {
  const groups = useMemo(() => grouped(tools, filter.toLowerCase()), [tools, filter]);
  if (!tools.length) return html`<p class="muted">${t("tools.none.yet")} <a href=${path("servers")}>${t("tools.servers")}</a></p>`;
  if (!groups.length) return html`<p class="muted">${t("tools.none")}</p>`;
  return groups.map(
    ([server, found]) => html`<div key=${server} class="group">
      <h2>${server} <span class="muted">${found.length}</span></h2>
      <${VirtualList} items=${found} keyOf=${nameOf} estimate=${55} row=${(tool, attributes) => link(tool, chosen, attributes)} />
    </div>`,
  );
}

function nameOf(tool) {
  return tool.name;
}

function link(tool, chosen, attributes) {
  return html`<li key=${tool.name} ...${attributes}>
    <a href=${path("tools", tool.name)} aria-current=${tool === chosen ? "true" : null}>
      <b class="mono">${tool.name}</b><span class="muted">${tool.description.split("\n", 1)[0]}</span>
    </a>
  </li>`;
}

function grouped(tools, filter) {
  const found = new Map();
  for (const tool of tools) {
    if (filter && !`${tool.name} ${tool.server} ${tool.description}`.toLowerCase().includes(filter)) continue;
    found.set(tool.server, [...(found.get(tool.server) ?? []), tool]);
  }
  return [...found];
}

function Tool({ tool }) {
  return html`<article class="tool">
    <p class="narrow"><a class="back" href=${path("tools")}><${Icon} name="back" />${t("tools.back")}</a></p>
    <h2 class="mono">${tool.name}</h2>
    <p><${Chip}>${tool.server}<//></p>
    ${tool.description ? html`<p class="description">${tool.description}</p>` : null}
    <${ToolRule} tool=${tool} />
    <${ToolCall} tool=${tool} />
    <${Fold} title=${t("tools.schema")}><${Block} text=${tool.schema_text} label=${t("tools.schema")} copy=${true} /><//>
    ${tool.returns ? html`<${Fold} title=${t("tools.returns")}><${Block} text=${tool.returns} label=${t("tools.returns")} copy=${true} /><//>` : null}
  </article>`;
}

// Servers: their states and logs, how they are added, edited and removed, and the inputs of their configs.
import { get, post } from "./api.js";
import { AskOnce } from "./ask-once.js";
import { InputForm } from "./decision-forms.js";
import { useHome } from "./home.js";
import { html, useEffect, useRef, useState } from "./html.js";
import { t } from "./i18n.js";
import { Chip, Empty, Loading, Problem, useAction, useLoaded } from "./parts.js";
import { AddServer, EditServer } from "./server-editor.js";
import { useStore } from "./store.js";

const TONES = { running: "ok", failed: "bad", starting: "warn", stopping: "warn", backing_off: "warn", sign_in: "warn" };

export function Servers() {
  const servers = useStore((state) => state.servers);
  const [filter, setFilter] = useState("");
  const [adding, setAdding] = useState(false);
  const home = useHome();
  const shown = servers.filter((server) => server.name.toLowerCase().includes(filter.toLowerCase()));
  const clashes = useClashes(servers);
  const shared = useShared(servers);
  if (!servers.length) {
    return html`<${Empty} icon="servers" title=${t("servers.none")} hint=${t("servers.none.hint")} />${home ? html`<${AddServer} home=${home} />` : null}`;
  }
  const close = () => setAdding(false);
  return html`<section aria-label=${t("nav.servers")}>
      ${adding && home
        ? html`<${AddServer} home=${home} onDone=${close} onClose=${close} />`
        : html`<p class="head"><button type="button" onClick=${() => setAdding(true)}>${t("servers.add")}</button></p>`}
      ${servers.length > 8
        ? html`<input type="search" class="filter" aria-label=${t("servers.filter")} placeholder=${t("servers.filter")} value=${filter} onInput=${(event) => setFilter(event.currentTarget.value)} />`
        : null}
      <ul class="rows">${shown.map((server) => html`<${Server} key=${server.name} server=${server} clashes=${clashes.get(server.name)} shared=${shared[server.name]} />`)}</ul>
    </section>
    <${Inputs} />`;
}

/** Clashes of tool names, each shown at one server: the one that came last. A clash that is a server's reason is left out. */
function useClashes(servers) {
  const stamp = useStore((state) => state.stamps.tools);
  const states = servers.map((server) => server.state).join();
  const { value } = useLoaded((signal) => get("clashes", {}, signal), [stamp, states], 300);
  const told = new Set(servers.map((server) => server.reason));
  const found = new Map();
  for (const { text, servers: names } of value?.clashes ?? []) {
    if (!told.has(text)) found.set(names.at(-1), [...(found.get(names.at(-1)) ?? []), text]);
  }
  return found;
}

/** What each server that runs shares with agents. */
function useShared(servers) {
  const stamp = useStore((state) => state.stamps.shared);
  const states = servers.map((server) => server.state).join();
  const { value } = useLoaded((signal) => get("shared", {}, signal), [stamp, states], 300);
  return value?.shared ?? {};
}

/** In words, for a server that shares more or less than windows and documents. */
function sharedWords({ share, resources, templates, prompts }) {
  const counts = { resources, templates, prompts };
  const some = Object.entries(counts).filter(([, count]) => count);
  const list = some.map(([kind, count]) => t(`servers.share.${kind}`, { count })).join(", ");
  return t(`servers.share.${share}`) + (list ? ` (${list})` : "");
}

function Server({ server, clashes = [], shared }) {
  const [open, setOpen] = useState(false);
  const [editing, setEditing] = useState(false);
  const [act, busy, error] = useAction((action) => post("server", { server: server.name, action }));
  const [remove, removing, left] = useAction((signOut) => post("remove-server", { server: server.name, sign_out: signOut }));
  const runs = ["running", "starting", "backing_off"].includes(server.state);
  const actions = runs ? ["restart", "stop"] : server.state === "sign_in" ? ["login", "stop"] : ["start"];
  return html`<li class="row server">
    <div class="line">
      <span class=${`dot ${TONES[server.state] ?? ""} ${server.state === "running" ? "live" : ""}`} aria-hidden="true"></span>
      <b class="mono">${server.name}</b>
      <${Chip} tone=${TONES[server.state]}>${t(`state.${server.state}`)}<//>
      ${server.restarts ? html`<span class="muted">${t("servers.restarts", { count: server.restarts })}</span>` : null}
      ${shared && shared.share !== "shown" ? html`<span class="muted">${sharedWords(shared)}</span>` : null}
      <span class="grow"></span>
      <span class="actions">
        ${actions.map(
          (action) => html`<button key=${action} type="button" class="small" disabled=${busy || server.state === "disabled" || server.state === "stopping"}
            aria-label=${t("servers.action", { action: t(`servers.${action}`), server: server.name })} onClick=${() => act(action)}>${t(`servers.${action}`)}</button>`,
        )}
        <button type="button" class="small quiet" aria-expanded=${open} aria-label=${t("servers.log.of", { server: server.name })} onClick=${() => setOpen(!open)}>${t("servers.log")}</button>
        <button type="button" class="small quiet" aria-expanded=${editing} aria-label=${t("servers.edit.name", { server: server.name })} onClick=${() => setEditing(!editing)}>${t("servers.edit")}</button>
        <${AskOnce} label=${t("servers.remove")} name=${t("servers.remove.name", { server: server.name })} busy=${removing} act=${remove}
          question=${t("servers.remove.ask", { server: server.name })} keep=${t("servers.remove.keep", { server: server.name })}
          more=${server.is_remote ? t("servers.remove.sign_out") : null} />
      </span>
    </div>
    ${server.waits_for
      ? html`<p class="reason">${t("servers.waits", { input: server.waits_for })}</p>`
      : server.reason
        ? html`<p class="reason">${server.reason}</p>`
        : null}
    ${server.ignored ? html`<p class="muted">${server.ignored}</p>` : null}
    ${clashes.map((text) => html`<p class="reason" key=${text}>${text}</p>`)}
    <${Problem} text=${left ?? (server.reason ? null : error)} />
    ${editing ? html`<${EditServer} server=${server.name} onDone=${() => setEditing(false)} />` : null}
    ${open ? html`<${Log} server=${server.name} />` : null}
  </li>`;
}

function Log({ server }) {
  const stamp = useStore((state) => state.logs[server] ?? 0);
  const { value, error, loading } = useLoaded((signal) => get("log", { server }, signal), [server, stamp], 300);
  const box = useRef(null);
  const atEnd = useRef(true);
  useEffect(() => {
    if (box.current && atEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, [value]);
  if (loading) return html`<${Loading} />`;
  const scrolled = ({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
    atEnd.current = scrollTop + clientHeight >= scrollHeight - 8;
  };
  return html`<div>
    ${value?.lines.length
      ? html`<pre class="log" tabindex="0" role="log" aria-label=${t("servers.log.of", { server })} ref=${box} onScroll=${scrolled}>${value.lines.join("\n")}</pre>`
      : html`<p class="muted">${t("servers.log.empty")}</p>`}
    <${Problem} text=${error} />
  </div>`;
}

function Inputs() {
  const stamp = useStore((state) => state.stamps.config);
  const [round, setRound] = useState(0);
  const { value } = useLoaded((signal) => get("inputs", {}, signal), [stamp, round]);
  if (!value?.inputs.length) return null;
  return html`<section aria-labelledby="inputs">
    <h2 id="inputs">${t("servers.inputs")}</h2>
    <ul class="rows">${value.inputs.map((definition) => html`<${Input} key=${definition.id} definition=${definition} onChange=${() => setRound(round + 1)} />`)}</ul>
  </section>`;
}

function Input({ definition, onChange }) {
  const [open, setOpen] = useState(false);
  const [send, busy, error] = useAction(async (given) => {
    await post("input", { id: definition.id, ...given });
    setOpen(false);
    onChange();
  });
  return html`<li class="row input">
    <div class="line">
      <b class="mono">${definition.id}</b>
      <${Chip} tone=${definition.has_value ? "ok" : "plain"}>${t(definition.has_value ? "servers.inputs.has" : "servers.inputs.none")}<//>
      <span class="muted">${definition.description}</span>
      <span class="grow"></span>
      <span class="actions">
        <button type="button" class="small" aria-expanded=${open} aria-label=${t("servers.inputs.set.name", { id: definition.id })} onClick=${() => setOpen(!open)}>${t("servers.inputs.set")}</button>
        ${definition.has_value ? html`<button type="button" class="small quiet" disabled=${busy} aria-label=${t("servers.inputs.forget.name", { id: definition.id })} onClick=${() => send({})}>${t("servers.inputs.forget")}</button>` : null}
      </span>
    </div>
    ${open ? html`<${InputForm} draft=${`set-${definition.id}`} definition=${definition} ready=${!busy} dismiss=${false} answer=${({ value }) => send({ value })} />` : null}
    <${Problem} text=${error} />
  </li>`;
}

// Calls: those that run, with time and progress, and those that are over.
import { get, post } from "./api.js";
import { html, useRef, useState } from "./html.js";
import { duration, t, time } from "./i18n.js";
import { Block, Chip, Empty, Loading, Problem, useAction, useLoaded, useTick } from "./parts.js";
import { useInside, useStill } from "./still.js";
import { serverNow, useStore } from "./store.js";
import { who } from "./who.js";

export function Calls() {
  return html`<section aria-labelledby="calls-running">
      <h2 id="calls-running">${t("calls.running")}</h2>
      <${RunningCalls} />
    </section>
    <${History} />`;
}

function RunningCalls() {
  const running = useStore((state) => state.running);
  const [inside, props] = useInside();
  const shown = useStill(running, inside);
  useTick(200, running.length > 0);
  if (!shown.length) return html`<p class="muted" ...${props}>${t("calls.running.none")}</p>`;
  return html`<ul class="rows" ...${props}>
    ${shown.map(({ item, gone }) => html`<${RunningCall} key=${item.id} call=${item} gone=${gone} />`)}
  </ul>`;
}

function RunningCall({ call, gone }) {
  const [cancel, busy, error] = useAction(() => post("cancel", { id: call.id }));
  return html`<li class="row running" data-gone=${gone ? "" : null}>
    <div class="line">
      <span class=${`dot ${gone ? "" : "live"}`} aria-hidden="true"></span>
      <${Who} call=${call} />
      <span class="grow"></span>
      ${gone ? null : html`<span class="time mono">${duration(Math.max(0, serverNow() - call.started_at))}</span>`}
      <button type="button" class="danger small" disabled=${gone || busy} aria-label=${t("calls.cancel.name", { tool: call.tool })} onClick=${() => cancel()}>${t("calls.cancel")}</button>
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

export function Who({ call }) {
  return html`<span class="who"><b class="mono">${call.tool}</b> <span class="muted">${call.server ?? ""} · ${call.agent ?? t("calls.you")}</span></span>`;
}

function oneLine(text) {
  return text.replace(/\s*\n\s*/g, " ");
}

function History() {
  const ended = useStore((state) => state.ended);
  const [inside, props] = useInside();
  const held = useRef(ended);
  if (!inside) held.current = ended;
  const newest = held.current.at(-1);
  const news = inside && newest ? ended.length - 1 - ended.findIndex((call) => call.id === newest.id) : 0;
  const shown = [...held.current].reverse();
  return html`<section aria-labelledby="calls-history">
    <h2><span id="calls-history">${t("calls.history")}</span>${news ? html`<span class="news">${t("calls.new", { count: news })}</span>` : null}</h2>
    ${shown.length
      ? html`<ul class="rows" ...${props}>${shown.map((call) => html`<${EndedCall} key=${call.id} call=${call} />`)}</ul>`
      : html`<${Empty} icon="calls" title=${t("calls.history.none")} />`}
  </section>`;
}

function toneOf(call) {
  if (call.cancelled) return ["warn", "calls.cancelled"];
  return call.ok ? ["ok", "calls.ok"] : ["bad", "calls.failed"];
}

function EndedCall({ call }) {
  const [open, setOpen] = useState(false);
  const [tone, said] = toneOf(call);
  return html`<li class="row ended">
    <button type="button" class="line" aria-expanded=${open} onClick=${() => setOpen(!open)}>
      <span class=${`dot ${tone}`} aria-hidden="true"></span>
      <${Who} call=${call} />
      <span class="visually-hidden">${t(said)}</span>
      <span class="grow"></span>
      ${call.code ? html`<${Chip} tone="bad">${call.code}<//>` : null}
      <span class="time mono">${duration(call.duration)}</span>
      <time class="muted mono">${time(call.started_at)}</time>
    </button>
    ${open ? html`<${CallDetails} call=${call} />` : null}
  </li>`;
}

export function CallDetails({ call }) {
  const { value, error, loading } = useLoaded((signal) => get("result", { id: call.id }, signal), [call.id]);
  if (loading) return html`<${Loading} />`;
  const whole = value ?? { ...call, content: call.text ? [{ type: "text", text: call.text }] : [], structured: null };
  return html`<div class="details" role="group" aria-label=${t("calls.details", { tool: call.tool })}>
    <h3>${t("calls.arguments")}</h3>
    <${Block} text=${whole.arguments} label=${t("calls.arguments")} copy=${true} />
    <h3>${t("calls.result")} ${whole.decided_by ? html`<span class="muted">${t("calls.decided", { by: who(whole.decided_by) })}</span>` : null}</h3>
    <${Content} content=${whole.content} />
    ${whole.structured ? html`<h3>${t("calls.structured")}</h3><${Block} text=${whole.structured} label=${t("calls.structured")} copy=${true} />` : null}
    <${Problem} text=${error} />
  </div>`;
}

export function Content({ content }) {
  if (!content.length) return html`<p class="muted">${t("calls.noresult")}</p>`;
  return content.map((item, at) => html`<${Item} key=${at} item=${item} />`);
}

function Item({ item }) {
  if (item.type === "image") return html`<img class="result" src=${item.url} alt=${t("calls.image")} />`;
  if (item.type === "text") {
    return html`<div>${item.title ? html`<p class="muted mono">${item.title}</p>` : null}<${Block} text=${item.text} label=${t("calls.result")} copy=${true} /></div>`;
  }
  return html`<p><${Chip}>${item.text} ${item.title}<//></p>`;
}

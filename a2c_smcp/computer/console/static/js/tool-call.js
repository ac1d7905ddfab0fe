// A call that the person makes: a form or JSON, and then the result.
import { get, post } from "./api.js";
import { CallDetails, OutcomeOf } from "./call-details.js";
import { Progress } from "./calls.js";
import { Elapsed } from "./elapsed.js";
import { Form } from "./form.js";
import { completed, initial, kindOf, resolved } from "./form-values.js";
import { html, useEffect, useState } from "./html.js";
import { duration, t } from "./i18n.js";
import { Problem, useAction } from "./parts.js";
import { useStore } from "./store.js";

export function ToolCall({ tool }) {
  const [value, setValue] = useState(() => initial(tool.schema) ?? {});
  const drawn = kindOf(resolved(tool.schema, tool.schema)) === "object";
  // The arguments as JSON, while they are typed that way.
  const [text, setText] = useState(drawn || !Object.keys(tool.schema).length ? null : "{}");
  const [req, setReq] = useState(null);
  const [call, busy, error] = useAction(async () => {
    const given = text === null ? completed(value) : parsed(text);
    setReq((await post("call", { tool: tool.name, arguments: given })).req_id);
  });
  const takes = drawn && Object.keys(tool.schema.properties ?? {}).length > 0;
  const send = (event) => {
    event.preventDefault();
    call();
  };
  const toggle = () => {
    if (text === null) setText(JSON.stringify(completed(value), null, 2));
    else {
      const { value: typed, ok } = attempted(text);
      if (ok) setValue(asForm(typed));
      setText(null);
    }
  };
  return html`<form class="call" onSubmit=${send} autocomplete="off" aria-label=${t("tools.form")}>
    <div class="line"><h3>${t("tools.form")}</h3><span class="grow"></span>
      <button type="button" class="small quiet" onClick=${toggle}>${t(text === null ? "tools.json" : "tools.asform")}</button>
    </div>
    ${text !== null
      ? html`<textarea class="mono json" rows="8" aria-label=${t("tools.json")} spellcheck="false" value=${text} onInput=${(event) => setText(event.currentTarget.value)}></textarea>`
      : takes
        ? html`<${Form} schema=${tool.schema} value=${value} onChange=${setValue} />`
        : html`<p class="muted">${t("tools.noarguments")}</p>`}
    <div class="actions"><button type="submit" class="primary" disabled=${busy}>${t("tools.call")}</button></div>
    <${Problem} text=${error} />
    ${req ? html`<${Answer} key=${req} req=${req} />` : null}
  </form>`;
}

function attempted(text) {
  try {
    return { value: parsed(text), ok: true };
  } catch {
    return { ok: false };
  }
}

function parsed(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(t("tools.badjson"));
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Error(t("tools.badjson"));
  return value;
}

/** JSON as a form's value: as if it were the default of every field. */
function asForm(value) {
  return initial({ default: value });
}

function Answer({ req }) {
  const running = useStore((state) => state.running.find((call) => call.req_id === req));
  const told = useStore((state) => state.ended.find((call) => call.req_id === req));
  const ended = useFound(req, !running && !told) ?? told;
  if (!ended) {
    return html`<div class="answer" role="status">
      <p class="muted">${t("tools.calling")} ${running ? html`<${Elapsed} since=${running.started_at} />` : null}</p>
      ${running?.progress ? html`<${Progress} progress=${running.progress} />` : null}
    </div>`;
  }
  return html`<div class="answer" role="status">
    <p><${OutcomeOf} call=${ended} /> <span class="muted">${duration(ended.duration)}</span></p>
    <${CallDetails} call=${ended} level=${4} />
  </div>`;
}

/** Many calls may end at once, so that the page is not told of this one: then it asks the computer. */
function useFound(req, missing) {
  const [found, setFound] = useState(null);
  useEffect(() => {
    if (!missing || found) return undefined;
    const stop = new AbortController();
    const ask = () =>
      get("history", { req_id: req }, stop.signal).then(
        ({ calls }) => setFound(calls[0] ?? null),
        () => {}, // it is asked again
      );
    const timer = setInterval(ask, 1_000);
    return () => {
      clearInterval(timer);
      stop.abort();
    };
  }, [missing, found]);
  return found;
}

// Forms for questions of tools and for values of inputs. What is typed stays until it is sent or put away.
import { asText, dropDraft, isTyped, useDraft } from "./drafts.js";
import { Form } from "./form.js";
import { completed, initial } from "./form-values.js";
import { html, useMemo } from "./html.js";
import { Icon } from "./icons.js";
import { t } from "./i18n.js";
import { Copy } from "./parts.js";
import { SteadyButton } from "./steady.js";
import { forgetDecision } from "./store.js";
import { Words } from "./words.js";

export function QuestionForm(props) {
  return props.decision.url ? html`<${UrlQuestion} ...${props} />` : html`<${SchemaQuestion} ...${props} />`;
}

function SchemaQuestion({ decision, open, ready, answer, refusal }) {
  const schema = decision.schema ?? { type: "object", properties: {} };
  const [value, setValue, typed] = useDraft(decision.id, () => initial(schema));
  const send = async (event) => {
    event.preventDefault();
    if (ready && event.isTrusted && (await answer({ answer: "yes", value: completed(value) ?? {} }))) dropDraft(decision.id);
  };
  const field = refusal?.details?.field;
  const errors = useMemo(() => (field ? { [field]: refusal.details.problem ?? refusal.message } : null), [refusal]);
  const names = { server: decision.server.text };
  if (!open && !typed) return null;
  return html`<form onSubmit=${send} autocomplete="off">
    <fieldset class="plain" disabled=${!open}>
      <${Form} schema=${schema} value=${value} onChange=${setValue} titled=${true} errors=${errors} />
    </fieldset>
    ${open
      ? html`<div class="actions">
          <${SteadyButton} type="submit" data-answer="send" class="primary" ready=${ready} aria-label=${t("decisions.send.name", names)}>${t("decisions.send")}<//>
          <${SteadyButton} data-answer="no" class="danger" ready=${ready} aria-label=${t("decisions.decline.name", names)} onAnswer=${() => answer({ answer: "no" })}>${t("decisions.decline")}<//>
          <${SteadyButton} data-answer="dismiss" class="quiet" ready=${ready} aria-label=${t("decisions.dismiss.name", names)} onAnswer=${() => answer({ answer: "dismiss" })}>${t("decisions.dismiss")}<//>
        </div>`
      : html`<${Unsent} text=${asText(value)} onPutAway=${() => (dropDraft(decision.id), forgetDecision(decision.id))} />`}
  </form>`;
}

/** What was typed for a question that is over. It can be copied, and stays until the person puts it away. */
function Unsent({ text, onPutAway }) {
  return html`<div class="unsent">
    <p class="muted">${t("decisions.unsent")}</p>
    <div class="actions"><${Copy} text=${text} class="small" /><button type="button" class="small quiet" data-answer="putaway" onClick=${onPutAway}>${t("decisions.putaway")}</button></div>
  </div>`;
}

function UrlQuestion({ decision, open, ready, answer }) {
  const { url } = decision;
  const place = webPlace(url);
  const names = { server: decision.server.text };
  if (!open) return null;
  return html`<div>
    <p>${t("decisions.url")}</p>
    ${place ? html`<p class="host mono">${place.host}</p>` : null}
    ${place?.username || place?.password ? html`<p class="danger-sign">${t("decisions.url.user")}</p>` : null}
    <p class="url mono">
      ${place ? html`<a href=${url} target="_blank" rel="noopener noreferrer"><${Icon} name="link" /><${Words} of=${decision.url_words} /></a>` : html`<${Words} of=${decision.url_words} />`}
    </p>
    <div class="actions">
      <${SteadyButton} data-answer="yes" class="primary" ready=${ready} aria-label=${t("decisions.url.done.name", names)} onAnswer=${() => answer({ answer: "yes" })}>${t("decisions.url.done")}<//>
      <${SteadyButton} data-answer="no" class="danger" ready=${ready} aria-label=${t("decisions.url.no.name", names)} onAnswer=${() => answer({ answer: "no" })}>${t("decisions.url.no")}<//>
    </div>
  </div>`;
}

/** The address at which the person signs in. The browser comes back by itself; where it cannot, its last address is pasted. */
export function SignInForm({ decision, open, ready, answer }) {
  const { id, url } = decision;
  const place = webPlace(url);
  const [pasted, setPasted] = useDraft(id, () => "", true);
  const names = { server: decision.server.text };
  const send = async (event) => {
    event.preventDefault();
    if (ready && event.isTrusted && (await answer({ answer: "yes", value: pasted }))) dropDraft(id);
  };
  if (!open) return null;
  return html`<div>
    ${place ? html`<p class="host mono">${place.host}</p>` : null}
    ${decision.scopes.length ? html`<p>${t("decisions.signin.scopes")} ${decision.scopes.map((scope, index) => html`<span key=${index}>${index ? ", " : ""}<${Words} of=${scope} /></span>`)}</p>` : null}
    <p class="url mono"><${Words} of=${decision.url_words} /></p>
    <div class="actions">
      ${place ? html`<a class="button primary" data-answer="open" href=${url} target="_blank" rel="noopener noreferrer" aria-label=${t("decisions.signin.open.name", names)}>${t("decisions.signin.open")}</a>` : null}
      <${SteadyButton} data-answer="no" class="danger" ready=${ready} aria-label=${t("decisions.signin.no.name", names)} onAnswer=${() => answer({ answer: "no" })}>${t("decisions.signin.no")}<//>
    </div>
    <details><summary>${t("decisions.signin.elsewhere")}</summary>
      <form onSubmit=${send} autocomplete="off">
        <div class="field"><label for=${`pasted-${id}`}>${t("decisions.signin.paste")}</label>
          <input id=${`pasted-${id}`} type="url" required spellcheck="false" value=${pasted} onInput=${(event) => setPasted(event.currentTarget.value)} /></div>
        <div class="actions"><${SteadyButton} type="submit" data-answer="send" ready=${ready} aria-label=${t("decisions.signin.send.name", names)}>${t("decisions.send")}<//></div>
      </form>
    </details>
  </div>`;
}

/** The URL of a link, as this browser reads it; null if it is not a web page. */
function webPlace(url) {
  try {
    const place = new URL(url);
    return ["http:", "https:"].includes(place.protocol) ? place : null;
  } catch {
    return null;
  }
}

/** Asks for one value of an input. `answer` gets `{answer, value}`, and resolves to whether it was taken. */
export function InputForm({ draft, definition, open = true, ready, answer, dismiss = true, onPutAway }) {
  const secret = Boolean(definition.password);
  const [value, setValue] = useDraft(draft, () => (secret ? "" : (definition.default ?? "")), secret);
  const options = definition.type === "pickString" ? (definition.options ?? []) : null;
  // The value is shown beside its label: it is what the MCP server gets.
  const shown = (option) => (Object.hasOwn(definition.labels ?? {}, option) ? `${definition.labels[option]} (${option})` : option);
  const names = { id: definition.id };
  const send = async (event) => {
    event.preventDefault();
    if (ready && event.isTrusted && (await answer({ answer: "yes", value }))) dropDraft(draft);
  };
  const id = `input-${definition.id}`;
  if (!open && !isTyped(draft)) return null;
  return html`<form onSubmit=${send} autocomplete="off">
    <fieldset class="plain" disabled=${!open}>
      <div class="field">
        <label for=${id}>${definition.description || definition.id}</label>
        ${options
          ? html`<select id=${id} value=${value} required onChange=${(event) => setValue(event.currentTarget.value)}>
              <option value="">${t("form.choose")}</option>
              ${options.map((option) => html`<option key=${option} value=${option}>${shown(option)}</option>`)}
            </select>`
          : html`<input id=${id} type=${secret ? "password" : "text"} autocomplete=${secret ? "new-password" : "off"} spellcheck="false"
              data-1p-ignore data-lpignore="true" value=${value} onInput=${(event) => setValue(event.currentTarget.value)} />`}
        ${secret ? html`<p class="muted hint">${t("decisions.input.secret")}</p>` : null}
      </div>
    </fieldset>
    ${open
      ? html`<div class="actions">
          <${SteadyButton} type="submit" data-answer="send" class="primary" ready=${ready} aria-label=${t("decisions.input.send.name", names)}>${t("decisions.send")}<//>
          ${dismiss ? html`<${SteadyButton} data-answer="dismiss" class="quiet" ready=${ready} aria-label=${t("decisions.input.dismiss.name", names)} onAnswer=${() => answer({ answer: "dismiss" })}>${t("decisions.dismiss")}<//>` : null}
        </div>`
      : html`<${Unsent} text=${value} onPutAway=${() => (dropDraft(draft), onPutAway())} />`}
  </form>`;
}

// Forms for what a tool asks, and for the values of inputs. What is typed here is sent, and kept nowhere.
import { Form } from "./form.js";
import { completed, initial } from "./form-values.js";
import { html, useState } from "./html.js";
import { Icon } from "./icons.js";
import { t } from "./i18n.js";

export function QuestionForm({ decision, ready, guard, answer }) {
  if (decision.url) return html`<${UrlQuestion} ...${{ decision, ready, guard, answer }} />`;
  return html`<${SchemaQuestion} ...${{ decision, ready, guard, answer }} />`;
}

function SchemaQuestion({ decision, ready, guard, answer }) {
  const schema = decision.schema ?? { type: "object", properties: {} };
  const [value, setValue] = useState(() => initial(schema));
  const send = (event) => {
    event.preventDefault();
    if (ready && event.isTrusted) answer({ answer: "yes", value: completed(value) ?? {} });
  };
  return html`<form onSubmit=${send} autocomplete="off">
    <${Form} schema=${schema} value=${value} onChange=${setValue} titled=${true} />
    <div class="actions">
      <button type="submit" class="primary" disabled=${!ready}>${t("decisions.send")}</button>
      <button type="button" class="danger" disabled=${!ready} onClick=${guard(() => answer({ answer: "no" }))}>${t("decisions.decline")}</button>
      <button type="button" class="quiet" disabled=${!ready} onClick=${guard(() => answer({ answer: "dismiss" }))}>${t("decisions.dismiss")}</button>
    </div>
  </form>`;
}

function UrlQuestion({ decision, ready, guard, answer }) {
  const safe = /^https?:\/\//i.test(decision.url);
  return html`<div>
    <p>${t("decisions.url")}</p>
    <p class="url mono">
      ${safe ? html`<a href=${decision.url} target="_blank" rel="noopener noreferrer"><${Icon} name="link" />${decision.url}</a>` : decision.url}
    </p>
    <div class="actions">
      <button type="button" class="primary" disabled=${!ready} onClick=${guard(() => answer({ answer: "yes" }))}>${t("decisions.url.done")}</button>
      <button type="button" class="danger" disabled=${!ready} onClick=${guard(() => answer({ answer: "no" }))}>${t("decisions.url.no")}</button>
    </div>
  </div>`;
}

/** Asks for one value of an input. `answer` gets `{answer, value}`. */
export function InputForm({ definition, ready, guard, answer, dismiss = true }) {
  const secret = Boolean(definition.password);
  const [value, setValue] = useState(secret ? "" : (definition.default ?? ""));
  const options = definition.type === "pickString" ? (definition.options ?? []) : null;
  const send = (event) => {
    event.preventDefault();
    if (!ready || !event.isTrusted) return;
    answer({ answer: "yes", value });
    setValue("");
  };
  const id = `input-${definition.id}`;
  return html`<form onSubmit=${send} autocomplete="off">
    <div class="field">
      <label for=${id}>${definition.description || definition.id}</label>
      ${options
        ? html`<select id=${id} value=${value} required onChange=${(event) => setValue(event.currentTarget.value)}>
            <option value="">${t("form.choose")}</option>
            ${options.map((option) => html`<option key=${option} value=${option}>${option}</option>`)}
          </select>`
        : html`<input id=${id} type=${secret ? "password" : "text"} autocomplete=${secret ? "new-password" : "off"} spellcheck="false"
            data-1p-ignore data-lpignore="true" value=${value} onInput=${(event) => setValue(event.currentTarget.value)} />`}
      ${secret ? html`<p class="muted hint">${t("decisions.input.secret")}</p>` : null}
    </div>
    <div class="actions">
      <button type="submit" class="primary" disabled=${!ready}>${t("decisions.send")}</button>
      ${dismiss ? html`<button type="button" class="quiet" disabled=${!ready} onClick=${guard(() => answer({ answer: "dismiss" }))}>${t("decisions.dismiss")}</button>` : null}
    </div>
  </form>`;
}

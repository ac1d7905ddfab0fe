// A form made from a JSON schema, nested as deep as the schema is. What it cannot draw is typed as JSON.
import { FieldErrors, useFieldErrors } from "./form-errors.js";
import { choices, fromLocal, initial, kindOf, opens, resolved, toLocal, Typed, variants } from "./form-values.js";
import { createContext, html, useContext, useMemo, useState } from "./html.js";
import { t } from "./i18n.js";
import { Icon } from "./icons.js";

let forms = 0;

/** Whether fields are called by their titles, as in questions to a person, or by the names of parameters. */
const Titled = createContext(false);

/**
 * The fields of an object's schema. `onChange` gets the next value (see form-values.js). `errors`, `{name: text}`, is what
 * the computer refused; each is shown until its field changes. Hand in a new object for every refusal.
 */
export function Form({ schema, value, onChange, titled = false, errors = null }) {
  const prefix = useMemo(() => `form-${(forms += 1)}`, []);
  const [shown, handlers] = useFieldErrors(prefix, errors);
  const found = resolved(schema, schema);
  return html`<${Titled.Provider} value=${titled}><${FieldErrors.Provider} value=${shown}>
    <div ...${handlers}>
      <${Properties} schema=${found} root=${schema} value=${value ?? {}} onChange=${onChange} path=${prefix} depth=${0} />
    </div>
  <//><//>`;
}

function Properties({ schema, root, value, onChange, path, depth }) {
  const required = new Set(schema.required ?? []);
  const set = (name, next) => {
    const { [name]: _, ...rest } = value;
    onChange(next === undefined ? rest : { ...rest, [name]: next });
  };
  return html`<div class="fields">
    ${Object.entries(schema.properties ?? {}).map(
      ([name, part]) => html`<${Field} key=${name} name=${name} schema=${part} root=${root} required=${required.has(name)}
        value=${value[name]} onChange=${(next) => set(name, next)} path=${`${path}.${name}`} depth=${depth} />`,
    )}
  </div>`;
}

/** A schema with one alternative, or one and "null", is that alternative. */
function simplified(schema, root) {
  const found = resolved(schema, root);
  const options = choices(found) ? null : variants(found);
  if (options?.length !== 1) return found;
  const { anyOf, oneOf, ...rest } = found;
  return { ...resolved(options[0], root), ...rest };
}

function Field({ name, schema, root, required, value, onChange, path, depth }) {
  const found = simplified(schema, root);
  const kind = kindOf(found);
  const Kind = KINDS[kind];
  const titled = useContext(Titled);
  const other = found.title && found.title.toLowerCase().replaceAll(" ", "_") !== name.toLowerCase();
  const title = titled ? (found.title ?? name) : other ? `${found.title} (${name})` : name;
  const props = { schema: found, root, required, value, onChange, path, name, depth };
  const label = html`<span class="name">${title}</span>${required ? html`<span class="required"> ${t("form.required")}</span>` : null}`;
  const about = found.description ? html`<p class="muted hint" id=${`${path}-about`}>${found.description}</p>` : null;
  const error = useContext(FieldErrors)[path];
  const problem = error ? html`<p class="wrong" id=${`${path}-wrong`}>${error}</p>` : null;
  const described = [about && `${path}-about`, problem && `${path}-wrong`].filter(Boolean).join(" ") || null;
  if (GROUPS.has(kind)) {
    return html`<fieldset class="field" id=${path} aria-describedby=${described}><legend>${label}</legend>${about}${problem}<${Kind} ...${props} /></fieldset>`;
  }
  const told = { "aria-describedby": described, "aria-invalid": error ? "true" : null };
  return html`<div class="field"><label for=${path}>${label}</label>${about}<${Kind} ...${props} told=${told} />${problem}</div>`;
}

function Text(props) {
  const { schema, value } = props;
  // A default that is no date and time is shown as the text that it is.
  if (schema.format === "date-time" && (value === undefined || toLocal(value))) return html`<${DateTime} ...${props} />`;
  return html`<${Line} ...${props} />`;
}

function Line({ schema, required, value, onChange, path, told }) {
  const kind = { email: "email", uri: "url", date: "date", time: "time" }[schema.format] ?? "text";
  const props = {
    id: path,
    required,
    value: value ?? "",
    ...told,
    minlength: schema.minLength,
    maxlength: schema.maxLength,
    spellcheck: "false",
    onInput: (event) => onChange(event.currentTarget.value === "" && !required ? undefined : event.currentTarget.value),
  };
  if (kind !== "text") return html`<input type=${kind} pattern=${schema.pattern} ...${props} />`;
  // Enter sends the form, as in every other field; Shift and Enter begin another line.
  const key = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    event.currentTarget.form?.requestSubmit();
  };
  return html`<textarea rows="1" onKeyDown=${key} ...${props}></textarea>`;
}

/** The local time is shown and typed, an instant with its offset is sent. */
function DateTime({ required, value, onChange, path, told }) {
  // The typed text stays until the field is left: another text would interrupt the typing.
  const [rough, setRough] = useState(null);
  const input = (event) => {
    setRough(event.currentTarget.value);
    onChange(fromLocal(event.currentTarget.value));
  };
  return html`<input id=${path} type="datetime-local" step="1" max="9999-12-31T23:59:59" required=${required} value=${rough ?? toLocal(value)} ...${told}
    onInput=${input} onBlur=${() => setRough(null)} />`;
}

function Numeric({ schema, required, value, onChange, path, told }) {
  const text = value instanceof Typed ? value.text : "";
  const [rough, setRough] = useState(null);
  const input = (event) => {
    const typed = new Typed(event.currentTarget.value.trim());
    setRough(event.currentTarget.value);
    onChange(typed.isNumber ? typed : undefined);
  };
  const whole = (schema.type === "integer" || schema.type?.includes?.("integer")) && schema.multipleOf === undefined;
  return html`<input id=${path} type="number" inputmode=${whole ? "numeric" : "decimal"} required=${required} step=${whole ? 1 : (schema.multipleOf ?? "any")}
    min=${schema.minimum} max=${schema.maximum} value=${rough ?? text} ...${told} onInput=${input} onBlur=${() => setRough(null)} />`;
}

function Flag({ required, value, onChange, path, told }) {
  if (required) {
    return html`<input id=${path} type="checkbox" checked=${value === true} ...${told} onChange=${(event) => onChange(event.currentTarget.checked)} />`;
  }
  const next = { yes: true, no: false };
  return html`<select id=${path} value=${value === undefined ? "" : value ? "yes" : "no"} ...${told} onChange=${(event) => onChange(next[event.currentTarget.value])}>
    <option value="">${t("form.leave")}</option>
    <option value="yes">${t("form.yes")}</option>
    <option value="no">${t("form.no")}</option>
  </select>`;
}

function same(left, right) {
  return left === right || (left instanceof Typed && left.text === String(right));
}

function Choice({ schema, required, value, onChange, path, told }) {
  const options = choices(schema);
  const at = options.findIndex((option) => same(value, option.value));
  return html`<select id=${path} required=${required} value=${at < 0 ? "" : String(at)} ...${told}
    onChange=${(event) => onChange(event.currentTarget.value === "" ? undefined : options[Number(event.currentTarget.value)].value)}>
    <option value="">${t(required ? "form.choose" : "form.leave")}</option>
    ${options.map((option, place) => html`<option key=${place} value=${String(place)}>${option.title}</option>`)}
  </select>`;
}

function Several({ schema, value, onChange, path }) {
  const chosen = value ?? [];
  const toggle = (option, on) => onChange(on ? [...chosen, option] : chosen.filter((each) => !same(each, option)));
  return html`<div class="several">
    ${choices(schema.items).map(
      (option, place) => html`<label key=${place}><input type="checkbox" id=${`${path}.${place}`} checked=${chosen.some((each) => same(each, option.value))}
        onChange=${(event) => toggle(option.value, event.currentTarget.checked)} /> ${option.title}</label>`,
    )}
  </div>`;
}

function List({ schema, root, value, onChange, path, name, depth }) {
  const items = value ?? [];
  const set = (at, next) => onChange(items.map((item, place) => (place === at ? next : item)));
  return html`<div class="list">
    ${items.map(
      (item, at) => html`<div class="item" key=${at}>
        <${Field} name=${`${name} ${at + 1}`} schema=${schema.items} root=${root} required=${true} value=${item} onChange=${(next) => set(at, next)} path=${`${path}.${at}`} depth=${depth + 1} />
        <button type="button" class="quiet" aria-label=${t("form.remove.name", { name: `${name} ${at + 1}` })} onClick=${() => onChange(items.filter((_, place) => place !== at))}><${Icon} name="close" /></button>
      </div>`,
    )}
    <button type="button" class="quiet" aria-label=${t("form.add.name", { name })} onClick=${() => onChange([...items, initial(schema.items, root) ?? ""])}>+ ${t("form.add")}</button>
  </div>`;
}

function Nested({ schema, root, required, value, onChange, path, name, depth }) {
  if (value === undefined && (!required || !opens(schema, depth + 1))) {
    return html`<button type="button" class="quiet" aria-label=${t("form.add.name", { name })} onClick=${() => onChange(initial(schema, root) ?? {})}>+ ${t("form.add")}</button>`;
  }
  return html`<div class="nested">
    <${Properties} schema=${schema} root=${root} value=${value ?? {}} onChange=${onChange} path=${path} depth=${depth + 1} />
    ${required ? null : html`<button type="button" class="quiet" aria-label=${t("form.remove.name", { name })} onClick=${() => onChange(undefined)}>${t("form.remove")}</button>`}
  </div>`;
}

function Variants({ schema, root, required, value, onChange, path, name, depth }) {
  const options = variants(schema).map((each) => resolved(each, root));
  const [at, setAt] = useState(required && depth < 2 ? 0 : -1);
  const pick = (next) => {
    setAt(next);
    onChange(next < 0 ? undefined : initial(options[next], root));
  };
  const title = (option, place) => option.title ?? option.type ?? String(place + 1);
  return html`<div class="nested">
    <select aria-label=${`${name}: ${t("form.variant")}`} value=${String(at)} onChange=${(event) => pick(Number(event.currentTarget.value))}>
      ${required && at >= 0 ? null : html`<option value="-1">${t(required ? "form.choose" : "form.leave")}</option>`}
      ${options.map((option, place) => html`<option key=${place} value=${String(place)}>${title(option, place)}</option>`)}
    </select>
    ${at < 0 ? null : html`<${Field} name=${name} schema=${options[at]} root=${root} required=${true} value=${value} onChange=${onChange} path=${`${path}.${at}`} depth=${depth + 1} />`}
  </div>`;
}

function Json({ required, value, onChange, path, told }) {
  const [text, setText] = useState(() => (value === undefined ? "" : JSON.stringify(value, null, 2)));
  const input = (event) => {
    const typed = event.currentTarget.value;
    setText(typed);
    let problem = "";
    try {
      onChange(typed.trim() === "" ? undefined : JSON.parse(typed));
    } catch {
      problem = t("form.wrong.json");
    }
    event.currentTarget.setCustomValidity(problem);
  };
  return html`<textarea id=${path} class="mono" rows="3" required=${required} value=${text} placeholder="JSON" spellcheck="false" ...${told} onInput=${input}></textarea>`;
}

function Constant({ schema, path }) {
  return html`<output id=${path} class="mono">${JSON.stringify(schema.const)}</output>`;
}

const KINDS = {
  string: Text,
  number: Numeric,
  integer: Numeric,
  boolean: Flag,
  choice: Choice,
  several: Several,
  list: List,
  object: Nested,
  variants: Variants,
  json: Json,
  const: Constant,
};
const GROUPS = new Set(["several", "list", "object", "variants"]);

// Says what is wrong with a field: at the field, and in the page's own words.
import { createContext, useEffect, useState } from "./html.js";
import { t } from "./i18n.js";

/** The errors of a form, by the ids of its fields. */
export const FieldErrors = createContext({});

const TYPES = { email: "email", url: "url", date: "date", "datetime-local": "datetime", time: "time", number: "number" };

/** What a control says of itself, or null if nothing is wrong with it. */
export function wrong(control) {
  const { validity } = control;
  if (validity.valid) return null;
  if (validity.customError) return control.validationMessage;
  if (validity.badInput || validity.typeMismatch) return t(`form.wrong.${TYPES[control.type] ?? "format"}`);
  if (validity.valueMissing) return t(control.tagName === "SELECT" ? "form.wrong.choose" : "form.wrong.missing");
  if (validity.tooShort) return t("form.wrong.short", { count: control.minLength });
  if (validity.tooLong) return t("form.wrong.long", { count: control.maxLength });
  if (validity.rangeUnderflow) return t("form.wrong.least", { value: control.min });
  if (validity.rangeOverflow) return t("form.wrong.most", { value: control.max });
  if (validity.stepMismatch) return control.step === "1" ? t("form.wrong.whole") : t("form.wrong.step", { value: control.step });
  return t("form.wrong.format");
}

/**
 * The errors of a form: those that the browser finds when the form is sent, and those that are handed in as
 * `{name: text}`. The ids of the fields begin with `prefix`. Returns the errors, and handlers for the element around the fields.
 */
export function useFieldErrors(prefix, handed) {
  const [errors, setErrors] = useState({});
  useEffect(() => {
    const found = Object.fromEntries(Object.entries(handed ?? {}).map(([name, text]) => [`${prefix}.${name}`, text]));
    setErrors(found);
    first(Object.keys(found).map((id) => document.getElementById(id)))?.focus();
  }, [handed]);
  const onInvalidCapture = (event) => {
    const control = event.target;
    event.preventDefault(); // the browser's own bubble
    setErrors((before) => ({ ...before, [control.id]: wrong(control) }));
    if (control === [...control.form.elements].find((each) => each.willValidate && !each.validity.valid)) control.focus();
  };
  const changed = (target) =>
    setErrors((before) => {
      const stale = Object.keys(before).filter((id) => id === target.id || target.id.startsWith(`${id}.`));
      if (!stale.length) return before;
      const rest = Object.fromEntries(Object.entries(before).filter(([id]) => !stale.includes(id)));
      const text = wrong(target);
      return text ? { ...rest, [target.id]: text } : rest;
    });
  // Drawing a select or a checkbox between its two events would undo the choice: it is checked after the second event.
  const onInput = ({ target }) => target.tagName === "SELECT" || target.type === "checkbox" || changed(target);
  return [errors, { onInvalidCapture, onInput, onChange: ({ target }) => changed(target) }];
}

/** The control that is first on the page, of fields or groups of fields. */
function first(fields) {
  const controls = fields.filter(Boolean).map((field) => (field.tagName === "FIELDSET" ? field.querySelector("input, select, textarea, button") : field));
  return controls.filter(Boolean).sort((left, right) => (left.compareDocumentPosition(right) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1))[0];
}

// Rules in the reader's words. The computer sends a key and its values for each condition.
import { t } from "./i18n.js";

/** One condition as a sentence. */
export function phrase({ key, name, value, parts }) {
  const said = parts.length ? parts.map(phrase).join(t("rule.and")) : value;
  return t(`rule.${key}`, { name: name || t("rule.item"), value: said });
}

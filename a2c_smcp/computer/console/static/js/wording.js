// What the computer says in English to programs, said to people in the page's own words, where there are some.
import { t } from "./i18n.js";
import { who } from "./who.js";

const SAID = ["calls", "result", "text", "document"];

/** Why the computer refused what was asked at `path`. Details may be those of a stranger: a document server. */
export function refusal(path, message, details) {
  if (SAID.includes(details?.says)) return t(`refused.${details.says}`);
  if (path !== "answer" || !details?.decision_id) return message;
  return details.outcome ? t(`decisions.was.${details.outcome}`, { by: who(details.by) }) : t("refused.changed");
}

/** What happened that nobody asked for. */
export function notice({ says, text, ...values }) {
  return says ? t(`notice.${says}`, values) : text;
}

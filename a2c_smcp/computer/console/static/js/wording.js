// The computer's English messages for programs, in the page's own words where there are some.
import { t } from "./i18n.js";
import { who } from "./who.js";

const SAID = ["calls", "result", "text", "document"];

/** Why the computer refused a request to `path`. The details may come from a stranger, such as a document server. */
export function refusal(path, message, details) {
  if (SAID.includes(details?.says)) return t(`refused.${details.says}`);
  if (path !== "answer" || !details?.decision_id) return message;
  return details.outcome ? t(`decisions.was.${details.outcome}`, { by: who(details.by) }) : t("refused.changed");
}

/** What happened that nobody asked for. */
export function notice({ says, text, ...values }) {
  return says ? t(`notice.${says}`, values) : text;
}

// The computer's English messages for programs, in the page's own words where there are some.
import { t } from "./i18n.js";
import { current } from "./store.js";
import { who } from "./who.js";

const SAID = ["rule", "calls", "result", "text", "document"];

/** Why the computer refused a request to `path`. The details may come from a stranger, such as a document server. */
export function refusal(path, message, details) {
  if (SAID.includes(details?.says)) return t(`refused.${details.says}`);
  if (path !== "answer" || !details?.decision_id) return message;
  if (!details.outcome) return t("refused.changed");
  const decision = current().pending.find((each) => each.id === details.decision_id);
  return t(`decisions.was.${outcomeKey(decision, details)}`, { by: who(details.by) });
}

/** What was decided, in the word for this kind: a call is allowed, a value is sent, a person signs in. */
export function outcomeKey(decision, { outcome, always }) {
  const said = outcome === "accepted" || outcome === "declined";
  if (said && always) return outcome === "accepted" ? "always" : "never";
  if (!said || !decision || decision.kind === "confirmation") return outcome;
  const kind = decision.url && decision.kind === "question" ? "page" : decision.kind;
  return `${outcome}.${kind}`;
}

/** What happened that nobody asked for. */
export function notice({ says, text, ...values }) {
  return says ? t(`notice.${says}`, values) : text;
}

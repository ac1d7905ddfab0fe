// What a person has typed for a decision, until it is sent or put away. It outlives the card: it is still there after a
// timeout, a withdrawal, a lost connection, or a look at another view. It is only in the memory of this tab.
import { useRedraw } from "./html.js";

const drafts = new Map();

/** `[value, set, isTyped]` for a decision; `first` makes the value that a form begins with. A `secret` is never shown. */
export function useDraft(id, first, secret = false) {
  const draw = useRedraw();
  if (!drafts.has(id)) drafts.set(id, { value: first(), typed: false });
  const draft = drafts.get(id) ?? { value: first(), typed: false };
  const set = (value) => {
    drafts.set(id, { value, typed: true, secret });
    draw();
  };
  return [draft.value, set, draft.typed];
}

export function isTyped(id) {
  return drafts.get(id)?.typed ?? false;
}

export function dropDraft(id) {
  drafts.delete(id);
}

/** All that was typed and not sent: `{text, secret}`. */
export function typedTexts() {
  return [...drafts.values()].filter((draft) => draft.typed).map(({ value, secret }) => ({ text: asText(value), secret }));
}

/** A value of a form as a person would paste it somewhere else. */
export function asText(value) {
  if (typeof value === "string") return value;
  return Object.entries(value ?? {})
    .map(([name, each]) => `${name}: ${plain(each)}`)
    .join("\n");
}

function plain(value) {
  if (typeof value === "string") return value;
  return typeof value?.text === "string" ? value.text : JSON.stringify(value);
}

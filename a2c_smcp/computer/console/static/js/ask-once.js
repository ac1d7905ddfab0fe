// A button that asks once more, in its own place, before it does something that is hard to undo.
import { html, useEffect, useRef, useState } from "./html.js";
import { t } from "./i18n.js";

/**
 * `label` is on the button and `name` says what it acts on; `question` is asked, and `act` is done after a yes. With `more`, another
 * button has that label: then `act(true)` is done.
 */
export function AskOnce({ label, name, question, keep, busy, act, more }) {
  const [asking, setAsking] = useState(false);
  const first = useRef(null);
  const no = useRef(null);
  const asked = useRef(false);
  useEffect(() => {
    // The focus goes to the answer that changes nothing, and back afterwards.
    if (asking) no.current?.focus();
    else if (asked.current) first.current?.focus();
    asked.current = asking;
  }, [asking]);
  if (!asking) {
    return html`<button ref=${first} type="button" class="small quiet" disabled=${busy} aria-label=${name} onClick=${() => setAsking(true)}>${label}</button>`;
  }
  const yes = async (all) => {
    await act(all);
    setAsking(false);
  };
  return html`<span class="ask-once" role="group" aria-label=${question}>
    <span>${question}</span>
    <button type="button" class="small danger" disabled=${busy} aria-label=${t("ask.yes.name", { name })} onClick=${() => yes(false)}>${label}</button>
    ${more ? html`<button type="button" class="small danger" disabled=${busy} onClick=${() => yes(true)}>${more}</button>` : null}
    <button ref=${no} type="button" class="small" disabled=${busy} aria-label=${keep} onClick=${() => setAsking(false)}>${t("ask.no")}</button>
  </span>`;
}

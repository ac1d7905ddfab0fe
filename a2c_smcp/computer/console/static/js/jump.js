// One key that leads from anywhere on the page to the decision that waits.
import { useEffect } from "./html.js";
import { go } from "./router.js";

export const JUMP_KEY = "F8";

function shownCard(id) {
  const wanted = id === null ? ".decision:not([data-decided])" : `.decision[data-decision="${CSS.escape(id)}"]`;
  return [...document.querySelectorAll(wanted)].find((card) => card.getClientRects().length > 0);
}

/** Put the focus on the card of a decision, or of the first one that waits. Not on a button: no key must decide by accident. */
export async function jump(id = null) {
  if (!shownCard(id)) go("decisions"); // on a narrow screen they have a view of their own
  for (let look = 0; look < 60; look += 1) {
    const card = shownCard(id);
    if (card) {
      card.focus();
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 16));
  }
}

/** Makes the key work on the whole page while `waiting` is true. */
export function useJumpKey(waiting) {
  useEffect(() => {
    if (!waiting) return undefined;
    const pressed = (event) => {
      if (event.key !== JUMP_KEY || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      jump();
    };
    addEventListener("keydown", pressed, true);
    return () => removeEventListener("keydown", pressed, true);
  }, [waiting]);
}

// How long something has run. One clock draws all of them.
import { html, useEffect, useRedraw } from "./html.js";
import { duration } from "./i18n.js";
import { serverNow } from "./store.js";

const shown = new Set();
let clock = null;

function tick() {
  for (const draw of shown) draw();
}

/** The time since `since`, in seconds of the computer's clock. */
export function Elapsed({ since }) {
  const draw = useRedraw();
  useEffect(() => {
    shown.add(draw);
    clock ??= setInterval(tick, 200);
    return () => {
      shown.delete(draw);
      if (shown.size) return;
      clearInterval(clock);
      clock = null;
    };
  }, []);
  return html`<span class="time mono">${duration(Math.max(0, serverNow() - since))}</span>`;
}

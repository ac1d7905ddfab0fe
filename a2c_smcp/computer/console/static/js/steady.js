// Buttons that decide something. Such a button takes no click in the half second after it appeared or moved: that click
// was meant for what was there before. Boxes are compared in each frame, and again when a click comes.
import { html, useEffect, useRedraw, useRef } from "./html.js";

/** How long a button takes no click after it moved, in milliseconds. */
const DEAF = 500;
/** How far a box may drift before it has moved, in pixels: less is rounding. */
const DRIFT = 0.5;

const watched = new Set();
let frame = 0;

/** Make every button wait: the page came to the front, or what covered the buttons has gone. */
export function deafenAll() {
  const now = performance.now();
  for (const each of watched) each.deafen(now);
}

// A bar of the browser, or a zoom with two fingers, moves the whole page, although no box in it has moved.
for (const [place, event] of [[window, "focus"], [window, "resize"], [visualViewport, "resize"], [visualViewport, "scroll"]]) {
  place?.addEventListener(event, deafenAll);
}
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && deafenAll());

function look() {
  const now = performance.now();
  for (const each of watched) each.look(now);
  frame = watched.size ? requestAnimationFrame(look) : 0;
}

class Watched {
  constructor(element, changed) {
    this.element = element;
    this.changed = changed; // called when it begins or ceases to listen
    this.box = element.getBoundingClientRect();
    this.front = performance.now() + DEAF; // since it is there, and in front
    this.until = this.front; // since it stands still
    this.listens = false;
    this.pressed = false; // whether it listened when the pointer went down on it
  }

  deafen(now) {
    this.front = this.until = now + DEAF;
    this.tell(now);
  }

  look(now) {
    const { x, y, width, height } = this.element.getBoundingClientRect();
    const { box } = this;
    const far = Math.max(Math.abs(x - box.x), Math.abs(y - box.y), Math.abs(width - box.width), Math.abs(height - box.height));
    if (far > DRIFT) {
      this.box = { x, y, width, height };
      this.until = now + DEAF;
    }
    this.tell(now);
  }

  tell(now) {
    const listens = now >= this.until;
    if (listens === this.listens) return;
    this.listens = listens;
    this.changed();
  }

  /** Whether a person meant this button with this click. */
  isMeant(event) {
    if (!event.isTrusted) return false;
    if (event.detail === 0) return happened(event) >= this.front && hasFocus(this.element);
    return this.pressed && this.hears(event);
  }

  press(event) {
    this.pressed = this.hears(event);
  }

  hears(event) {
    this.look(performance.now());
    return happened(event) >= this.until;
  }
}

/** When the person clicked, not when the page handled the event. */
function happened(event) {
  return Math.min(event.timeStamp, performance.now());
}

/** A key answers the card that has the focus, wherever that card is by now. */
function hasFocus(element) {
  return (element.closest("[data-decision]") ?? element).contains(document.activeElement);
}

/** A button for a decision: `onAnswer` is called for a click that was meant. `ready` says whether it can be pressed. */
export function SteadyButton({ onAnswer, ready = true, children, ...props }) {
  const element = useRef(null);
  const entry = useRef(null);
  const draw = useRedraw();
  useEffect(() => {
    entry.current = new Watched(element.current, draw);
    watched.add(entry.current);
    frame ||= requestAnimationFrame(look);
    return () => watched.delete(entry.current);
  }, []);
  const click = (event) => {
    if (ready && entry.current?.isMeant(event)) onAnswer?.(event);
    else event.preventDefault(); // a form is not sent either
  };
  // Not `disabled`: the focus would be lost whenever something moves.
  return html`<button ref=${element} type="button" ...${props} aria-disabled=${ready && entry.current?.listens ? null : "true"} onPointerDown=${(event) => entry.current?.press(event)} onClick=${click}>${children}</button>`;
}

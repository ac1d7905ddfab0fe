// Small parts that all views use.
import { html, useEffect, useRedraw, useRef, useState } from "./html.js";
import { Icon } from "./icons.js";
import { t } from "./i18n.js";

/** Draws the component again and again, for clocks. */
export function useTick(milliseconds, running = true) {
  const tick = useRedraw();
  useEffect(() => {
    if (!running) return undefined;
    const timer = setInterval(tick, milliseconds);
    return () => clearInterval(timer);
  }, [milliseconds, running]);
}

/**
 * What `load` resolves to. It is called again when `keys` change, with at least `pause` milliseconds in between.
 * The last good value stays while a new one is loaded, and if that fails.
 */
export function useLoaded(load, keys, pause = 0) {
  const [state, setState] = useState({ value: null, error: null, loading: true });
  const last = useRef(-Infinity);
  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(
      async () => {
        last.current = performance.now();
        try {
          const value = await load(stop.signal);
          if (!stop.signal.aborted) setState({ value, error: null, loading: false });
        } catch (error) {
          if (!stop.signal.aborted) setState((before) => ({ ...before, error: error.message, loading: false }));
        }
      },
      Math.max(0, last.current + pause - performance.now()),
    );
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, keys);
  return state;
}

/** An action that may fail: `[run, isBusy, message, error]`. `run` resolves to whether it was done. */
export function useAction(action) {
  const [state, setState] = useState({ busy: false, error: null });
  const run = async (...given) => {
    setState({ busy: true, error: null });
    try {
      await action(...given);
      setState({ busy: false, error: null });
      return true;
    } catch (error) {
      setState({ busy: false, error });
      return false;
    }
  };
  return [run, state.busy, state.error?.message ?? null, state.error];
}

export function Problem({ text }) {
  return text ? html`<p class="problem" role="alert">${t("parts.error", { reason: text })}</p>` : null;
}

export function Empty({ icon, title, hint }) {
  return html`<div class="empty">
    <${Icon} name=${icon} />
    <p>${title}</p>
    ${hint ? html`<p class="muted">${hint}</p>` : null}
  </div>`;
}

export function Loading() {
  return html`<p class="muted loading">${t("parts.loading")}</p>`;
}

export function Chip({ tone = "plain", children }) {
  return html`<span class=${`chip ${tone}`}>${children}</span>`;
}

/** A text that others wrote: exact, scrollable, and reached with the keyboard. */
export function Block({ text, label, copy = false }) {
  return html`<div class="block">
    <pre tabindex="0" role="group" aria-label=${label}>${text}</pre>
    ${copy ? html`<${Copy} text=${text} />` : null}
  </div>`;
}

export function Copy({ text, class: name = "quiet copy" }) {
  const [done, setDone] = useState(false);
  useEffect(() => {
    if (!done) return undefined;
    const timer = setTimeout(() => setDone(false), 1500);
    return () => clearTimeout(timer);
  }, [done]);
  if (!navigator.clipboard) return null;
  const copy = () => navigator.clipboard.writeText(text).then(() => setDone(true)).catch(() => {});
  return html`<button type="button" class=${name} onClick=${copy}>${t(done ? "parts.copied" : "parts.copy")}</button>`;
}

/** A button that opens what is below it. */
export function Fold({ title, open = false, children, class: name = "" }) {
  return html`<details class=${`fold ${name}`} open=${open}>
    <summary><${Icon} name="chevron" />${title}</summary>
    ${children}
  </details>`;
}

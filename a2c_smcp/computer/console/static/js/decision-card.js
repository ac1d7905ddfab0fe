// One decision: who asks, what for, exactly with what, and how long there is time.
import { post } from "./api.js";
import { html, useEffect, useLayoutEffect, useRef } from "./html.js";
import { InputForm, QuestionForm } from "./decision-forms.js";
import { duration, t } from "./i18n.js";
import { Block, Chip, Problem, useAction, useTick } from "./parts.js";
import { useDeaf } from "./still.js";
import { forgetDecision, serverNow, useStore } from "./store.js";
import { who } from "./who.js";

const LINGER = 4_000;

export function DecisionCard({ decision, gone, place, held }) {
  const element = useRef(null);
  const [listens, guard] = useDeaf(element, place);
  const live = useStore((state) => state.status === "live");
  const [answer, busy, error] = useAction((given) =>
    post("answer", { id: decision.id, digest: decision.digest, ...given }),
  );
  const open = !decision.decided && !gone;
  useLinger(decision, held);
  useFocusKept(element, open);
  const ready = open && listens && live && !busy;
  const Body = { confirmation: Confirmation, question: Question, input: MissingInput }[decision.kind];
  return html`<li ref=${element} tabindex="-1" class=${`card decision ${decision.kind}`} data-decided=${open ? null : ""} data-decision=${decision.id}>
    <${Body} decision=${decision} open=${open} ready=${ready} guard=${guard} answer=${answer} />
    ${open ? html`<${TimeLeft} decision=${decision} />` : html`<${Outcome} decided=${decision.decided} kind=${decision.kind} />`}
    <${Problem} text=${open ? error : null} />
  </li>`;
}

/** Puts a decided card away after a while, but never while the pointer is among the cards. */
function useLinger(decision, held) {
  useEffect(() => {
    if (!decision.decided || held) return undefined;
    const timer = setTimeout(() => forgetDecision(decision.id), LINGER);
    return () => clearTimeout(timer);
  }, [decision.decided, held]);
}

/** Whoever answered with the keyboard stays where they are when the buttons go. */
function useFocusKept(element, open) {
  const inside = useRef(false);
  useLayoutEffect(() => {
    if (!open && inside.current && document.activeElement === document.body) element.current?.focus();
  }, [open]);
  useEffect(() => {
    const note = () => {
      inside.current = element.current?.contains(document.activeElement) ?? false;
    };
    element.current?.addEventListener("focusin", note);
    return () => element.current?.removeEventListener("focusin", note);
  }, []);
}

function Confirmation({ decision, open, ready, guard, answer }) {
  const { call } = decision;
  const agent = call.agent ?? t("decisions.agent");
  const none = call.arguments === "{}";
  return html`<div>
    <p class="asks"><span class="avatar" aria-hidden="true">${[...agent][0]}</span>${t("decisions.asks", { agent })}</p>
    <h3 class="mono">${call.tool}</h3>
    <p class="muted">${t("decisions.of", { server: call.server ?? "" })}</p>
    ${none
      ? html`<p class="muted">${t("decisions.noarguments")}</p>`
      : html`<${Block} text=${call.arguments} label=${t("decisions.arguments")} />`}
    ${open
      ? html`<div class="actions">
          <button type="button" class="primary" disabled=${!ready} onClick=${guard(() => answer({ answer: "yes" }))}>${t("decisions.yes")}</button>
          <button type="button" class="danger" disabled=${!ready} onClick=${guard(() => answer({ answer: "no" }))}>${t("decisions.no")}</button>
          <button type="button" class="quiet" disabled=${!ready} title=${t("decisions.always.hint")} onClick=${guard(() => answer({ answer: "always" }))}>${t("decisions.always")}</button>
        </div>`
      : null}
  </div>`;
}

function Question({ decision, open, ready, guard, answer }) {
  const calls = (decision.call ? [decision.call] : decision.calls).map((call) => `${call.tool}${call.agent ? ` (${call.agent})` : ""}`);
  return html`<div>
    <p class="asks"><span class="avatar" aria-hidden="true">?</span>${t("decisions.question", { server: decision.server })}</p>
    <p class="message">${decision.message}</p>
    ${calls.length ? html`<p class="muted">${t("decisions.question.during", { calls: calls.join(", ") })}</p>` : null}
    ${open ? html`<${QuestionForm} decision=${decision} ready=${ready} guard=${guard} answer=${answer} />` : null}
  </div>`;
}

function MissingInput({ decision, open, ready, guard, answer }) {
  return html`<div>
    <p class="asks"><span class="avatar" aria-hidden="true">…</span>${t("decisions.input")}</p>
    <h3 class="mono">${decision.input.id}</h3>
    ${decision.input.description ? html`<p class="message">${decision.input.description}</p>` : null}
    <p class="muted">${t("decisions.input.for", { servers: decision.servers.join(", ") })}</p>
    ${open ? html`<${InputForm} definition=${decision.input} ready=${ready} guard=${guard} answer=${answer} />` : null}
  </div>`;
}

function TimeLeft({ decision }) {
  useTick(250);
  if (decision.deadline === null) return html`<p class="left muted">${t("decisions.nolimit")}</p>`;
  const left = Math.max(0, decision.deadline - serverNow());
  const whole = Math.max(0.001, decision.deadline - decision.asked_at);
  return html`<div class="left">
    <progress max="1" value=${Math.min(1, left / whole)} aria-hidden="true"></progress>
    <span class="muted">${t("decisions.left", { time: duration(Math.ceil(left)) })}</span>
  </div>`;
}

function Outcome({ decided, kind }) {
  const { outcome, by, always } = decided ?? { outcome: "over" };
  const key = outcome === "accepted" && always ? "always" : outcome;
  const tone = { accepted: "ok", declined: "bad", unanswered: "warn", failed: "bad" }[outcome] ?? "plain";
  return html`<p class="outcome" role="status"><${Chip} tone=${tone}>${t(`decisions.was.${key}`, { by: who(by) })}<//></p>`;
}

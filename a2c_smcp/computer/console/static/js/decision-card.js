// One decision: who asks for what, the exact arguments, and the time that is left. Then the outcome.
import { post } from "./api.js";
import { Confirmation, UndoRule } from "./confirmation.js";
import { InputForm, QuestionForm, SignInForm } from "./decision-forms.js";
import { dropDraft, isTyped } from "./drafts.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./html.js";
import { duration, t } from "./i18n.js";
import { Chip, Problem, useAction, useTick } from "./parts.js";
import { forgetDecision, serverNow, useStore } from "./store.js";
import { who } from "./who.js";
import { outcomeKey } from "./wording.js";
import { Name, Said, Words } from "./words.js";

export function DecisionCard({ decision, gone, held, near }) {
  const element = useRef(null);
  const live = useStore((state) => state.status === "live");
  const [answer, busy, , refusal] = useAction((given) => post("answer", { id: decision.id, digest: decision.digest, ...given }));
  const open = !decision.decided && !gone;
  const [unfolded, setUnfolded] = useState(false);
  const folded = !open && !unfolded;
  const height = useHeightKept(element, open, near);
  useLinger(decision, held);
  useFocusKept(element, open);
  const ready = open && live && !busy;
  const Body = { confirmation: Confirmation, question: Question, input: MissingInput, sign_in: SignIn }[decision.kind];
  return html`<li ref=${element} tabindex="-1" class=${`card decision ${decision.kind}`} style=${{ minHeight: height }} data-decided=${open ? null : ""} data-folded=${folded ? "" : null} data-decision=${decision.id}>
    <${Body} decision=${decision} open=${open} folded=${folded} ready=${ready} answer=${answer} refusal=${refusal} />
    ${open ? html`<${TimeLeft} decision=${decision} />` : html`<${Outcome} decision=${decision} /><${Unfold} decision=${decision} open=${unfolded} onToggle=${() => setUnfolded(!unfolded)} />`}
    <${Problem} text=${open && !isAtItsField(decision, refusal) ? refusal?.message : null} />
  </li>`;
}

/** Whether the form shows this refusal beside the field that it is about. */
function isAtItsField(decision, refusal) {
  return Object.hasOwn(decision.schema?.properties ?? {}, refusal?.details?.field ?? "");
}

/** What a decided call was: the card has folded. */
function Unfold({ decision, open, onToggle }) {
  if (decision.kind !== "confirmation") return null;
  const named = t("decisions.unfold.name", { tool: decision.call.tool.text });
  return html`<button type="button" class="small quiet" aria-expanded=${open} aria-label=${named} onClick=${onToggle}>${t("decisions.unfold")}</button>`;
}

/** The height that a decided card keeps while the pointer is near, so that nothing below it jumps up. */
function useHeightKept(element, open, near) {
  const kept = useRef(null);
  // Read before it is drawn without its buttons.
  if (!open && kept.current === null && element.current) kept.current = `${element.current.getBoundingClientRect().height}px`;
  if (!open && !near) kept.current = "";
  return open ? "" : (kept.current ?? "");
}

/** Puts a decided card away after some seconds, unless somebody is at the cards, or typed something that was not sent. */
function useLinger({ id, decided }, held) {
  useEffect(() => {
    if (!decided || held || isTyped(id)) return undefined;
    const timer = setTimeout(() => (dropDraft(id), forgetDecision(id)), decided.always ? 20_000 : 4_000); // a rule can be undone
    return () => clearTimeout(timer);
  }, [decided, held]);
}

/** Keeps the focus on the card when its buttons go: the person may have answered with the keyboard. */
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

function Question({ decision, open, folded, ready, answer, refusal }) {
  return html`<div>
    <p class="asks"><span class="avatar" aria-hidden="true">?</span>${t("decisions.question")}</p>
    <h3><${Name} of=${decision.server} /></h3>
    ${folded ? null : (decision.call ? [decision.call] : decision.calls).map((call) => html`<p key=${call.id} class="muted">${t("decisions.question.during")} <${Name} of=${call.tool} /> ${call.claimed ? `· ${t("calls.claimed")}` : null} ${call.agent ? html`<${Name} of=${call.agent} />` : null}</p>`)}
    ${folded ? null : html`<${Said} by=${decision.server}><p class="message"><${Words} of=${decision.message} /></p><//>`}
    ${decision.secret && !folded ? html`<p class="danger-sign">${t("decisions.question.secret")}</p>` : null}
    <${QuestionForm} ...${{ decision, open, ready, answer, refusal }} />
  </div>`;
}

function SignIn(props) {
  const { decision } = props;
  return html`<div><h3>${t(decision.step_up ? "decisions.signin.more" : "decisions.signin")} <${Name} of=${decision.server} /></h3>
    <${SignInForm} ...${props} />
  </div>`;
}

function MissingInput({ decision, open, folded, ready, answer }) {
  const put = () => forgetDecision(decision.id);
  return html`<div>
    <p class="asks"><span class="avatar" aria-hidden="true">…</span>${t("decisions.input")}</p>
    <h3 class="mono">${decision.input.id}</h3>
    ${decision.input.description && !folded ? html`<p class="message">${decision.input.description}</p>` : null}
    ${folded ? null : html`<p class="muted">${t("decisions.input.for", { servers: decision.servers.join(", ") })}</p>`}
    <${InputForm} draft=${decision.id} definition=${decision.input} ...${{ open, ready, answer }} onPutAway=${put} />
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

function Outcome({ decision }) {
  const { outcome, by, always, reason, rule } = decision.decided ?? { outcome: "over" };
  const key = outcomeKey(decision, { outcome, always });
  const tone = { accepted: "ok", declined: "bad", unanswered: "warn", failed: "bad" }[outcome] ?? "plain";
  return html`<div class="outcome">
    <p role="status"><${Chip} tone=${tone}>${t(`decisions.was.${key}`, { by: who(by) })}<//>${reason ? html` <span class="muted">${t("decisions.was.reason", { reason })}</span>` : null}</p>
    ${rule ? html`<${UndoRule} decision=${decision} />` : null}
  </div>`;
}

// A notification and a sound for a new decision, if the person has turned them on. Of several tabs one gives them.
import { useEffect, useListener, useRef, useState } from "./html.js";
import { t } from "./i18n.js";
import { jump } from "./jump.js";
import { isLeading } from "./live.js";
import { useStore } from "./store.js";
import { agentOf } from "./who-called.js";

const KEPT = "a2c-alerts";
const FRONT = "a2c-front";
/** An agent may ask very often, so that a person must not be flooded outside of this page. Times are in milliseconds. */
const MOST = { notifications: 5, nameLength: 80, silenceAfterSound: 2_000 };

/** Whether notifications work here: "ok", "insecure" (plain HTTP), "denied" by the person, or "missing". */
export function notificationsHere() {
  if (!window.isSecureContext) return "insecure";
  if (typeof Notification === "undefined") return "missing";
  return Notification.permission === "denied" ? "denied" : "ok";
}

function kept() {
  try {
    const found = JSON.parse(localStorage.getItem(KEPT) ?? "{}");
    return { notify: found?.notify === true, sound: found?.sound === true };
  } catch {
    return { notify: false, sound: false };
  }
}

/** The person's choice, `{notify, sound}`, and how to change it; asks the browser when notifications are switched on. */
export function useChoice() {
  const [choice, setChoice] = useState(kept);
  useListener(window, ["storage"], (event) => event.key === KEPT && setChoice(kept())); // another tab changed it
  const choose = async (change) => {
    const next = { ...kept(), ...change };
    if (change.notify) next.notify = (await Notification.requestPermission()) === "granted";
    localStorage.setItem(KEPT, JSON.stringify(next));
    setChoice(next);
    if (change.sound) sound();
  };
  const allowed = choice.notify && notificationsHere() === "ok" && Notification.permission === "granted";
  return [{ notify: allowed, sound: choice.sound }, choose];
}

/** Gives the alerts of one tab for what is pending, while the component is there. */
export function useAlerts({ notify, sound: loud }) {
  const pending = useStore((state) => state.pending);
  const known = useStore((state) => state.number >= 0);
  const seen = useRef(null);
  const shown = useRef(new Map());
  useFront();
  useEffect(() => {
    if (!known) return;
    const waiting = pending.filter((decision) => !decision.decided);
    const fresh = seen.current === null ? [] : waiting.filter((decision) => !seen.current.has(decision.id));
    seen.current = new Set(pending.map((decision) => decision.id));
    const open = new Set(waiting.map((decision) => decision.id));
    for (const id of shown.current.keys()) if (!open.has(id)) close(shown.current, id);
    if (!fresh.length || !isLeading()) return;
    if (loud) sound();
    if (notify) fresh.forEach((decision) => announce(shown.current, decision, () => seen.current.has(decision.id)));
  }, [pending, known]);
  useListener(window, ["pagehide"], () => [...shown.current.keys()].forEach((id) => close(shown.current, id)));
}

// --- notifications

async function announce(shown, decision, stillKnown) {
  if ((await isInFront()) || !stillKnown() || shown.size >= MOST.notifications) return;
  const body = words(decision);
  let notification;
  try {
    notification = new Notification(t("alerts.title"), { body, tag: decision.id, requireInteraction: true });
  } catch {
    return; // on phones this needs a service worker
  }
  shown.set(decision.id, notification);
  notification.onclick = () => {
    window.focus();
    jump(decision.id);
    close(shown, decision.id);
  };
  notification.onclose = () => shown.delete(decision.id);
}

function close(shown, id) {
  shown.get(id)?.close();
  shown.delete(id);
}

/** Who asks for what. Never the arguments: anybody near the screen could read them. */
function words(decision) {
  if (decision.kind === "question") return `${t("decisions.question")}: ${name(decision.server.text)}`;
  if (decision.kind === "input") return `${t("decisions.input")}: ${name(decision.input.id)}`;
  if (decision.kind === "sign_in") return `${t("decisions.signin")} ${name(decision.server.text)}`;
  const { tool, server } = decision.call;
  return t("alerts.call", { agent: agentOf(decision.call, name), tool: name(tool.text), server: name(server.text) });
}

/** A name that others chose: short, and without characters that hide or turn the text around them. */
function name(text) {
  const plain = [...text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "")];
  return plain.length > MOST.nameLength ? `${plain.slice(0, MOST.nameLength).join("")}…` : plain.join("");
}

// --- whether any tab of this page is in front: such a tab holds a lock, which other tabs can see

function isFront() {
  return document.visibilityState === "visible" && document.hasFocus();
}

async function isInFront() {
  if (isFront() || !navigator.locks) return isFront();
  const { held } = await navigator.locks.query();
  return held.some((lock) => lock.name === FRONT);
}

function useFront() {
  useEffect(() => {
    if (!navigator.locks) return undefined;
    let release = null;
    const look = () => {
      if (isFront() && !release) {
        const over = new Promise((resolve) => (release = resolve));
        navigator.locks.request(FRONT, { mode: "shared" }, () => over);
      } else if (!isFront() && release) {
        release();
        release = null;
      }
    };
    look();
    addEventListener("focus", look);
    addEventListener("blur", look);
    document.addEventListener("visibilitychange", look);
    return () => {
      removeEventListener("focus", look);
      removeEventListener("blur", look);
      document.removeEventListener("visibilitychange", look);
      release?.();
    };
  }, []);
}

// --- the sound: two short tones

let audio = null;
let last = -Infinity;

function sound() {
  if (typeof AudioContext === "undefined" || performance.now() - last < MOST.silenceAfterSound) return;
  last = performance.now();
  audio ??= new AudioContext();
  audio.resume(); // a browser that wants a click on the page first keeps it silent until then
  [660, 880].forEach((frequency, at) => tone(frequency, audio.currentTime + at * 0.14));
}

function tone(frequency, from) {
  const [source, volume] = [audio.createOscillator(), audio.createGain()];
  source.frequency.value = frequency;
  volume.gain.setValueAtTime(0.0001, from);
  volume.gain.exponentialRampToValueAtTime(0.15, from + 0.02);
  volume.gain.exponentialRampToValueAtTime(0.0001, from + 0.13);
  source.connect(volume).connect(audio.destination);
  source.start(from);
  source.stop(from + 0.14);
}

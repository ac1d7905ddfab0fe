// The ways in: the token of a link, which works once, or the key of a remembered browser. Either one gives the key of a
// session, which stays in this tab.
import { dropKey, hasKeys, keptKey, signed } from "./device-key.js";
import { ask } from "./door.js";

const KEY = "a2c-key";
const RUN = "a2c-run";
const DEVICE = "a2c-device";
const UNKNOWN = "unknown"; // this browser is not remembered

const told = { end: new Set(), run: new Set() };
let over = false;
let reasonGiven = null;
let returning = null; // the promise of the way back, while there is one under way

export function sessionKey() {
  return sessionStorage.getItem(KEY);
}

export function runId() {
  return sessionStorage.getItem(RUN);
}

/** The name under which the computer knows this browser, and credits what is decided here. */
export function deviceName() {
  return sessionStorage.getItem(DEVICE) ?? "browser";
}

export function isOver() {
  return over;
}

/** Why this page is over, where the computer gave a reason. */
export function endReason() {
  return reasonGiven;
}

function end(reason) {
  over = true;
  reasonGiven = reason === UNKNOWN ? null : reason;
  sessionStorage.removeItem(KEY);
  for (const each of told.end) each();
}

/** The page is over: the computer was started again, had no more room, or refused this browser. */
export function onEnd(each) {
  told.end.add(each);
}

/** The computer was started again, and this page has a session with the new run. */
export function onRun(each) {
  told.run.add(each);
}

/** Come in by this browser's key, or else by the link in the address. Resolves to the reason of a refusal, or to null. */
export async function enter() {
  const token = takeToken();
  if (!token && sessionKey()) return null;
  const reason = (await hasKeys()) ? await enterByKey(token) : UNKNOWN;
  if (reason === null || !token) return reason === UNKNOWN ? null : reason;
  const { ok, answer } = await ask("session", { token });
  if (ok) admit(answer);
  return ok || sessionKey() ? null : answer.error.message;
}

function takeToken() {
  const match = /^#link=([\w-]+)$/.exec(location.hash);
  // First it is removed from the address bar and the history.
  if (match) history.replaceState(null, "", location.pathname);
  return match?.[1];
}

/** Resolves to null if this page is in now, and otherwise to the reason why not. */
async function enterByKey(token, tries = 2) {
  const { ok, answer: asked } = await ask("challenge", {});
  const kept = ok ? await keptKey(asked.computer) : null;
  if (!kept) return UNKNOWN;
  const signature = await signed(kept.pair, asked.challenge, asked.computer);
  const found = await ask("session", { device: kept.device, challenge: asked.challenge, signature, token });
  if (found.ok) {
    admit(found.answer);
    return null;
  }
  if (found.status !== 403) return found.answer.error?.message ?? String(found.status);
  // A machine that slept may have been too late. After two refusals, the key was revoked or has expired.
  if (tries > 1) return enterByKey(token, tries - 1);
  await dropKey(asked.computer).catch(() => {});
  return UNKNOWN;
}

function admit({ key, run, device }) {
  const before = runId();
  sessionStorage.setItem(KEY, key);
  sessionStorage.setItem(RUN, run);
  sessionStorage.setItem(DEVICE, device);
  over = false;
  if (before !== run) for (const each of told.run) each();
}

/** The session with this key has ended: get a new one. Resolves to whether that worked; if not, the page is over. */
export function comeBack(lost) {
  if (over) return Promise.resolve(false);
  if (sessionKey() !== lost) return Promise.resolve(true);
  returning ??= returned().finally(() => {
    returning = null;
  });
  return returning;
}

async function returned() {
  const reason = (await hasKeys()) ? await enterByKey() : UNKNOWN;
  if (reason !== null) end(reason);
  return reason === null;
}

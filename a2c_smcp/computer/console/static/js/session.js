// The ways in: the token of a link, which is used once, or the key of a browser that is remembered. Either becomes the
// key of a session, which lives in this tab only.
import { canKeep, dropKey, keptKey, signed } from "./device-key.js";
import { ask } from "./door.js";

const KEY = "a2c-key";
const RUN = "a2c-run";
const DEVICE = "a2c-device";

const told = { end: new Set(), run: new Set() };
let over = false;
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

function end() {
  over = true;
  sessionStorage.removeItem(KEY);
  for (const each of told.end) each();
}

/** Nothing can be done any more: the computer was started again, or had no more room, or does not want this browser. */
export function onEnd(each) {
  told.end.add(each);
}

/** The computer was started again, and this page is in all the same. */
export function onRun(each) {
  told.run.add(each);
}

/** Come in by the link in the address, or else by this browser's key. Resolves to why that was refused, or to null. */
export async function enter() {
  const refused = await enterByLink();
  if (sessionKey()) return null;
  const unknown = await enterByKey();
  return sessionKey() ? null : (refused ?? unknown);
}

async function enterByLink() {
  const match = /^#link=([\w-]+)$/.exec(location.hash);
  if (!match) return null;
  // Out of the address bar and the history first: it is of no use to anybody afterwards.
  history.replaceState(null, "", location.pathname);
  const { ok, answer } = await ask("session", { token: match[1] });
  if (!ok) return answer.error.message;
  admit(answer);
  return null;
}

async function enterByKey(tries = 2) {
  if (!canKeep()) return null;
  const { ok, answer: asked } = await ask("challenge", {});
  const kept = ok ? await keptKey(asked.computer) : null;
  if (!kept) return null;
  const signature = await signed(kept.pair, asked.challenge, asked.computer);
  const found = await ask("session", { device: kept.device, challenge: asked.challenge, signature });
  if (found.ok) {
    admit(found.answer);
    return null;
  }
  if (found.status !== 403) return found.answer.error?.message ?? String(found.status);
  // A machine that slept meanwhile was too late. Refused twice, it was revoked, or has expired.
  if (tries > 1) return enterByKey(tries - 1);
  await dropKey(asked.computer).catch(() => {});
  return null;
}

function admit({ key, run, device }) {
  const before = runId();
  sessionStorage.setItem(KEY, key);
  sessionStorage.setItem(RUN, run);
  sessionStorage.setItem(DEVICE, device);
  over = false;
  if (before !== run) for (const each of told.run) each();
}

/** The session with this key is no more: get another one. Resolves to whether there is one; if not, this is the end. */
export function comeBack(lost) {
  if (over) return Promise.resolve(false);
  if (sessionKey() !== lost) return Promise.resolve(true);
  returning ??= enterByKey()
    .then(() => {
      if (sessionKey() === lost) end();
      return !over;
    })
    .finally(() => {
      returning = null;
    });
  return returning;
}

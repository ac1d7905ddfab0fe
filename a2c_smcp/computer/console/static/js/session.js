// The way in: the token of the link is used once, and becomes a key that lives in this tab only.
const KEY = "a2c-key";
const RUN = "a2c-run";
const DEVICE = "a2c-device";

const subscribers = new Set();
let over = false;

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

/** Nothing can be done any more: the computer was started again, or too many browsers came after this one. */
export function end() {
  over = true;
  sessionStorage.removeItem(KEY);
  for (const told of subscribers) told();
}

export function onEnd(told) {
  subscribers.add(told);
  return () => subscribers.delete(told);
}

/** Use the link's token, if the address has one. Resolves to why it was refused, or to null. */
export async function enter() {
  const match = /^#link=([\w-]+)$/.exec(location.hash);
  if (!match) return null;
  // Out of the address bar and the history first: it is of no use to anybody afterwards.
  history.replaceState(null, "", location.pathname);
  const response = await fetch("/api/session", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token: match[1] }),
    credentials: "omit",
  });
  const answer = await response.json();
  if (!response.ok) return sessionKey() ? null : answer.error.message;
  sessionStorage.setItem(KEY, answer.key);
  sessionStorage.setItem(RUN, answer.run);
  sessionStorage.setItem(DEVICE, answer.device ?? "browser");
  over = false;
  return null;
}

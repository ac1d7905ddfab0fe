// Requests to the console, with the key of this tab. No cookie is ever sent or set.
import { t } from "./i18n.js";
import { comeBack, sessionKey } from "./session.js";
import { refusal } from "./wording.js";

/** How long an answer may take, in milliseconds. A server that is started may be downloaded first, or need an input. */
const TIMEOUT = { read: 60_000, change: 600_000 };

export class Refused extends Error {
  constructor(message, code, details) {
    super(message);
    this.code = code;
    this.details = details ?? {};
  }
}

export async function request(path, options = {}) {
  const key = sessionKey();
  const response = await send(path, options, key);
  // Without a session nothing was done. A remembered browser gets a new session, and asks again.
  return response.status === 401 && (await comeBack(key)) ? send(path, options, sessionKey()) : response;
}

function send(path, options, key) {
  return fetch(`/api/${path}`, {
    ...options,
    headers: { ...options.headers, "x-a2c-session": key ?? "" },
    credentials: "omit",
    cache: "no-store",
  });
}

async function answered(path, response) {
  if (response.ok) return response.json();
  const { error = {} } = await response.json().catch(() => ({}));
  const message = refusal(path, error.message ?? response.statusText, error.details);
  throw new Refused(message, error.code ?? response.status, error.details);
}

function queryText(query) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

/** What `read` makes of the answer. Throws `Refused`, in the page's own words, if no answer comes in time. */
async function sent(path, { signal, ...options }, timeout, read) {
  const stop = new AbortController();
  const end = () => stop.abort();
  const timer = setTimeout(end, timeout);
  signal?.addEventListener("abort", end);
  try {
    return await read(await request(path, { ...options, signal: stop.signal }));
  } catch (error) {
    if (error instanceof Refused || signal?.aborted) throw error;
    throw new Refused(t("refused.network"), 0);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", end);
  }
}

export function get(path, query = {}, signal = undefined) {
  return sent(`${path}${queryText(query)}`, { signal }, TIMEOUT.read, (response) => answered(path, response));
}

/** A file, as a blob; it may be large. */
export function download(path, query) {
  const read = (response) => (response.ok ? response.blob() : answered(path, response));
  return sent(`${path}${queryText(query)}`, {}, TIMEOUT.change, read);
}

export function post(path, body) {
  const headers = { "content-type": "application/json" };
  const options = { method: "POST", headers, body: JSON.stringify(body) };
  return sent(path, options, TIMEOUT.change, (response) => answered(path, response));
}

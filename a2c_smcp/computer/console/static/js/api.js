// Requests to the console, with the key of this tab. No cookie is ever sent or set.
import { t } from "./i18n.js";
import { comeBack, sessionKey } from "./session.js";
import { refusal } from "./wording.js";

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
  // Without a session nothing was done: a browser that is remembered gets another one, and asks again.
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
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) {
    const error = answer.error ?? {};
    const message = refusal(path, error.message ?? response.statusText, error.details);
    throw new Refused(message, error.code ?? response.status, error.details);
  }
  return answer;
}

function queryText(query) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

/** Waits for the answer, or throws `Refused` in the page's own words if there is none. */
async function sent(path, options = {}) {
  try {
    return await request(path, options);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Refused(t("refused.network"), 0);
  }
}

export async function get(path, query = {}, signal = undefined) {
  return answered(path, await sent(`${path}${queryText(query)}`, { signal }));
}

/** A file, as a blob; it may be large. */
export async function download(path, query) {
  const response = await sent(`${path}${queryText(query)}`);
  if (!response.ok) await answered(path, response); // throws
  return response.blob();
}

export async function post(path, body) {
  const headers = { "content-type": "application/json" };
  return answered(path, await sent(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

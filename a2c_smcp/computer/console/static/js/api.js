// Requests to the console, with the key of this tab. No cookie is ever sent or set.
import { t } from "./i18n.js";
import { end, sessionKey } from "./session.js";
import { refusal } from "./wording.js";

export class Refused extends Error {
  constructor(message, code, details) {
    super(message);
    this.code = code;
    this.details = details ?? {};
  }
}

export function request(path, options = {}) {
  return fetch(`/api/${path}`, {
    ...options,
    headers: { ...options.headers, "x-a2c-session": sessionKey() ?? "" },
    credentials: "omit",
    cache: "no-store",
  });
}

async function answered(path, response) {
  if (response.status === 401) end();
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) {
    const error = answer.error ?? {};
    const message = refusal(path, error.message ?? response.statusText, error.details);
    throw new Refused(message, error.code ?? response.status, error.details);
  }
  return answer;
}

/** Waits for the answer, or throws `Refused` in the page's own words if there is none. */
async function sent(path, options) {
  try {
    return await request(path, options);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Refused(t("refused.network"), 0);
  }
}

export async function get(path, query = {}, signal = undefined) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const search = new URLSearchParams(given).toString();
  return answered(path, await sent(search ? `${path}?${search}` : path, { signal }));
}

export async function post(path, body) {
  const headers = { "content-type": "application/json" };
  return answered(path, await sent(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

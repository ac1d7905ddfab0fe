// What a page without a session may ask.

async function knock(path, options = {}) {
  const signal = AbortSignal.timeout(20_000);
  const response = await fetch(`/api/${path}`, { ...options, signal, credentials: "omit", cache: "no-store" });
  return { ok: response.ok, status: response.status, answer: await response.json().catch(() => ({})) };
}

/** Resolves to `{ ok, status, answer }`; rejects if the computer does not answer at all. */
export function ask(path, body) {
  return knock(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
}

/** How to get a link: `{ advice, pid, remembers }`, or null. */
export async function advice() {
  const { ok, answer } = await knock("door").catch(() => ({ ok: false }));
  return ok ? answer : null;
}

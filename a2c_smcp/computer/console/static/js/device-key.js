// The key by which a computer recognises this browser. Nobody can read the private key, not even this page: it can only sign.
// IndexedDB has one key for each computer that was at this origin.
const CONTEXT = "a2c-smcp console: let this browser in"; // the computer has the same text
const ALGORITHM = { name: "ECDSA", namedCurve: "P-256" };
const STORE = "keys";
const TRIAL = "trial";

/** Whether this browser can keep a key here. On plain HTTP from another machine it cannot. */
export function canKeep() {
  return Boolean(globalThis.isSecureContext && globalThis.crypto?.subtle && globalThis.indexedDB);
}

/** A new key: `{ pair, publicKey }`. Rejects if the browser cannot keep it. */
export async function newKey() {
  const pair = await crypto.subtle.generateKey(ALGORITHM, false, ["sign"]);
  await inStore("readwrite", (store) => store.put({ pair }, TRIAL));
  await inStore("readwrite", (store) => store.delete(TRIAL));
  return { pair, publicKey: base64url(await crypto.subtle.exportKey("raw", pair.publicKey)) };
}

export function keepKey(computer, device, pair) {
  return inStore("readwrite", (store) => store.put({ device, pair }, computer));
}

/** Whether this browser has a key for any computer that was at this origin. */
export async function hasKeys() {
  return canKeep() && (await inStore("readonly", (store) => store.count()).catch(() => 0)) > 0;
}

/** The key for a computer: `{ device, pair }`, or null. */
export async function keptKey(computer) {
  return (await inStore("readonly", (store) => store.get(computer)).catch(() => null)) ?? null;
}

export function dropKey(computer) {
  return inStore("readwrite", (store) => store.delete(computer));
}

/** The signature of a challenge, for this origin and this computer. */
export async function signed(pair, challenge, computer) {
  const text = new TextEncoder().encode([CONTEXT, challenge, location.origin, computer].join("\n"));
  return base64url(await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, pair.privateKey, text));
}

function base64url(buffer) {
  return btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function inStore(mode, work) {
  const database = await settled(opening(), "success");
  try {
    const transaction = database.transaction(STORE, mode);
    const asked = work(transaction.objectStore(STORE));
    await settled(transaction, "complete");
    return asked.result;
  } finally {
    database.close();
  }
}

function opening() {
  const asked = indexedDB.open("a2c-devices", 1);
  asked.onupgradeneeded = () => asked.result.createObjectStore(STORE);
  return asked;
}

/** Waits for an event of IndexedDB, but not for ever: another tab or the browser may hold it up. */
function settled(target, event) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("IndexedDB does not answer")), 10_000);
    const done = (settle) => () => (clearTimeout(timer), settle());
    target.addEventListener(event, done(() => resolve(target.result)));
    for (const failure of ["error", "abort", "blocked"]) {
      target.addEventListener(failure, done(() => reject(target.error ?? new Error(`IndexedDB: ${failure}`))));
    }
  });
}

// The stream of events, read by one tab for all: the tab that holds a lock reads, the others hear it on a channel.
// Without locks or channels, or when the reading tab falls silent, a tab reads for itself.
import { request } from "./api.js";
import { end, isOver, onEnd, runId } from "./session.js";
import { reduce } from "./state.js";
import { change, current } from "./store.js";

const SILENCE = 15_000; // three pings
const LONGEST_PAUSE = 5_000;

let channel = null;
let reading = null; // the promise of the loop that reads, if this tab does
let telling = false;
let heard = performance.now();

export function follow() {
  onEnd(() => change({ status: "over" }));
  const name = `a2c-${runId()}`;
  if (!navigator.locks || typeof BroadcastChannel === "undefined") {
    read();
    return;
  }
  channel = new BroadcastChannel(name);
  channel.onmessage = (event) => fromTab(event.data);
  channel.postMessage({ kind: "hello" });
  const lock = new AbortController();
  onEnd(() => lock.abort());
  const lead = () => {
    telling = true;
    return read();
  };
  navigator.locks.request(name, { signal: lock.signal }, lead).catch(() => {});
  // A tab that hears nothing from the one that reads, for it may be frozen, reads for itself.
  const watch = setInterval(() => {
    if (isOver()) clearInterval(watch);
    else if (!reading && performance.now() - heard > SILENCE) read();
  }, 1_000);
}

/** Whether this tab is the one that acts for all tabs: each on its own where they cannot agree. */
export function isLeading() {
  return telling || channel === null;
}

function fromTab(message) {
  if (message.kind === "hello") {
    if (telling && current().number >= 0) tell({ kind: "state", state: shared() });
    return;
  }
  if (reading) return;
  heard = performance.now();
  if (message.kind === "status") change({ status: message.status });
  else if (message.kind === "state") change({ ...message.state, notices: current().notices });
  else if (!take(message)) channel.postMessage({ kind: "hello" });
}

function shared() {
  const { notices, ...rest } = current();
  return rest;
}

/** Take a message in; false if something before it is missing. */
function take(message) {
  if (current().number < 0 && message.kind !== "snapshot") return message.kind === "ping";
  const next = reduce(current(), message);
  if (next === null) return false;
  if (next !== current()) change(next);
  return true;
}

function tell(message) {
  if (telling) channel?.postMessage(message);
}

function status(value) {
  if (current().status === value) return;
  change({ status: value });
  tell({ kind: "status", status: value });
}

function read() {
  reading ??= readOn();
  return reading;
}

async function readOn() {
  let pause = 250;
  while (!isOver()) {
    try {
      await readOnce(() => {
        pause = 250;
      });
    } catch {
      // Why it ended does not matter: the next one starts with a snapshot.
    }
    if (isOver()) break;
    status("gone");
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, LONGEST_PAUSE);
  }
}

async function readOnce(alive) {
  const stop = new AbortController();
  let silence = setTimeout(() => stop.abort(), SILENCE);
  try {
    const response = await request("feed", { signal: stop.signal });
    if (response.status === 401) end();
    if (!response.ok) return;
    for await (const message of lines(response.body.getReader())) {
      clearTimeout(silence);
      silence = setTimeout(() => stop.abort(), SILENCE);
      if (!take(message)) return;
      tell(message);
      status("live");
      alive();
    }
  } finally {
    clearTimeout(silence);
    stop.abort();
  }
}

async function* lines(reader) {
  const decoder = new TextDecoder();
  let parts = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const pieces = decoder.decode(value, { stream: true }).split("\n");
    while (pieces.length > 1) {
      parts.push(pieces.shift());
      yield JSON.parse(parts.join(""));
      parts = [];
    }
    parts.push(pieces[0]);
  }
}

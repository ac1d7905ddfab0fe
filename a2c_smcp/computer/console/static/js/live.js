// The stream of events, read by one tab for all: the tab that holds a lock reads, the others hear it on a channel.
// Without locks or channels, or when the reading tab falls silent, a tab reads for itself.
import { request } from "./api.js";
import { isOver, onEnd, onRun, runId } from "./session.js";
import { reduce } from "./state.js";
import { change, current } from "./store.js";

/** Milliseconds. The stream is gone after a silence of three pings. A tab that is silent for long counts as closed. */
const TIMES = { silence: 15_000, longestPause: 5_000, alive: 20_000 };

let channel = null;
let waiting = null; // ends the wait for the lock
let reading = null; // the promise of the loop that reads, if this tab does
let telling = false;
let heard = performance.now();
let last = Date.now() / 1000; // when the computer was heard last, by the clock of this browser

export function follow() {
  onEnd(() => {
    waiting?.abort();
    tell({ kind: "moved" });
    change({ status: "over" });
  });
  // The loop that reads notices by itself that this is another run.
  onRun(() => !reading && begin());
  begin();
}

/** Read for all tabs of this run of the computer, or hear the one that does. */
function begin() {
  const name = `a2c-${runId()}`;
  waiting?.abort();
  channel?.close();
  telling = false;
  change({ number: -1 }); // each run of the computer numbers its events anew
  if (!navigator.locks || typeof BroadcastChannel === "undefined") {
    read();
    return;
  }
  channel = new BroadcastChannel(name);
  channel.onmessage = (event) => fromTab(event.data);
  channel.postMessage({ kind: "hello" });
  waiting = new AbortController();
  const { signal } = waiting;
  const lead = () => {
    telling = true;
    return read();
  };
  navigator.locks.request(name, { signal }, lead).catch(() => {});
  listen(signal);
}

function sayAlive() {
  request("alive", { signal: AbortSignal.timeout(TIMES.alive) }).catch(() => {});
}

/** While another tab reads: tell the computer that this tab is in use, too, and read if nothing is heard any more. */
function listen(signal) {
  heard = performance.now();
  let said = -Infinity;
  const watch = setInterval(() => {
    if (signal.aborted) clearInterval(watch);
    if (signal.aborted || reading) return;
    if (performance.now() - said > TIMES.alive) {
      said = performance.now();
      sayAlive();
    }
    // The tab that reads may be frozen: a tab that hears nothing from it reads for itself.
    if (performance.now() - heard > TIMES.silence) read();
  }, 1_000);
}

/** Whether this tab acts for all tabs. Where tabs cannot agree, each acts for itself. */
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
  // The tab that reads lost its session, or the computer was started again: the same may be true here.
  if (message.kind === "moved") sayAlive();
  else if (message.kind === "status") change(message.said);
  else if (message.kind === "state") change({ ...message.state, notices: current().notices });
  else if (!take(message)) channel.postMessage({ kind: "hello" });
}

function shared() {
  const { notices, ...rest } = current();
  return rest;
}

/** Apply a message; false if a message before it is missing. */
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

/** Say how the way to the computer is. It is gone since the computer was heard last. */
function status(value, retryAt = null) {
  const before = current();
  if (before.status === value && before.retryAt === retryAt) return;
  const since = value === "gone" ? last : Date.now() / 1000;
  const said = { status: value, statusSince: before.status === value ? before.statusSince : since, retryAt };
  change(said);
  tell({ kind: "status", said });
}

function read() {
  reading ??= readOn();
  return reading;
}

async function readOn() {
  const run = runId();
  let pause = 250;
  for (;;) {
    try {
      await readOnce(run, () => {
        pause = 250;
      });
    } catch {
      // Why it ended does not matter: the next stream starts with a snapshot.
    }
    if (isOver()) return;
    status("gone", Date.now() / 1000 + pause / 1000);
    if (run !== runId()) break;
    await new Promise((resolve) => setTimeout(resolve, pause));
    status("gone");
    pause = Math.min(pause * 2, TIMES.longestPause);
  }
  tell({ kind: "moved" });
  reading = null;
  begin();
}

async function readOnce(run, alive) {
  const stop = new AbortController();
  let silence = setTimeout(() => stop.abort(), TIMES.silence);
  try {
    const response = await request("feed", { signal: stop.signal });
    if (!response.ok || run !== runId()) return;
    for await (const message of lines(response.body.getReader())) {
      clearTimeout(silence);
      silence = setTimeout(() => stop.abort(), TIMES.silence);
      if (!take(message)) return;
      last = Date.now() / 1000;
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

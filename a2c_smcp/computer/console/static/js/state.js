// What the page knows, as one value. Pure: a message makes the next state; null means that a message was missed.
/** How many ended calls are kept here; the computer keeps as many. */
export const MOST_ENDED = 1000;

export const EMPTY = {
  number: -1,
  skew: 0,
  name: "",
  version: "",
  protocol: "",
  servers: [],
  offices: [],
  running: [],
  ended: [],
  pending: [],
  answerers: [],
  recorded: false,
  notices: [],
  stamps: { tools: 0, config: 0, desktop: 0, finder: 0, shared: 0 },
  logs: {},
};

export function reduce(state, message, clock = Date.now() / 1000) {
  switch (message.kind) {
    case "snapshot":
      return fromSnapshot(state, message, clock);
    case "changes":
      if (message.number <= state.number) return state;
      return message.since === state.number ? withChanges(state, message, clock) : null;
    case "ping":
      return message.number <= state.number ? state : null;
    default:
      return state;
  }
}

function fromSnapshot(state, message, clock) {
  const there = new Set(message.pending.map((decision) => decision.id));
  // A decision that is not pending any more was made while this page did not listen.
  const gone = state.pending
    .filter((decision) => !there.has(decision.id))
    .map((decision) => ({ ...decision, decided: decision.decided ?? { outcome: "over", by: null } }));
  const known = new Map(state.pending.map((decision) => [decision.id, decision]));
  return {
    ...state,
    number: message.number,
    skew: message.now - clock,
    name: message.name,
    version: message.version,
    protocol: message.protocol,
    servers: message.servers,
    offices: message.offices,
    running: message.running,
    ended: message.ended.slice(-MOST_ENDED),
    pending: [...gone, ...message.pending.map((decision) => known.get(decision.id) ?? decision)],
    answerers: message.answerers,
    recorded: message.recorded,
    stamps: stamped(state.stamps, Object.keys(state.stamps)),
    logs: Object.fromEntries(message.servers.map((server) => [server.name, (state.logs[server.name] ?? 0) + 1])),
  };
}

function withChanges(state, message, clock) {
  const { marked = [], logs = [], servers, offices, asked = [], decided = [], notices = [] } = message;
  const marks = decided.some((each) => each.always) ? [...marked, "tools"] : marked;
  return {
    ...state,
    number: message.number,
    skew: message.now - clock,
    name: message.name ?? state.name,
    servers: servers ? merged(state.servers, servers, "name") : state.servers,
    offices: offices ? merged(state.offices, offices, "id").filter((office) => !forgotten(office)) : state.offices,
    ...withCalls(state, message),
    pending: asked.length || decided.length ? withDecisions(state.pending, asked, decided) : state.pending,
    answerers: message.answerers ?? state.answerers,
    notices: notices.reduce(withNotice, state.notices),
    stamps: marks.length ? stamped(state.stamps, marks) : state.stamps,
    logs: logs.length ? { ...state.logs, ...Object.fromEntries(logs.map((name) => [name, (state.logs[name] ?? 0) + 1])) } : state.logs,
  };
}

function withCalls(state, { started = [], progress = {}, ended = [], over = [], skipped = 0 }) {
  const gone = new Set([...over, ...ended.map((call) => call.id)]);
  if (!started.length && !gone.size && !Object.keys(progress).length) return {};
  const known = new Set(state.running.map((call) => call.id));
  const running = [...state.running, ...started.filter((call) => !known.has(call.id))]
    .filter((call) => !gone.has(call.id))
    .map((call) => (progress[call.id] ? { ...call, progress: progress[call.id] } : call));
  // The kept calls have no gaps: if some were skipped, earlier ones are dropped.
  const before = skipped ? [] : state.ended;
  return { running, ended: ended.length ? [...before, ...ended].slice(-MOST_ENDED) : state.ended };
}

function withDecisions(pending, asked, decided) {
  const known = new Set(pending.map((decision) => decision.id));
  const outcomes = new Map(decided.map((each) => [each.id, each]));
  return [...pending, ...asked.filter((decision) => !known.has(decision.id))].map((decision) =>
    outcomes.has(decision.id) ? { ...decision, decided: outcomes.get(decision.id) } : decision,
  );
}

function merged(items, changed, key) {
  const by = new Map(changed.map((item) => [item[key], item]));
  const next = items.map((item) => by.get(item[key]) ?? item);
  const known = new Set(items.map((item) => item[key]));
  return [...next, ...changed.filter((item) => !known.has(item[key]))];
}

function forgotten(office) {
  return office.state === "closed";
}

function stamped(stamps, names) {
  return { ...stamps, ...Object.fromEntries(names.map((name) => [name, (stamps[name] ?? 0) + 1])) };
}

let notice = 0;
/** A repeated notice is counted, and not shown twice. */
function withNotice(notices, said) {
  const same = notices.find((each) => each.text === said.text && each.server === said.server && each.says === said.says);
  if (same) return notices.map((each) => (each === same ? { ...each, count: each.count + 1 } : each));
  notice += 1;
  return [...notices, { ...said, id: notice, count: 1 }].slice(-5);
}

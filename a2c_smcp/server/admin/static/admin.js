// The operators' page: asks for one feed every two seconds, and shows it. Names come from others, so everything is
// written as text.

const EVERY = 2000;

const state = document.getElementById("state");
const door = document.getElementById("door");
const tables = document.getElementById("tables");

const size = (bytes) => {
  const units = ["B", "KiB", "MiB", "GiB"];
  let at = 0;
  for (; bytes >= 1024 && at < units.length - 1; at += 1) bytes /= 1024;
  return `${at && bytes < 10 ? bytes.toFixed(1) : Math.round(bytes)} ${units[at]}`;
};
const age = (since) => {
  const seconds = Math.max(0, Math.floor(Date.now() / 1000 - since));
  if (seconds >= 86400) return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
  if (seconds >= 3600) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} m`;
  return seconds >= 60 ? `${Math.floor(seconds / 60)} m ${seconds % 60} s` : `${seconds} s`;
};
const seconds = (value) => `${value.toFixed(3)} s`;

// Of each table: its title, where its rows are, and its columns.
const TABLES = [
  ["Server processes", "processes", {
    Server: (row) => row.host,
    Version: (row) => row.version,
    Since: (row) => age(row.since),
    Sessions: (row) => row.sessions,
    Offices: (row) => row.offices,
    Pending: (row) => row.pending,
    Waits: (row) => size(row.queued),
    Lag: (row) => `${Math.round(row.lag * 1000)} ms`,
    State: (row) => row.ready,
  }],
  ["Offices by calls", "offices", {
    Office: (row) => row.office,
    Calls: (row) => row.calls,
    Failed: (row) => row.failed,
    "A minute": (row) => row.per_minute.toFixed(1),
  }],
  ["Slowest tools", "tools", {
    Tool: (row) => row.tool,
    Computer: (row) => row.computer,
    Office: (row) => row.office,
    Calls: (row) => row.calls,
    Failed: (row) => row.failed,
    Takes: (row) => seconds(row.mean),
    Slowest: (row) => seconds(row.slowest),
  }],
  ["Longest queues", "queues", {
    Name: (row) => row.name,
    Office: (row) => row.office,
    Server: (row) => row.host,
    Waits: (row) => size(row.queued),
  }],
  ["Members", "members", {
    Name: (row) => row.name,
    Role: (row) => row.role,
    Office: (row) => row.office,
    Address: (row) => row.address,
    Key: (row) => row.key,
    Version: (row) => row.version,
    Server: (row) => row.host,
    Since: (row) => age(row.since),
    Calls: (row) => row.calls,
    In: (row) => size(row.received),
    Out: (row) => size(row.sent),
  }],
  ["Keys", "keys", {
    Name: (row) => row.name,
    Fingerprint: (row) => row.fingerprint,
    State: (row) => row.state,
    Sessions: (row) => row.sessions,
    Roles: (row) => row.roles.join(", "),
    Offices: (row) => row.offices.join(", "),
    From: (row) => row.source,
  }],
];

const element = (name, text, ...children) => {
  const made = document.createElement(name);
  if (text !== null) made.textContent = text;
  made.append(...children);
  return made;
};

const section = (title, rows, columns, more) => {
  const head = element("tr", null, ...Object.keys(columns).map((name) => element("th", name)));
  const cells = (row) => Object.values(columns).map((of) => element("td", of(row) === "" ? "–" : of(row)));
  const body = rows.map((row) => element("tr", null, ...cells(row)));
  const shown = rows.length ? element("table", null, head, ...body) : element("p", "None.");
  const note = more ? [element("p", "There are more: a2c server admin members shows them.")] : [];
  return element("section", null, element("h2", title), shown, ...note);
};

const say = (text, bad = false) => {
  state.textContent = text;
  state.classList.toggle("bad", bad);
};

const show = (feed) => {
  tables.replaceChildren(
    ...TABLES.map(([title, name, columns]) => section(title, feed[name], columns, name === "members" && feed.next)),
  );
  const silent = feed.silent.map((each) => each.process).join(", ");
  say(silent ? `no answer from ${silent}` : `as of ${new Date().toLocaleTimeString()}`, Boolean(silent));
};

const look = async (key) => {
  try {
    const response = await fetch("/admin/api/overview", { headers: { "x-a2c-admin-key": key } });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error.message);
    show(answer);
    door.hidden = true;
    tables.hidden = false;
  } catch (error) {
    say(error.message, true);
    if (tables.hidden) return; // the key was wrong: the person types it again
  }
  setTimeout(look, EVERY, key);
};

door.addEventListener("submit", (event) => {
  event.preventDefault();
  say("…");
  look(document.getElementById("key").value);
  door.reset();
});

"""An MCP stdio server in plain Python that starts in no time, speaks both eras, and misbehaves as it is told.

    misbehaving.py MODE [key=value …]

Modes: see `MODES`. Options: `era` both|legacy|modern, `page` the page size of lists, `code` the exit code of a death,
`delay` seconds before every answer (mode slow), `late` seconds before it reads anything, `after=FILE` reads nothing
before there is such a file, `resources` how many windows it starts with, `documents` how many documents, `catalogue=1`
answers at level 0, `catalogue=titles` there with nothing but titles, `catalogue=empty` there with empty fields, `note`
what the catalogue says of itself, `lists=catalogue` lists that instead of its documents, `lists=pages` their first
pages, `read` seconds that a reading takes (side by side), `stubborn=1` grandchildren that ignore SIGTERM, `bare=1`
neither announces changes nor takes subscriptions, `quiet=1` takes them but does not announce changes of its list,
`deaf=1` never answers a subscription, `invalid=1` lists a tool without a schema and one whose name is a number,
`once=FILE` dies after its first list of tools if there is no such file yet. A resource with the text `hang` never
answers. Its tools change it while it runs; see `TOOLS`. It reports on stderr what a test may wait for: `ready`, `eof`,
`grandchild PID`, `started sleep`, `cancelling` (the message is there), `cancelled sleep` (the tool has noticed),
`subscribed URI`, `listening N URIs`.
"""

import base64
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.parse
from functools import partial
from typing import Any, NoReturn

MODERN = "2026-07-28"
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"

MODES = (
    "normal",
    "slow",  # answers everything late
    "ignores-eof",  # lives on when stdin closes
    "ignores-term",  # lives on when stdin closes and when SIGTERM comes
    "grandchildren",  # starts a process that holds its pipes, and exits when `leave` is called or stdin closes
    "floods-stderr",
    "floods-stdout",  # with lines that are no JSON, before every answer
    "dies-on-call",
    "dies-on-start",
    "silent",  # never answers anything
    "initialize-first",  # exits on any other first message
    "ignores-probe",  # never answers what it does not know
    "stuck-after-probe",  # never answers anything after any other first message than initialize
    "closes-stdout",  # on a call, and lives on
)

OBJECT: dict[str, Any] = {"type": "object"}
TOOLS = {
    "echo": "text → text",
    "sleep": "seconds; notices its cancellation",
    "crash": "code: exits without an answer",
    "leave": "answers and exits with code 0",
    "huge": "size → so many characters",
    "picture": "→ an image of seven bytes",
    "blare": "size, id first|last|none: a line of so many bytes, and then an answer that nobody waits for any more",
    "litter": "item, count: so many items of JSON as its content",
    "shout": "size: a notification of so many bytes before its answer",
    "twice": "since 2026-07-28: wants to be asked again before it answers",
    "asks": "since 2026-07-28: wants to know something before it answers",
    "chatter": "lines: so many log messages before its answer",
    "report": "steps, seconds, message: so many reports of progress in that time; or values, the reports themselves",
    "fail": "an error result",
    "broken": "breaks its own output schema",
    "stats": "→ pid, era, counters, subscriptions as JSON text",
    "add_tool": "name",
    "remove_tool": "name",
    "describe": "name, description: says something else of a tool",
    "set_resource": "uri, text, silently: adds or updates; silently, it says only that its list has changed",
    "grow": "uri, size: gives a resource a text of so many characters",
    "remove_resource": "uri",
    "drop_listens": "graceful: ends every listen stream",
}


def document(number: int) -> str:
    """What a document answers at level 1."""
    fields = {
        "doc_ref": str(number),
        "file_uri": f"file:///{number}",
        "title": f"document {number}",
        "file_type": "pdf" if number % 2 else "xlsx",
        "page_count": 1,
        "keywords": ["all", f"k{number % 10}"],
        "summary": f"a summary of some length, as they are, of the document with the number {number}",
        "last_modified": f"2026-01-01T00:00:00.{number:06}Z",
    }
    return json.dumps(fields)


class Server:
    def __init__(self, mode: str, options: dict[str, str]) -> None:
        self.mode = mode
        self.era = options.get("era", "both")
        self.page = int(options.get("page", "1000"))
        self.code = int(options.get("code", "3"))
        self.delay = float(options.get("delay", "0.3"))
        self.late = float(options.get("late", "0"))
        self.after = options.get("after")
        self.stubborn = bool(options.get("stubborn"))
        self.bare = bool(options.get("bare"))
        self.tools = list(TOOLS)
        self.said = dict(TOOLS)
        self.quiet = bool(options.get("quiet"))
        self.deaf = bool(options.get("deaf"))
        self.invalid = bool(options.get("invalid"))
        self.once = options.get("once")
        self.catalogue = options.get("catalogue", "")
        self.note = options.get("note")
        self.lists = options.get("lists", "documents")
        self.read_delay = float(options.get("read", "0"))
        self.resources = {f"window://fake/{n}": f"window {n}" for n in range(int(options.get("resources", "2")))}
        self.resources |= {f"dpe://fake/{n}": document(n) for n in range(int(options.get("documents", "0")))}
        self.reads: list[str] = []
        self.subscribed: set[str] = set()
        self.listens: dict[Any, dict[str, Any]] = {}
        self.spoken: str | None = None
        self.calls: dict[Any, threading.Event] = {}
        self.request_state: str | None = None
        self.progress_token: Any = None
        self.called = self.cancelled = 0
        self.lock = threading.Lock()

    def run(self) -> None:
        if self.mode == "dies-on-start":
            self.die("cannot open the database")
        if self.mode == "ignores-term":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if self.mode == "grandchildren":
            # What is ignored before the exec stays ignored: once there is a pid to tell, no signal ends it too early.
            ignore = partial(signal.signal, signal.SIGTERM, signal.SIG_IGN) if self.stubborn else None
            shell = ["/bin/sh", "-c", "sleep 600 & wait"]
            child = subprocess.Popen(shell, stdin=subprocess.DEVNULL, preexec_fn=ignore)
            self.say(f"grandchild {child.pid}")
        if self.mode == "floods-stderr":
            for n in range(50_000):
                sys.stderr.write(f"line {n} of many that nobody will ever read\n")
            sys.stderr.write("x" * 1_000_000 + "\n")
        self.say("ready")
        time.sleep(self.late)
        while self.after and not os.path.exists(self.after):
            time.sleep(0.01)
        for line in sys.stdin.buffer:
            self.receive(json.loads(line))
        self.say("eof")
        if self.mode in ("ignores-eof", "ignores-term"):
            while True:
                time.sleep(60)

    # --- talking

    def say(self, text: str) -> None:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def die(self, text: str) -> NoReturn:
        self.say(text)
        os._exit(self.code)

    def send(self, message: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        with self.lock:
            if self.mode == "floods-stdout":
                sys.stdout.buffer.write(b"Listening on port 80 \xff\xfe\n{not json}\n[1]\n\n" * 2_000)
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def write(self, data: bytes) -> None:
        with self.lock:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def blare(self, id_: Any, size: int, place: str) -> None:
        """A line of this size, piece by piece: nobody needs to have it whole."""
        id_member = f'"id":{json.dumps(id_)}'
        self.write(f'{{"jsonrpc":"2.0"{"," + id_member if place == "first" else ""},"result":{{"content":['.encode())
        for _ in range(size // 65536):
            self.write(b"[]," * 21845 + b" ")
        self.write(f"[]]}}{',' + id_member if place == 'last' else ''}}}\n".encode())

    def notify(self, method: str, **params: Any) -> None:
        self.send({"method": f"notifications/{method}", "params": params})

    def result(self, id_: Any, **result: Any) -> None:
        if self.spoken == MODERN:
            result |= {"resultType": "complete"}
        self.send({"id": id_, "result": result})

    def listing(self, id_: Any, key: str, items: list[Any], cursor: str | None) -> None:
        start = int(cursor or 0)
        result: dict[str, Any] = {key: items[start : start + self.page]}
        if start + self.page < len(items):
            result["nextCursor"] = str(start + self.page)
        if self.spoken == MODERN:
            result |= {"ttlMs": 60_000, "cacheScope": "private"}
        self.result(id_, **result)

    def error(self, id_: Any, code: int, message: str, data: Any = None) -> None:
        error = {"code": code, "message": message} | ({"data": data} if data is not None else {})
        self.send({"id": id_, "error": error})

    def changed(self, what: str, uri: str | None = None) -> None:
        """Announce a change in whatever way the client asked for."""
        if self.quiet and what == "resources/list_changed":
            return
        params = {"uri": uri} if uri else {}
        if self.spoken != MODERN:
            if uri is None or uri in self.subscribed:
                self.notify(what, **params)
            return
        key = {"tools/list_changed": "toolsListChanged", "resources/list_changed": "resourcesListChanged"}.get(what)
        for id_, wanted in list(self.listens.items()):
            if wanted.get(key) if key else uri in (wanted.get("resourceSubscriptions") or ()):
                self.notify(what, **params, _meta={SUBSCRIPTION_ID: id_})

    # --- listening

    def receive(self, message: dict[str, Any]) -> None:
        method, id_, params = message.get("method"), message.get("id"), message.get("params") or {}
        if self.mode == "silent":
            return
        if self.mode == "initialize-first" and self.spoken is None and method != "initialize":
            client = params.get("_meta", {}).get("io.modelcontextprotocol/clientInfo", {}).get("name")
            self.die(f"the first message must be initialize, not {method} of {client}")
        if self.mode == "ignores-probe" and method == "server/discover":
            return
        if self.mode == "stuck-after-probe" and self.spoken is None and method != "initialize":
            self.mode = "silent"
            return
        if self.mode == "slow":
            time.sleep(self.delay)
        match method:
            case "server/discover" if self.era != "legacy":
                self.spoken = MODERN
                self.result(
                    id_,
                    supportedVersions=[MODERN],
                    capabilities=self.capabilities(),
                    ttlMs=0,
                    cacheScope="private",
                )
            case "initialize" if self.era != "modern" and self.spoken != MODERN:
                self.spoken = params["protocolVersion"]
                info = {"name": "misbehaving", "version": "1"}
                self.result(id_, protocolVersion=self.spoken, capabilities=self.capabilities(), serverInfo=info)
            case "initialize":
                self.error(id_, -32022, "unsupported protocol version", {"supported": [MODERN], "requested": "?"})
            case "ping":
                self.result(id_)
            case "tools/list":
                tools = [self.tool(name) for name in self.tools]
                if self.invalid:
                    tools[1:1] = [{"name": "schemaless"}, {"name": 5, "inputSchema": OBJECT}]
                self.listing(id_, "tools", tools, params.get("cursor"))
                if self.once and not os.path.exists(self.once):
                    with open(self.once, "w"):
                        self.die("died once")
            case "resources/list":
                items = [{"uri": uri, "name": uri.rpartition("/")[2]} for uri in self.listed()]
                self.listing(id_, "resources", items, params.get("cursor"))
            case "resources/read":
                self.read(id_, params["uri"])
            case "resources/subscribe" if self.deaf:
                pass
            case "resources/subscribe" if self.spoken != MODERN:
                self.subscribed.add(params["uri"])
                self.result(id_)
                self.say(f"subscribed {params['uri']}")
            case "resources/unsubscribe" if self.spoken != MODERN:
                self.subscribed.discard(params["uri"])
                self.result(id_)
            case "subscriptions/listen" if self.spoken == MODERN:
                self.listens[id_] = wanted = params["notifications"]
                self.notify("subscriptions/acknowledged", notifications=wanted, _meta={SUBSCRIPTION_ID: id_})
                self.say(f"listening {len(wanted.get('resourceSubscriptions') or ())} URIs")
            case "notifications/cancelled":
                self.cancel(params["requestId"])
            case "tools/call":
                self.request_state = params.get("requestState")
                self.progress_token = params.get("_meta", {}).get("progressToken")
                self.call(id_, params["name"], params.get("arguments") or {})
            case _ if id_ is not None:
                self.error(id_, -32601, f"Method not found: {method}")

    def capabilities(self) -> dict[str, Any]:
        if self.bare:
            return {"tools": {}, "resources": {}}
        return {"tools": {"listChanged": True}, "resources": {"listChanged": not self.quiet, "subscribe": True}}

    def tool(self, name: str) -> dict[str, Any]:
        tool: dict[str, Any] = {"name": name, "description": self.said.get(name, "added"), "inputSchema": OBJECT}
        if name == "echo":
            tool["inputSchema"] = {**OBJECT, "properties": {"text": {"type": "string"}}, "required": ["text"]}
        if name == "broken":
            tool["outputSchema"] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        return tool

    def listed(self) -> list[str]:
        documents = [uri for uri in self.resources if uri.startswith("dpe://")]
        others = [uri for uri in self.resources if uri not in documents]
        match self.lists:
            case "catalogue":
                return ["dpe://fake", *others]
            case "pages":
                return [*(f"{uri}/pages/0" for uri in documents), *others]
        return list(self.resources)

    def read(self, id_: Any, uri: str) -> None:
        self.reads.append(uri)
        if self.resources.get(uri) != "hang":
            if self.read_delay:
                threading.Timer(self.read_delay, self.answer_read, (id_, uri)).start()
            else:
                self.answer_read(id_, uri)

    def answer_read(self, id_: Any, uri: str) -> None:
        text = self.resources.get(uri)
        if self.catalogue and uri.partition("?")[0] == "dpe://fake":
            text = self.catalogue_page(urllib.parse.parse_qs(uri.partition("?")[2]))
        if text is None:
            self.error(id_, -32002, "Resource not found", {"uri": uri})
            return
        contents = [{"uri": uri, "mimeType": "text/plain", "text": text}]
        extra = {"ttlMs": 60_000, "cacheScope": "private"} if self.spoken == MODERN else {}
        self.result(id_, contents=contents, **extra)

    def catalogue_page(self, query: dict[str, list[str]]) -> str:
        listed = {uri: text for uri, text in self.resources.items() if uri.startswith("dpe://")}
        start = int(query.get("offset", ["0"])[0])
        page = list(listed)[start : start + int(query.get("limit", ["20"])[0])]
        documents: list[dict[str, Any]]
        if self.catalogue == "titles":
            documents = [{"doc_ref": uri.rpartition("/")[2], "title": f"listed as {uri}"} for uri in page]
        elif self.catalogue == "empty":
            empty = {"title": "", "page_count": 0, "keywords": [], "summary": None, "file_type": "", "file_uri": None}
            documents = [{"doc_ref": uri.rpartition("/")[2], "last_modified": None, **empty} for uri in page]
        else:
            documents = [json.loads(listed[uri]) for uri in page]
        return json.dumps({"documents": documents, "total_count": len(listed), "note": self.note})

    def cancel(self, id_: Any) -> None:
        if self.listens.pop(id_, None) is None and (event := self.calls.get(id_)):
            self.say("cancelling")
            event.set()

    def text(self, id_: Any, text: str, **result: Any) -> None:
        self.result(id_, content=[{"type": "text", "text": text}], **result)

    def call(self, id_: Any, name: str, arguments: dict[str, Any]) -> None:
        self.called += 1
        if self.mode == "dies-on-call":
            self.die("a call killed me")
        if self.mode == "closes-stdout":
            os.close(1)
            return
        if name not in self.tools:
            self.error(id_, -32602, f"Unknown tool: {name}")
            return
        match name:
            case "echo":
                self.text(id_, str(arguments.get("text", "")))
            case "sleep":
                self.calls[id_] = threading.Event()
                threading.Thread(target=self.sleep, args=(id_, arguments["seconds"]), daemon=True).start()
            case "crash":
                self.code = arguments.get("code", self.code)
                self.die("crashed as asked")
            case "leave":
                self.text(id_, "bye")
                os._exit(0)
            case "huge":
                self.text(id_, "x" * arguments["size"])
            case "picture":
                image = {"type": "image", "data": base64.b64encode(b"picture").decode(), "mimeType": "image/png"}
                self.result(id_, content=[image])
            case "blare":
                self.blare(id_, arguments["size"], arguments["id"])
                self.text(id_, "said it all")
            case "litter":
                self.write(f'{{"jsonrpc":"2.0","id":{id_},"result":{{"content":['.encode())
                self.write(",".join([arguments["item"]] * arguments["count"]).encode() + b"]}}\n")
            case "shout":
                self.notify("message", level="info", data="x" * arguments["size"])
                self.text(id_, "done")
            case "twice" if self.request_state is None:
                if self.progress_token is not None:
                    self.notify("progress", progressToken=self.progress_token, progress=3, total=4)
                self.send({"id": id_, "result": {"resultType": "input_required", "requestState": "once"}})
            case "twice":
                if self.progress_token is not None:
                    self.notify("progress", progressToken=self.progress_token, progress=1, total=4)
                self.text(id_, f"asked {self.request_state} before")
            case "asks":
                question = {"method": "elicitation/create", "params": {"message": "who?", "requestedSchema": OBJECT}}
                self.send({"id": id_, "result": {"resultType": "input_required", "inputRequests": {"q": question}}})
            case "chatter":
                for number in range(arguments["lines"]):
                    self.notify("message", level="info", data=f"line {number}")
                self.text(id_, "done")
            case "report":
                self.calls[id_] = threading.Event()
                work = (id_, self.progress_token, arguments)
                threading.Thread(target=self.report, args=work, daemon=True).start()
            case "fail":
                self.text(id_, "it went wrong", isError=True)
            case "broken":
                self.text(id_, "?", structuredContent={"n": "not a number"})
            case "stats":
                self.text(id_, json.dumps(self.stats()))
            case _:
                self.change(name, arguments)
                self.text(id_, "done")

    def stats(self) -> dict[str, Any]:
        watched = self.subscribed.union(
            *(wanted.get("resourceSubscriptions") or () for wanted in self.listens.values())
        )
        return {
            "pid": os.getpid(),
            "era": self.spoken,
            "called": self.called,
            "cancelled": self.cancelled,
            "listens": len(self.listens),
            "watched": sorted(watched),
            "reads": self.reads,
        }

    def change(self, name: str, arguments: dict[str, Any]) -> None:
        match name:
            case "add_tool":
                self.tools.append(arguments["name"])
                self.changed("tools/list_changed")
            case "remove_tool":
                self.tools.remove(arguments["name"])
                self.changed("tools/list_changed")
            case "describe":
                self.said[arguments["name"]] = arguments["description"]
                self.changed("tools/list_changed")
            case "set_resource":
                uri, known = arguments["uri"], arguments["uri"] in self.resources and not arguments.get("silently")
                self.resources[uri] = arguments["text"]
                self.changed("resources/updated" if known else "resources/list_changed", uri if known else None)
            case "grow":
                self.resources[arguments["uri"]] = "x" * arguments["size"]
                self.changed("resources/updated", arguments["uri"])
            case "remove_resource":
                del self.resources[arguments["uri"]]
                self.changed("resources/list_changed")
            case "drop_listens":
                for id_ in list(self.listens):
                    if arguments.get("graceful"):
                        self.result(id_, _meta={SUBSCRIPTION_ID: id_})
                    else:
                        self.notify("cancelled", requestId=id_)
                self.listens.clear()

    def report(self, id_: Any, token: Any, arguments: dict[str, Any]) -> None:
        steps = arguments.get("steps", 0)
        text = {"message": arguments["message"]} if "message" in arguments else {}
        values = arguments.get("values") or [{"progress": step, "total": steps, **text} for step in range(1, steps + 1)]
        pause = arguments.get("seconds", 0) / len(values)
        for value in values:
            if token is not None:
                self.notify("progress", progressToken=token, **value)
            if pause and self.calls[id_].wait(pause):
                self.cancelled += 1
                self.say("cancelled report")
                break
        else:
            self.text(id_, "reported" if token is not None else "did not report")
        del self.calls[id_]

    def sleep(self, id_: Any, seconds: float) -> None:
        self.say("started sleep")
        if self.calls[id_].wait(seconds):
            self.cancelled += 1
            self.say("cancelled sleep")
        else:
            self.text(id_, "slept")
        del self.calls[id_]


if __name__ == "__main__":
    mode, *rest = sys.argv[1:]
    assert mode in MODES, mode
    Server(mode, dict(option.split("=", 1) for option in rest)).run()

"""An MCP stdio server in plain Python whose tools ask the person something, in either era.

    asking.py [era=old|new|both] [start=1]

With `start=1` it asks as soon as it is initialized, without any call. See `TOOLS`. It reports on stderr what a test may
wait for: `asking`, `answered`, `cancelled`.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

MODERN = "2026-07-28"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"

TOOLS = {
    "ask": "message, schema: a form; answers with what it was told, as JSON",
    "several": "questions {key: {message, schema}}: all at once, since 2026-07-28",
    "visit": "url, id: a URL; answers with what it was told",
    "visit_first": "url, id: refused with -32042 until it was called once",
    "rounds": "count: asks so many times in a row before it answers",
    "flood": "count: asks so many questions at once, and answers with how many had which answer; before 2026-07-28",
    "sampled": "wants a model to say something, since 2026-07-28",
    "needs": "refuses where questions are not declared, as mcp's servers do, and asks otherwise",
    "declared": "answers with what the client declares that it can do",
    "complete": "id: says that what a URL was for is done",
    "withdraw": "asks, and takes the question back",
    "back_channel": "asks by way of the old era's back channel, whatever the era",
    "hold": "waits until `let_go`",
    "let_go": "",
    "log": "level, data, logger: a log message",
    "pid": "",
}


class Server:
    def __init__(self, options: dict[str, str]) -> None:
        self.era = options.get("era", "both")
        self.asks_at_start = bool(options.get("start"))
        self.spoken = ""
        self.client: dict[str, Any] = {}
        self.answers: dict[Any, Callable[[dict[str, Any]], None]] = {}
        self.asked = 0
        self.refused: set[str] = set()
        self.held: list[Any] = []

    def run(self) -> None:
        for line in sys.stdin.buffer:
            self.receive(json.loads(line))

    def say(self, text: str) -> None:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def send(self, **message: Any) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    def result(self, id_: Any, **result: Any) -> None:
        self.send(id=id_, result={**result, **({"resultType": "complete"} if self.spoken == MODERN else {})})

    def text(self, id_: Any, text: object) -> None:
        written = text if isinstance(text, str) else json.dumps(text)
        self.result(id_, content=[{"type": "text", "text": written}])

    def error(self, id_: Any, code: int, message: str, data: Any = None) -> None:
        self.send(id=id_, error={"code": code, "message": message, **({"data": data} if data else {})})

    # --- questions

    def request(self, params: dict[str, Any], take: Callable[[dict[str, Any]], None]) -> str:
        """A question of the old era."""
        self.asked += 1
        id_ = f"question-{self.asked}"
        self.answers[id_] = take
        self.send(id=id_, method="elicitation/create", params=params)
        self.say("asking")
        return id_

    def require(self, call: Any, state: str, **requests: dict[str, Any]) -> None:
        """Questions since 2026-07-28."""
        asked = {key: {"method": "elicitation/create", "params": params} for key, params in requests.items()}
        self.send(id=call, result={"resultType": "input_required", "requestState": state, "inputRequests": asked})
        self.say("asking")

    def question(self, call: Any, given: dict[str, Any], params: dict[str, Any]) -> None:
        """Ask in the era that is spoken; the tool answers with the answer."""
        if self.spoken != MODERN:
            self.request(params, lambda answer: self.text(call, answer))
        elif answers := given.get("inputResponses"):
            assert given["requestState"] == "a state: ✓"
            self.say("answered")
            self.text(call, answers["q"])
        else:
            self.require(call, "a state: ✓", q=params)

    # --- requests

    def receive(self, message: dict[str, Any]) -> None:
        method, id_, params = message.get("method"), message.get("id"), message.get("params") or {}
        match method:
            case None:
                self.say("answered")
                self.answers.pop(id_)(message.get("result") or {"error": message["error"]})
            case "server/discover" if self.era != "old":
                self.spoken = MODERN
                found = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}}
                self.result(id_, **found, ttlMs=0, cacheScope="private")
            case "initialize" if self.era != "new" and self.spoken != MODERN:
                self.spoken, self.client = "2025-11-25", params["capabilities"]
                info = {"name": "asking", "version": "1"}
                self.result(id_, protocolVersion=self.spoken, capabilities={"tools": {}}, serverInfo=info)
            case "initialize":
                # So that whoever took a late answer to the probe for none probes again.
                versions = {"supported": [MODERN], "requested": params.get("protocolVersion")}
                self.error(id_, -32022, "unsupported protocol version", versions)
            case "notifications/initialized" if self.asks_at_start:
                self.request(form("Which workspace?"), lambda answer: self.say(f"told {answer['action']}"))
            case "notifications/cancelled":
                self.say("cancelled")
            case "tools/list":
                hints = {"ttlMs": 0, "cacheScope": "private"} if self.spoken == MODERN else {}
                tools = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
                self.result(id_, tools=tools, **hints)
            case "ping":
                self.result(id_)
            case "tools/call":
                if self.spoken == MODERN:
                    self.client = params["_meta"][CAPABILITIES]
                self.call(id_, params["name"], params.get("arguments") or {}, params)
            case _ if id_ is not None:
                self.error(id_, -32601, f"Method not found: {method}")

    def call(self, id_: Any, name: str, arguments: dict[str, Any], given: dict[str, Any]) -> None:
        match name:
            case "ask":
                self.question(id_, given, form(arguments.get("message", "Well?"), arguments.get("schema")))
            case "several" if answers := given.get("inputResponses"):
                self.text(id_, answers)
            case "several":
                questions = arguments["questions"]
                asked = {key: form(part["message"], part.get("schema")) for key, part in questions.items()}
                self.require(id_, "several", **asked)
            case "visit":
                self.question(id_, given, self.visit(arguments))
            case "visit_first":
                if arguments["url"] in self.refused:
                    self.text(id_, "thank you")
                else:
                    self.refused.add(arguments["url"])
                    self.say("asking")
                    self.error(id_, -32042, "sign in first", {"elicitations": [self.visit(arguments)]})
            case "rounds" if self.spoken != MODERN:
                self.ask_on(id_, arguments["count"], [])
            case "rounds":
                done = int(given.get("requestState") or 0)
                if done == arguments["count"]:
                    self.text(id_, f"asked {done} times")
                else:
                    self.require(id_, str(done + 1), q=form(f"Round {done + 1}?"))
            case "flood":
                self.flood(id_, arguments["count"])
            case "sampled":
                params = {"messages": [], "maxTokens": 1}
                request = {"method": "sampling/createMessage", "params": params}
                self.send(id=id_, result={"resultType": "input_required", "inputRequests": {"s": request}})
            case "needs" if "elicitation" not in self.client:
                missing: dict[str, Any] = {"requiredCapabilities": {"elicitation": {"form": {}}}}
                self.error(id_, -32021, "Client did not declare the elicitation capability", missing)
            case "needs":
                self.question(id_, given, form("Well?"))
            case "declared":
                self.text(id_, self.client)
            case "complete":
                self.send(method="notifications/elicitation/complete", params={"elicitationId": arguments["id"]})
                self.text(id_, "said")
            case "withdraw":
                asked_as = self.request(form("Never mind?"), lambda answer: self.text(id_, f"told {answer}"))
                self.held.append((id_, asked_as))
            case "back_channel" if self.spoken == MODERN:
                what = "Cannot send 'elicitation/create': this transport context has no back-channel"
                self.error(id_, -32600, f"{what} for server-initiated requests.")
            case "back_channel":
                self.request(form("Who?"), lambda answer: self.text(id_, answer))
            case "hold":
                self.held.append((id_, None))
                self.say("holding")
            case "let_go":
                for held, question in self.held:
                    if question is not None:
                        self.send(method="notifications/cancelled", params={"requestId": question})
                    self.text(held, "let go")
                self.held.clear()
                self.text(id_, "done")
            case "log":
                self.send(method="notifications/message", params=arguments)
                self.text(id_, "said")
            case "pid":
                self.text(id_, str(os.getpid()))
            case _:
                self.error(id_, -32602, f"Unknown tool: {name}")

    def flood(self, id_: Any, count: int) -> None:
        told: dict[str, int] = {}

        def take(answer: dict[str, Any]) -> None:
            told[answer["action"]] = told.get(answer["action"], 0) + 1
            if sum(told.values()) == count:
                self.text(id_, told)

        for _ in range(count):
            self.request(form("Well?"), take)

    def ask_on(self, id_: Any, left: int, told: list[str]) -> None:
        if left:
            self.request(form("Again?"), lambda answer: self.ask_on(id_, left - 1, [*told, answer["action"]]))
        else:
            self.text(id_, told)

    def visit(self, arguments: dict[str, Any]) -> dict[str, Any]:
        params = {"mode": "url", "message": arguments.get("message", "Please sign in."), "url": arguments["url"]}
        return params if self.spoken == MODERN else {**params, "elicitationId": arguments.get("id", "e-1")}


def form(message: str, schema: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"mode": "form", "message": message, "requestedSchema": schema or {"type": "object", "properties": {}}}


if __name__ == "__main__":
    Server(dict(option.split("=", 1) for option in sys.argv[1:])).run()

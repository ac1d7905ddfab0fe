"""An MCP server in plain Python whose tools run as tasks, in either design, over stdio or streamable HTTP.

    tasking.py [era=old|new] [http=1]

See `TOOLS`. It reports on stderr what a test may wait for: `created`, `cancelled`. With `http=1` it prints its port,
answers every request with one JSON body, and serves until its stdin closes.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

MODERN = "2026-07-28"
EXTENSION = "io.modelcontextprotocol/tasks"
RELATED = "io.modelcontextprotocol/related-task"

TOOLS = {
    "slow": "polls, text: ends after so many polls; tells its status and its progress meanwhile",
    "asks": "message, schema: asks a person while it runs, and answers with what it was told",
    "never": "never ends",
    "fails": "ends with a JSON-RPC error",
    "refuses": "ends with a result that is an error",
    "expires": "is forgotten at once",
    "nonsense": "what: `status`, `id`, `poll`, `result`, `created`, `ask` or `rounds` is not as MCP says",
    "direct": "answers at once, without a task",
}
STAMP = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"}


class Task:
    def __init__(self, number: int, name: str, arguments: dict[str, Any], token: Any) -> None:
        self.id = f"task-{number}-of-the-server"
        self.name, self.arguments, self.token = name, arguments, token
        self.polls = 0
        self.status = "working"
        self.answer: dict[str, Any] | None = None
        self.waiting: list[Any] = []


class Server:
    def __init__(self, options: dict[str, str]) -> None:
        self.is_modern = options.get("era") == "new"
        self.tasks: dict[str, Task] = {}
        self.questions: dict[str, Task] = {}

    def run(self) -> None:
        for line in sys.stdin.buffer:
            message = json.loads(line)
            self.receive(message.get("id"), message.get("method"), message.get("params") or {}, message)

    def say(self, text: str) -> None:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def send(self, **message: Any) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    def result(self, id_: Any, result: dict[str, Any]) -> None:
        self.send(id=id_, result={**({"resultType": "complete"} if self.is_modern else {}), **result})

    def error(self, id_: Any, code: int, message: str) -> None:
        self.send(id=id_, error={"code": code, "message": message})

    def receive(self, id_: Any, method: str | None, params: dict[str, Any], message: dict[str, Any]) -> None:
        match method:
            case None:
                task = self.questions.pop(id_)
                self.end(task, text(json.dumps(message.get("result") or message["error"])))
            case "server/discover" if self.is_modern:
                capabilities: dict[str, Any] = {"tools": {}, "extensions": {EXTENSION: {}}}
                found = {"supportedVersions": [MODERN], "capabilities": capabilities}
                self.result(id_, {**found, "ttlMs": 0, "cacheScope": "private"})
            case "initialize" if not self.is_modern:
                capabilities = {"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}
                info = {"name": "tasking", "version": "1"}
                self.result(id_, {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info})
            case "tools/list":
                hints = {"ttlMs": 0, "cacheScope": "private"} if self.is_modern else {}
                tool: dict[str, Any] = {"inputSchema": {"type": "object"}}
                if not self.is_modern:
                    tool["execution"] = {"taskSupport": "required"}
                self.result(id_, {"tools": [{"name": name, **tool} for name in TOOLS], **hints})
            case "tools/call":
                self.call(id_, params)
            case "tasks/get" | "tasks/result" | "tasks/cancel" | "tasks/update":
                task_or_none = self.tasks.get(params["taskId"])
                if task_or_none is None or task_or_none.name == "expires":
                    self.error(id_, -32602, "Task has expired")
                else:
                    self.about(id_, method.removeprefix("tasks/"), task_or_none, params)
            case _ if id_ is not None:
                self.error(id_, -32601, f"Method not found: {method}")

    def call(self, id_: Any, params: dict[str, Any]) -> None:
        name, meta = params["name"], params.get("_meta") or {}
        if name == "direct":
            self.result(id_, text("at once"))
            return
        capabilities = meta.get("io.modelcontextprotocol/clientCapabilities") or {}
        if not (EXTENSION in capabilities.get("extensions", {}) if self.is_modern else params.get("task")):
            self.error(id_, -32601, "this tool can only be run as a task")
            return
        task = Task(len(self.tasks), name, params.get("arguments") or {}, meta.get("progressToken"))
        self.tasks[task.id] = task
        shown = self.shown(task)
        if task.arguments.get("what") == "created":
            shown["taskId"] = 7
        self.result(id_, {"resultType": "task", **shown} if self.is_modern else {"task": shown})
        self.say("created")

    def shown(self, task: Task) -> dict[str, Any]:
        ttl, pause = ("ttlMs", "pollIntervalMs") if self.is_modern else ("ttl", "pollInterval")
        shown = {"taskId": task.id, "status": task.status, ttl: 60_000, pause: 50, **STAMP}
        if task.status == "working":
            shown["statusMessage"] = f"poll {task.polls}"
        match task.arguments.get("what"):
            case "status" if task.polls:
                shown["status"] = "resting"
            case "id" if task.polls:
                shown["taskId"] = "another"
            case "poll":
                shown[pause] = "soon"
        return shown

    def about(self, id_: Any, verb: str, task: Task, params: dict[str, Any]) -> None:
        match verb:
            case "get":
                task.polls += 1
                self.work(task)
                self.result(id_, {**self.shown(task), **self.more(task)})
            case "cancel":
                self.say("cancelled")
                self.end(task, text("cancelled"), "cancelled")
                self.result(id_, {} if self.is_modern else self.shown(task))
            case "update":
                self.result(id_, {})
                if task.arguments.get("what") != "rounds":
                    self.end(task, text(json.dumps(params["inputResponses"]["q"])))
            case "result" if task.answer is not None:
                self.result(id_, task.answer)
            case "result" if task.status == "failed":
                self.error(id_, -32050, "it broke")
            case "result":
                task.waiting.append(id_)
                if task.status == "input_required":
                    self.questions[question := f"q-{task.id}"] = task
                    related = {"_meta": {RELATED: {"taskId": task.id}}}
                    self.send(id=question, method="elicitation/create", params={**form(task), **related})

    def work(self, task: Task) -> None:
        """What a task does between two polls."""
        if task.token is not None and not self.is_modern:
            report = {
                "progressToken": task.token,
                "progress": task.polls,
                "total": 10,
                "message": f"{task.polls} of 10",
            }
            self.send(method="notifications/progress", params=report)
        match task.name:
            case "slow" if task.polls >= task.arguments.get("polls", 3):
                self.end(task, text(task.arguments.get("text", "done")))
            case "asks" if task.status == "working":
                task.status = "input_required"
            case "fails":
                task.status = "failed"
            case "refuses":
                self.end(task, {**text("no"), "isError": True})
            case "nonsense" if task.arguments.get("what") in ("ask", "rounds"):
                task.status = "input_required"
            case "nonsense" if task.polls > 1:
                self.end(task, {"content": 7} if task.arguments.get("what") == "result" else text("done"))

    def more(self, task: Task) -> dict[str, Any]:
        """What `tasks/get` says besides, since 2026-07-28."""
        if not self.is_modern:
            return {}
        match task.status:
            case "completed":
                return {"result": task.answer}
            case "failed":
                return {"error": {"code": -32050, "message": "it broke"}}
            case "input_required" if task.arguments.get("what") == "ask":
                return {"inputRequests": ["who?"]}
            case "input_required":
                key = f"q{task.polls}" if task.name == "nonsense" else "q"
                return {"inputRequests": {key: {"method": "elicitation/create", "params": form(task)}}}
        return {}

    def end(self, task: Task, answer: dict[str, Any], status: str = "completed") -> None:
        if task.answer is None:
            task.answer, task.status = answer, status
        for id_ in task.waiting:
            self.result(id_, task.answer)
        task.waiting.clear()


def form(task: Task) -> dict[str, Any]:
    schema = task.arguments.get("schema") or {"type": "object", "properties": {}}
    return {"mode": "form", "message": task.arguments.get("message", "Well?"), "requestedSchema": schema}


def text(said: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}]}


def serve(server: Server) -> None:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            sent: list[dict[str, Any]] = []
            server.send = lambda **each: sent.append({"jsonrpc": "2.0", **each})  # type: ignore[method-assign]
            if name := (message.get("params") or {}).get("taskId"):
                assert not server.is_modern or self.headers["Mcp-Name"] == name
            server.receive(message.get("id"), message.get("method"), message.get("params") or {}, message)
            body = json.dumps(next((each for each in sent if "id" in each), {})).encode()
            self.send_response(200 if "id" in message else 202)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body) if "id" in message else 0))
            self.end_headers()
            if "id" in message:
                self.wfile.write(body)

        def do_GET(self) -> None:
            self.send_error(405)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        print(http.server_port, flush=True)
        sys.stdin.read()
        http.shutdown()


if __name__ == "__main__":
    options = dict(argument.split("=", 1) for argument in sys.argv[1:])
    serve(Server(options)) if "http" in options else Server(options).run()

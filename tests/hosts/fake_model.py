"""A model on loopback for hosts that speak Gemini's API: it calls one tool, and then repeats what the tool said."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class FakeModel:
    """`declared` has the functions that the host declared in its last request, by name."""

    def __init__(self, wanted: str, arguments: dict[str, Any]) -> None:
        self.wanted = wanted
        self.arguments = arguments
        self.declared: dict[str, dict[str, Any]] = {}
        self.url = ""

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        declared = [each for tool in request.get("tools", ()) for each in tool.get("functionDeclarations", ())]
        self.declared = {each["name"]: each for each in declared}
        said = [part["functionResponse"] for part in request["contents"][-1]["parts"] if "functionResponse" in part]
        name = next((name for name in self.declared if name.endswith(self.wanted)), None)
        part: dict[str, Any] = {"text": f"It said: {json.dumps(said)}"}
        if name is not None and not said:
            part = {"functionCall": {"name": name, "args": self.arguments}}
        content = {"role": "model", "parts": [part]}
        return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": {}}


@contextmanager
def serving(model: FakeModel) -> Iterator[FakeModel]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps(model.answer(request)).encode()
            streams = "stream" in self.path
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream" if streams else "application/json")
            body = b"data: " + body + b"\r\n\r\n" if streams else body
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing: pytest's output is not a log of requests."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        model.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield model
        finally:
            server.shutdown()
            thread.join()

"""A service on loopback that speaks the APIs of models, streaming too, and enforces their rules. A test writes what the
model says. It knows OpenAI's chat and responses, Anthropic's messages and Gemini's contents.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, TypeAlias, TypeVar

from tests.models.rules import JSON, broken_rules, tools_of

Call: TypeAlias = tuple[str, JSON | str]


@dataclass(frozen=True)
class Turn:
    """What the model says: a text, and the tools that it calls. A tool is named by the end of its name."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    status: int = 200
    breaks: Literal["cut", "garbage"] | None = None
    """How a stream ends before its end: the connection is cut, or an event is not JSON."""


@dataclass
class Heard:
    """A request that came."""

    style: str
    body: JSON
    path: str
    streams: bool
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def tools(self) -> list[str]:
        return [name for name, _, _ in tools_of(self.body, self.style)]


Script: TypeAlias = Callable[[Heard], Turn]


class ModelService:
    """`requests` has what came. `broken` has the rules that requests broke: such a request is answered with 400."""

    def __init__(self, turns: Sequence[Turn] | Script = (), *, enforces: bool = True) -> None:
        self.requests: list[Heard] = []
        self.broken: list[str] = []
        self.url = ""
        self._enforces = enforces
        self._calls = 0
        self._script: Script = turns if callable(turns) else self._one_after_the_other
        self._turns = [] if callable(turns) else list(turns)

    def says(self, *turns: Turn) -> None:
        """Add to what the model says."""
        self._turns += turns

    def _one_after_the_other(self, heard: Heard) -> Turn:
        return self._turns.pop(0) if self._turns else Turn("Nothing more.")

    def answer(self, heard: Heard) -> tuple[int, Any]:
        """The status, and the body or the list of events."""
        self.requests.append(heard)
        problems = broken_rules(heard.style, heard.body) if self._enforces else []
        self.broken += problems
        if problems:
            return 400, _error(heard.style, "; ".join(problems)[:2000])
        turn = self._script(heard)
        if turn.status != 200:
            return turn.status, _error(heard.style, turn.text)
        calls = [(f"call_{self._number()}", _full_name(name, heard.tools), given) for name, given in turn.calls]
        said = _SPEAKERS[heard.style](turn.text, calls, heard)
        if turn.breaks is None:
            return 200, said
        return 200, [*said[:3], _CUT if turn.breaks == "cut" else said[2].partition("data:")[0] + "data: {no JSON\n\n"]

    def _number(self) -> int:
        self._calls += 1
        return self._calls


#: Ends a list of events: the connection is cut after them.
_CUT = "cut"
_ServiceT = TypeVar("_ServiceT", bound=ModelService)


def _full_name(name: str, tools: Sequence[str]) -> str:
    return next((tool for tool in tools if tool.endswith(name)), name)


def _error(style: str, message: str) -> JSON:
    if style == "anthropic":
        return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    if style == "gemini":
        return {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}
    return {"error": {"message": message, "type": "invalid_request_error", "code": None}}


Calls: TypeAlias = list[tuple[str, str, JSON | str]]


def _pieces(text: str) -> list[str]:
    """A text as a stream brings it."""
    return re.findall(r".{1,7}", text, re.DOTALL) or [""]


def _text(given: JSON | str) -> str:
    return given if isinstance(given, str) else json.dumps(given)


# --- OpenAI's chat


def _chat(text: str, calls: Calls, heard: Heard) -> Any:
    base = {"id": "c1", "created": 1, "model": heard.body["model"]}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    asked = [
        {"id": key, "type": "function", "function": {"name": name, "arguments": _text(given)}}
        for key, name, given in calls
    ]
    reason = "tool_calls" if calls else "stop"
    if not heard.streams:
        message: JSON = {"role": "assistant", "content": text or None, "refusal": None, "annotations": []}
        if asked:
            message["tool_calls"] = asked
        choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
        return {**base, "object": "chat.completion", "choices": [choice], "usage": usage}

    def chunk(delta: JSON, finish: str | None = None) -> JSON:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {**base, "object": "chat.completion.chunk", "choices": [choice]}

    chunks = [
        chunk({"role": "assistant", "content": ""}),
        *(chunk({"content": each}) for each in _pieces(text) if each),
    ]
    for index, call in enumerate(asked):
        function: Any = call["function"]
        chunks.append(chunk({"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]}))
        chunks += [
            chunk({"tool_calls": [{"index": index, "function": {"arguments": each}}]})
            for each in _pieces(function["arguments"])
        ]
    chunks.append(chunk({}, reason))
    if (heard.body.get("stream_options") or {}).get("include_usage"):
        chunks.append({**base, "object": "chat.completion.chunk", "choices": [], "usage": usage})
    return [*(f"data: {json.dumps(each)}\n\n" for each in chunks), "data: [DONE]\n\n"]


# --- OpenAI's responses


def _responses(text: str, calls: Calls, heard: Heard) -> Any:
    output: list[JSON] = []
    if text:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        output.append({"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": content})
    output += [
        {"type": "function_call", "id": f"f{key}", "call_id": key, "name": name, "arguments": _text(given)}
        | {"status": "completed"}
        for key, name, given in calls
    ]
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110, **details}
    whole = {"id": "r1", "object": "response", "created_at": 1, "model": heard.body["model"], "status": "completed"}
    whole |= {"output": output, "usage": usage, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    if not heard.streams:
        return whole
    events: list[JSON] = [{"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}]
    for index, item in enumerate(output):
        where = {"output_index": index, "item_id": item["id"]}
        if item["type"] == "message":
            events.append(
                {"type": "response.output_item.added", "output_index": index, "item": {**item, "content": []}}
            )
            part = {"type": "output_text", "text": "", "annotations": []}
            events.append({"type": "response.content_part.added", **where, "content_index": 0, "part": part})
            events += [
                {"type": "response.output_text.delta", **where, "content_index": 0, "delta": each, "logprobs": []}
                for each in _pieces(text)
            ]
            events.append(
                {"type": "response.output_text.done", **where, "content_index": 0, "text": text, "logprobs": []}
            )
        else:
            added = {**item, "arguments": ""}
            events.append({"type": "response.output_item.added", "output_index": index, "item": added})
            delta = "response.function_call_arguments.delta"
            events += [{"type": delta, **where, "delta": each} for each in _pieces(item["arguments"])]
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": whole})
    numbered = [{**event, "sequence_number": number} for number, event in enumerate(events)]
    return [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in numbered]


# --- Anthropic


def _messages(text: str, calls: Calls, heard: Heard) -> Any:
    content: list[JSON] = [{"type": "text", "text": text}] if text else []
    content += [
        {"type": "tool_use", "id": key, "name": name, "input": given if isinstance(given, dict) else {}}
        for key, name, given in calls
    ]
    reason = "tool_use" if calls else "end_turn"
    usage = {"input_tokens": 100, "output_tokens": 10}
    base = {"id": "m1", "type": "message", "role": "assistant", "model": heard.body["model"], "stop_sequence": None}
    if not heard.streams:
        return {**base, "content": content, "stop_reason": reason, "usage": usage}
    start = {**base, "content": [], "stop_reason": None, "usage": {"input_tokens": 100, "output_tokens": 1}}
    events: list[JSON] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(content):
        empty = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        if block["type"] == "text":
            deltas: list[JSON] = [{"type": "text_delta", "text": each} for each in _pieces(text)]
        else:
            pieces = _pieces(json.dumps(block["input"]))
            deltas = [{"type": "input_json_delta", "partial_json": each} for each in pieces]
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    ended = {"stop_reason": reason, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": ended, "usage": {"output_tokens": 10}})
    events.append({"type": "message_stop"})
    return [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events]


# --- Gemini


def _contents(text: str, calls: Calls, heard: Heard) -> Any:
    parts: list[JSON] = [{"text": text}] if text else []
    parts += [
        {"functionCall": {"name": name, "args": given if isinstance(given, dict) else {}}} for _, name, given in calls
    ]
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}

    def answer(parts: list[JSON], **more: str) -> JSON:
        candidate = {"content": {"role": "model", "parts": parts}, "index": 0, **more}
        return {"candidates": [candidate], "usageMetadata": usage}

    if not heard.streams:
        return answer(parts, finishReason="STOP")
    chunks = [[{"text": each}] for each in _pieces(text) if each] + [[part] for part in parts if "text" not in part]
    answers = [*(answer(each) for each in chunks), answer([], finishReason="STOP")]
    return [f"data: {json.dumps(each)}\r\n\r\n" for each in answers]


_SPEAKERS = {"openai": _chat, "openai-responses": _responses, "anthropic": _messages, "gemini": _contents}
_PATHS = (
    ("/chat/completions", "openai"),
    ("/responses", "openai-responses"),
    ("/messages", "anthropic"),
    (":generateContent", "gemini"),
    (":streamGenerateContent", "gemini"),
)


# --- HTTP


@contextmanager
def serving(service: _ServiceT) -> Iterator[_ServiceT]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            path = self.path.partition("?")[0]
            style = next((style for end, style in _PATHS if path.endswith(end)), None)
            if style is None:
                self._send(404, b"{}", "application/json")
                return
            streams = bool(body.get("stream")) or "stream" in path
            status, answer = service.answer(Heard(style, body, path, streams, dict(self.headers.items())))
            if isinstance(answer, list) and answer[-1] == _CUT:
                self._send(status, "".join(answer[:-1]).encode(), "text/event-stream", missing=1000)
                self.close_connection = True
            elif isinstance(answer, list):
                self._send(status, "".join(answer).encode(), "text/event-stream")
            else:
                self._send(status, json.dumps(answer).encode(), "application/json")

        def _send(self, status: int, body: bytes, kind: str, missing: int = 0) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body) + missing))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing: pytest's output is not a log of requests."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        service.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield service
        finally:
            server.shutdown()
            thread.join()

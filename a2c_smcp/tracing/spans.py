"""The spans of a request on its way from the agent to the MCP server. Knows OpenTelemetry's API and no SDK.

agent      CLIENT      `client:tool_call echo`, of the messaging conventions
server     SERVER      `client:tool_call`
           PRODUCER    `send client:tool_call`, if another server process has the computer; there a CONSUMER
computer   SERVER      `client:tool_call echo`
           CLIENT      `tools/call echo`, of the MCP conventions, to an MCP server over pipes. Over HTTP mcp makes it

Spans have no arguments and no results, and no messages of errors: those may quote secrets. Names that peers chose are
cut. So a span has a bounded size.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, Self

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, SpanKind, StatusCode, TraceFlags, Tracer

from a2c_smcp.errors import error_from_payload
from a2c_smcp.smcp import EVENTS, TOOL_CALL_EVENT, Kind
from a2c_smcp.tracing.trace_context import well_formed
from a2c_smcp.utils.text import cut, printable

__all__ = ["OpenSpan", "Spans"]

#: The requests that computers answer. Everything else has no spans.
_TRACED: Final = frozenset(name for name, event in EVENTS.items() if event.kind is Kind.RELAY)
#: Characters of a name that a peer chose.
_LONGEST_NAME: Final = 128


class OpenSpan:
    """A span that has begun. It ends with its `with` block, and notes what the block raises."""

    __slots__ = ("_span", "traceparent")

    def __init__(self, span: Span) -> None:
        self._span = span
        own = span.get_span_context()
        self.traceparent = f"00-{own.trace_id:032x}-{own.span_id:016x}-{own.trace_flags:02x}"
        """What names this span as the parent of another one."""

    def failed(self, kind: str) -> None:
        """Note that it failed, by a code or a word. Messages of errors are not kept."""
        _note_failure(self._span, kind)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: TracebackType | None) -> None:
        if error is not None:
            code = getattr(error, "code", None)  # an `SMCPError` and an `MCPError` have one
            self.failed(str(code) if isinstance(code, int) else type(error).__name__)
        self._span.end()

    @contextmanager
    def current(self) -> Iterator[Self]:
        """Inside this block, new spans are children of this span, also those of mcp."""
        with self, trace.use_span(self._span, record_exception=False, set_status_on_exception=False):
            yield self


class Spans:
    """Makes spans with this tracer."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    # --- the agent

    @staticmethod
    def is_traced(event: str) -> bool:
        return event in _TRACED

    @contextmanager
    def asking(self, event: str, data: Mapping[str, Any]) -> Iterator[tuple[OpenSpan, dict[str, Any]]]:
        """The span of a request that an agent sends, and the request with the trace context in its `meta`.

        Its parent is the current span, or the one that the caller put into `meta` if that is of another trace.
        """
        meta = data.get("meta") or {}
        given, current = well_formed(meta.get("traceparent")), trace.get_current_span().get_span_context()
        is_same = given is None or (current.is_valid and given[3:35] == f"{current.trace_id:032x}")
        context = None if is_same else _context(given)
        span = self._start(_name(event, data), SpanKind.CLIENT, _request(event, data, "send"), context)
        with span:
            yield span, {**data, "meta": {**meta, "traceparent": span.traceparent}}

    # --- the server

    def relaying(self, event: str, request: Mapping[str, Any], parent: str | None) -> OpenSpan:
        """The span of a request that a server process has got from its agent."""
        return self._start(event, SpanKind.SERVER, _request(event, request, "process"), _context(parent))

    def sending_across(self, event: str, request: Mapping[str, Any], parent: str | None, process: str) -> OpenSpan:
        """The span of a request until it is sent to another server process."""
        return self._across("send", SpanKind.PRODUCER, event, request, parent, process)

    def taking_across(self, event: str, request: Mapping[str, Any], parent: str | None, process: str) -> OpenSpan:
        """The span of a request that came from another server process."""
        return self._across("process", SpanKind.CONSUMER, event, request, parent, process)

    def _across(
        self, does: str, kind: SpanKind, event: str, request: Mapping[str, Any], parent: str | None, process: str
    ) -> OpenSpan:
        attributes = {
            **_request(event, request, does),
            "messaging.system": "nats",
            "messaging.operation.name": f"{does} {event}",
            "messaging.destination.name": process,
        }
        return self._start(f"{does} {event}", kind, attributes, _context(parent))

    # --- the computer

    async def answering(self, event: str, data: Any, answer: Callable[[Any], Awaitable[Any]]) -> Any:
        """Answer a request inside a span, if it is a request of an agent."""
        if event not in _TRACED or not isinstance(data, Mapping):
            return await answer(data)
        meta = data.get("meta")
        parent = well_formed(meta.get("traceparent")) if isinstance(meta, Mapping) else None
        attributes = _request(event, data, "process")
        with self._start(_name(event, data), SpanKind.SERVER, attributes, _context(parent)).current() as span:
            reply = await answer(data)
            if isinstance(reply, Mapping) and (error := error_from_payload(reply)) is not None:
                span.failed(str(error.code))
            return reply

    @staticmethod
    def tool_failed(code: object) -> None:
        """Note in the current span that its tool call failed. There is no code if the tool itself said so."""
        _note_failure(trace.get_current_span(), str(code) if isinstance(code, int) else "tool_error")

    @contextmanager
    def mcp_request(
        self, method: str, params: Mapping[str, Any] | None, request_id: object
    ) -> Iterator[Mapping[str, Any]]:
        """The span of a request to an MCP server over pipes. Gives the parameters with the trace context in `_meta`."""
        target = (params or {}).get("name")
        attributes = {
            "mcp.method.name": method,
            "jsonrpc.request.id": str(request_id),
            "network.transport": "pipe",
        }
        if method == "tools/call":
            attributes |= _tool(target)
        elif method == "prompts/get" and isinstance(target, str):
            attributes["gen_ai.prompt.name"] = _shown(target)
        name = f"{method} {_shown(target)}" if isinstance(target, str) else method
        with self._start(name, SpanKind.CLIENT, attributes, None) as span:
            meta = {**((params or {}).get("_meta") or {}), "traceparent": span.traceparent}
            yield {**(params or {}), "_meta": meta}

    def _start(self, name: str, kind: SpanKind, attributes: Mapping[str, Any], context: Context | None) -> OpenSpan:
        return OpenSpan(self._tracer.start_span(name, context, kind, attributes))


def _note_failure(span: Span, kind: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR)


def _context(parent: str | None) -> Context:
    """The context of a span whose parent is elsewhere. Without a parent it begins a trace, whatever is current here."""
    if parent is None:
        return Context()
    _, trace_id, span_id, flags = parent.split("-")
    remote = SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16)))
    return trace.set_span_in_context(NonRecordingSpan(remote), Context())


def _name(event: str, data: Mapping[str, Any]) -> str:
    tool = data.get("tool_name")
    return f"{event} {_shown(tool)}" if event == TOOL_CALL_EVENT and isinstance(tool, str) else event


def _request(event: str, data: Mapping[str, Any], operation: str) -> dict[str, str]:
    attributes = {
        "messaging.system": "smcp",
        "messaging.operation.name": event,
        "messaging.operation.type": operation,
    }
    for key, field in (
        ("messaging.destination.name", "computer"),
        ("messaging.message.conversation_id", "req_id"),
        ("messaging.client.id", "agent"),
    ):
        if isinstance(value := data.get(field), str):
            attributes[key] = _shown(value)
    if event == TOOL_CALL_EVENT:
        attributes |= _tool(data.get("tool_name"))
    return attributes


def _tool(name: object) -> dict[str, str]:
    known = {"gen_ai.tool.name": _shown(name)} if isinstance(name, str) else {}
    return {"gen_ai.operation.name": "execute_tool", **known}


def _shown(name: str) -> str:
    # A lone surrogate would cost all spans of a batch: OTLP cannot encode it.
    return name if name.isascii() and name.isprintable() and len(name) <= _LONGEST_NAME else _tamed(name)


def _tamed(name: str) -> str:
    return printable(cut(name, _LONGEST_NAME))

"""Sends the spans of a process to a collector, as the `OTEL_…` variables say. Needs the extra `otel`.

What leaves the process has no messages of errors and no tracebacks: mcp's own spans have them, and they may quote
secrets. A collector that does not answer holds nobody up: spans wait in a queue of bounded size, then they are dropped.
"""

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, Span, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
from opentelemetry.trace import Status

from a2c_smcp.tracing.problems import TracingProblem
from a2c_smcp.utils.limited_log import SparseFilter

__all__ = ["DiscreetSpanProcessor", "exporting_provider"]

#: Seconds that the end of a process may take for the spans that are still here.
_FLUSH_SECONDS: Final = 2.0
#: Characters of a text in a span: names of tools and methods, which peers choose.
_LONGEST_TEXT: Final = 256
#: What an event of a span says about an exception, beside its type.
_TELLING: Final = frozenset({"exception.message", "exception.stacktrace"})


class DiscreetSpanProcessor(SpanProcessor):
    """Passes spans on to another processor, without what may quote secrets, and without texts that are too long.

    For a program that has a `TracerProvider` of its own: `provider.add_span_processor(DiscreetSpanProcessor(batch))`.
    """

    def __init__(self, inner: SpanProcessor) -> None:
        self._inner = inner

    def on_start(self, span: Span, parent_context: Any = None) -> None:
        self._inner.on_start(span, parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        self._inner.on_end(_discreet(span))

    def shutdown(self) -> None:
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return self._inner.force_flush(timeout_millis)


def _discreet(span: ReadableSpan) -> ReadableSpan:
    return ReadableSpan(
        name=_tamed(span.name),
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes={key: _tamed(value) for key, value in (span.attributes or {}).items()},
        events=[Event(each.name, _told(each.attributes), each.timestamp) for each in span.events],
        links=span.links,
        kind=span.kind,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def _told(attributes: Any) -> dict[str, Any]:
    return {key: _tamed(value) for key, value in (attributes or {}).items() if key not in _TELLING}


def _tamed(value: Any) -> Any:
    if not isinstance(value, str) or (len(value) <= _LONGEST_TEXT and value.isascii()):
        return value
    # A lone surrogate would cost all spans of a batch: OTLP cannot encode it.
    return value[:_LONGEST_TEXT].encode("utf-8", "replace").decode()


@contextmanager
def exporting_provider(service: str) -> Iterator[TracerProvider]:
    """Export what is traced inside this block. It becomes OpenTelemetry's global provider, which mcp uses.

    `OTEL_SERVICE_NAME` wins over `service`. Raises `TracingProblem` if a variable asks for something that is not there.
    """
    resource = Resource.create({} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": service})
    limits = SpanLimits(max_span_attributes=64, max_events=16, max_links=16)
    provider = TracerProvider(resource=resource, span_limits=limits, shutdown_on_exit=False)
    if (exporter := _exporter()) is not None:
        provider.add_span_processor(DiscreetSpanProcessor(BatchSpanProcessor(exporter)))
    _limit_logs()
    trace.set_tracer_provider(provider)
    try:
        yield provider
    finally:
        # In a thread, because the SDK waits up to 30 s for a collector that does not answer.
        ending = threading.Thread(target=provider.shutdown, name="a2c-last-spans", daemon=True)
        ending.start()
        ending.join(_FLUSH_SECONDS)


def _exporter() -> SpanExporter | None:
    name = os.environ.get("OTEL_TRACES_EXPORTER", "").strip() or "otlp"
    if name == "none":
        return None
    if name == "console":
        return ConsoleSpanExporter(out=sys.stderr)  # stdout may be the pipe to an MCP host
    if name == "otlp":
        name = f"otlp_proto_{_protocol()}"
    found = next(iter(entry_points(group="opentelemetry_traces_exporter", name=name)), None)
    if found is None:
        raise TracingProblem(f"no exporter of OpenTelemetry called {name!r} is installed")
    exporter: SpanExporter = found.load()()
    return exporter


def _protocol() -> str:
    names = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    given = next(filter(None, (os.environ.get(name, "").strip() for name in names)), "http/protobuf")
    return "http" if given == "http/protobuf" else given


def _limit_logs() -> None:
    """OpenTelemetry logs every batch that it cannot send, and every malformed context of a peer."""
    for name in list(logging.root.manager.loggerDict):
        if name.startswith("opentelemetry."):
            _make_sparse(logging.getLogger(name))


def _make_sparse(theirs: logging.Logger) -> None:
    if not any(isinstance(each, SparseFilter) for each in theirs.filters):
        theirs.addFilter(SparseFilter())

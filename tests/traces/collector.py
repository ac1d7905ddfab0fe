"""A collector of traces on loopback: it takes OTLP over HTTP, and shows what came as trees."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

__all__ = ["Collector", "TakenSpan", "collecting", "tree"]

_KINDS = ("", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")


@dataclass(frozen=True)
class TakenSpan:
    trace_id: str
    span_id: str
    parent_id: str
    service: str
    name: str
    kind: str
    began: int
    attributes: dict[str, Any] = field(repr=False)
    is_error: bool = False
    message: str = ""


class Collector:
    """What the processes have sent."""

    def __init__(self) -> None:
        self.url = ""
        self._spans: dict[str, TakenSpan] = {}
        self._news = threading.Condition()

    def take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        with self._news:
            for each in request.resource_spans:
                service = {item.key: item.value.string_value for item in each.resource.attributes}["service.name"]
                for scope in each.scope_spans:
                    for span in scope.spans:
                        assert span.span_id.hex() not in self._spans, f"{span.name} came twice"
                        self._spans[span.span_id.hex()] = _taken(service, span)
            self._news.notify_all()

    def trace(self, trace_id: str, wanted: Callable[[list[TakenSpan]], bool], timeout: float = 30.0) -> list[TakenSpan]:
        """The spans of a trace, once all are here that are waited for."""
        with self._news:
            self._news.wait_for(lambda: wanted(self._of(trace_id)), timeout)
            return self._of(trace_id)

    def trace_of(self, name: str, timeout: float = 30.0) -> str:
        """The id of the trace that has a span with this name."""
        with self._news:
            assert self._news.wait_for(lambda: any(each.name == name for each in self._spans.values()), timeout), name
            return next(each.trace_id for each in self._spans.values() if each.name == name)

    @property
    def spans(self) -> list[TakenSpan]:
        with self._news:
            return list(self._spans.values())

    def _of(self, trace_id: str) -> list[TakenSpan]:
        return [each for each in self._spans.values() if each.trace_id == trace_id]


def _taken(service: str, span: Any) -> TakenSpan:
    return TakenSpan(
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        service,
        span.name,
        _KINDS[span.kind],
        span.start_time_unix_nano,
        {item.key: item.value.string_value for item in span.attributes},
        span.status.code == 2,
        span.status.message,
    )


def tree(spans: list[TakenSpan]) -> list[str]:
    """The lines of a picture of a trace, without times: `service  KIND  name`, indented by depth."""
    known = {each.span_id for each in spans}
    lines: list[str] = []

    def add(span: TakenSpan, depth: int) -> None:
        lines.append(f"{'   ' * depth}{span.name}  [{span.service}, {span.kind.lower()}]")
        for child in sorted((each for each in spans if each.parent_id == span.span_id), key=lambda it: it.began):
            add(child, depth + 1)

    for root in sorted((each for each in spans if each.parent_id not in known), key=lambda it: it.began):
        add(root, 0)
    return lines


@contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            collector.take(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    collector.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join(30)
        server.server_close()

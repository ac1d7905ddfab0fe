"""Which `traceparent` counts, and how a request gets another one without being decoded."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Raw
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from a2c_smcp.server.envelopes import Message
from a2c_smcp.server.relay_spans import begin_span
from a2c_smcp.smcp import TOOL_CALL_EVENT
from a2c_smcp.tracing.spans import Spans
from a2c_smcp.tracing.trace_context import traceparent_in, well_formed, with_parent

OLD = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
NEW = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"

ODD = [
    None,
    7,
    [OLD],
    "",
    OLD.upper(),
    OLD + "-x",
    OLD + "\n",
    " " + OLD,
    "ff" + OLD[2:],
    OLD.replace("0af7651916cd43dd8448eb211c80319c", "0" * 32),
    OLD.replace("b7ad6b7169203331", "0" * 16),
    OLD.replace("b7", "b\u0667"),
    "\ud800" * 55,
    "0" * 1_000_000,
]


def recording() -> tuple[TracerProvider, Callable[[], Any]]:
    """A provider, and what returns the spans that have ended."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter.get_finished_spans


@pytest.mark.parametrize("value", ODD, ids=range(len(ODD)))
def test_a_malformed_parent_is_ignored(value: object) -> None:
    assert well_formed(value) is None
    assert traceparent_in(Raw(json.dumps({"traceparent": value}).encode())) is None


def test_a_parent_is_found_beside_anything_else() -> None:
    assert traceparent_in(Raw(json.dumps({"a": {"traceparent": NEW}, "traceparent": OLD}).encode())) == OLD
    assert traceparent_in(Raw(f'{{"traceparent":"{NEW}","traceparent":"{OLD}"}}'.encode())) == OLD
    assert traceparent_in(Raw(b"{}")) is None
    assert traceparent_in(Raw(b"null")) is None
    assert traceparent_in(Raw(b'{"traceparent":"\\u0030' + OLD[1:].encode() + b'"}')) is None
    assert traceparent_in(Raw(json.dumps({"traceparent": OLD, "x": "y" * 70_000}).encode())) is None


def test_only_the_one_parent_of_a_request_is_replaced() -> None:
    request = json.dumps([TOOL_CALL_EVENT, {"params": {"text": f"say {OLD}"}, "meta": {"traceparent": OLD}}])
    replaced = with_parent(request, OLD, NEW)
    assert json.loads(replaced)[1] == {"params": {"text": f"say {OLD}"}, "meta": {"traceparent": NEW}}
    assert len(replaced) == len(request)
    twice = json.dumps([TOOL_CALL_EVENT, {"params": {"text": OLD}, "meta": {"traceparent": OLD}}])
    assert with_parent(twice, OLD, NEW) == twice


def test_names_that_peers_choose_are_bounded_and_can_be_encoded() -> None:
    provider, ended = recording()
    spans = Spans(provider.get_tracer("t"))
    data = {"tool_name": "x\ud800" * 10_000, "computer": ["pc"], "req_id": "\n", "meta": {"traceparent": 7}}
    with spans.asking(TOOL_CALL_EVENT, data) as (span, sent):
        assert sent["meta"]["traceparent"] == span.traceparent
    [taken] = ended()
    assert len(taken.name) < 2_000
    assert sum(len(str(value)) for value in taken.attributes.values()) < 4_000
    taken.to_json().encode()


def test_a_request_across_without_a_parent_still_links_the_processes() -> None:
    provider, ended = recording()
    spans = Spans(provider.get_tracer("t"))
    message = Message(TOOL_CALL_EVENT, {"computer": "pc"}, body="[]")
    with begin_span(spans.relaying, message):
        pass
    with begin_span(spans.relaying, message):
        pass
    first, second = ended()
    assert second.parent.span_id == first.context.span_id
    assert message.body == "[]"


def test_an_agent_goes_on_with_the_current_trace_unless_its_caller_names_another() -> None:
    provider, ended = recording()
    tracer = provider.get_tracer("t")
    spans, other = Spans(tracer), {"meta": {"traceparent": NEW, "mine": 1}}
    with tracer.start_as_current_span("current") as current:
        with spans.asking(TOOL_CALL_EVENT, {}):
            pass
        same = f"00-{current.get_span_context().trace_id:032x}-b7ad6b7169203331-01"
        with spans.asking(TOOL_CALL_EVENT, {"meta": {"traceparent": same}}):
            pass
        with spans.asking(TOOL_CALL_EVENT, other) as (_, sent):
            assert sent["meta"]["mine"] == 1
            assert other["meta"]["traceparent"] == NEW
    first, second, third, _ = ended()
    assert {first.parent.span_id, second.parent.span_id} == {current.get_span_context().span_id}
    assert f"{third.parent.span_id:016x}" == NEW.split("-")[2]

"""What leaves a process, and what it costs when nobody takes it."""

import subprocess
import sys

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from typer.testing import CliRunner

from a2c_smcp import tracing
from a2c_smcp.cli import app
from a2c_smcp.tracing.span_export import DiscreetSpanProcessor

COMMANDS = [
    ["server"],
    ["computer", "run", "--headless", "--office", "lab", "--config", "servers.json"],
    ["agent", "room", "--office", "lab"],
    ["mcp", "--office", "lab"],
]

_SILENT_COLLECTOR = """
import sys, time
from a2c_smcp import tracing
from a2c_smcp.tracing.switch import TRACING

with tracing.exporting("t"):
    for _ in range(100):
        with TRACING.spans.asking("client:tool_call", {"tool_name": "x"}):
            pass
    began = time.monotonic()
print(time.monotonic() - began, TRACING.spans)
"""


def test_messages_and_tracebacks_stay_in_the_process() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(DiscreetSpanProcessor(SimpleSpanProcessor(exporter)))
    with (
        pytest.raises(ValueError, match="hunter2"),
        provider.get_tracer("t").start_as_current_span("x\ud800" * 1000, attributes={"name": "\ud800", "n": 1}),
    ):
        raise ValueError("hunter2")
    [span] = exporter.get_finished_spans()
    assert span.status.status_code is StatusCode.ERROR
    assert span.events[0].attributes == {"exception.type": "ValueError", "exception.escaped": "False"}
    assert span.attributes == {"name": "?", "n": 1}
    assert len(span.name) == 256
    assert "hunter2" not in span.to_json()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_each_command_says_why_it_cannot_trace(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "carrier_pigeon")
    refused = CliRunner().invoke(app, [*command, "--otel"])
    assert refused.exit_code == 2
    assert "carrier_pigeon" in refused.output


def test_without_the_extra_a_sentence_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "find_spec", lambda _: None)
    with pytest.raises(tracing.TracingProblem, match=r"pip install '\.\[otel\]'"), tracing.exporting("t"):
        pass


def test_a_collector_that_is_not_there_holds_nobody_up() -> None:
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "PATH": "", "PYTHONPATH": ":".join(sys.path)}
    child = [sys.executable, "-c", _SILENT_COLLECTOR]
    ended = subprocess.run(child, env=environment, capture_output=True, text=True, timeout=60)
    seconds, spans = ended.stdout.split()
    assert (ended.returncode, spans) == (0, "None")
    assert float(seconds) < 20  # OpenTelemetry itself would wait for 30 seconds

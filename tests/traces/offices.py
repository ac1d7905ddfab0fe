"""Two servers on NATS in this process, a computer with two MCP servers in processes of their own, and a collector."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from a2c_smcp import tracing
from a2c_smcp.tracing.span_export import DiscreetSpanProcessor
from tests.nats_server import running_nats
from tests.server.harness import two_servers
from tests.traces.collector import Collector, collecting

__all__ = ["TracedOffice", "a2c", "traced_office"]

_ECHO = [sys.executable, "-m", "tests.traces.echo_mcp"]


def a2c(*words: str) -> list[str]:
    return [sys.executable, "-m", "a2c_smcp.cli", *words]


@dataclass(frozen=True)
class TracedOffice:
    near: str
    """The server that the computer is connected to."""
    far: str
    collector: Collector
    environment: dict[str, str]


@contextmanager
def tracing_here(collector: Collector) -> Iterator[None]:
    """As a program does it that has a provider of its own."""
    provider = TracerProvider(resource=Resource.create({"service.name": "office"}), shutdown_on_exit=False)
    batch = BatchSpanProcessor(OTLPSpanExporter(f"{collector.url}/v1/traces"), schedule_delay_millis=50)
    provider.add_span_processor(DiscreetSpanProcessor(batch))
    tracing.start(provider)
    try:
        yield
    finally:
        tracing.stop()
        provider.shutdown()


@contextmanager
def traced_office(folder: Path) -> Iterator[TracedOffice]:
    """The servers are ready. The computer may still be on its way."""
    with ExitStack() as stack:
        collector = stack.enter_context(collecting())
        environment = {
            **os.environ,
            "HOME": str(folder),
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "A2C_OTEL": "1",
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_BSP_SCHEDULE_DELAY": "50",
        }

        def start(command: list[str]) -> "subprocess.Popen[str]":
            process = subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE)
            stack.callback(_end, process)
            return process

        web = start([*_ECHO, "http", "mcp-http"])
        nats = stack.enter_context(running_nats(folder / "nats"))
        stack.enter_context(tracing_here(collector))
        two = stack.enter_context(two_servers(None, nats.url, "traces"))
        assert web.stdout is not None
        config = folder / "servers.json"
        config.write_text(json.dumps(_config(web.stdout.readline().strip(), environment)))
        run = a2c("computer", "run", "--headless", "--yes", "--name", "pc", "--office", "lab", "--config", str(config))
        start([*run, "--url", two.url, "--log-level", "error"])
        yield TracedOffice(two.url, two.other.url, collector, environment)


def _config(web: str, environment: dict[str, str]) -> dict[str, object]:
    variables = {key: value for key, value in environment.items() if key.startswith(("OTEL_", "PYTHONPATH"))}
    pipes = {"command": _ECHO[0], "args": [*_ECHO[1:], "stdio", "mcp-stdio"], "env": variables}
    return {
        "servers": [
            {"name": "a", "type": "stdio", "server_parameters": pipes, "tool_prefix": "pipe_"},
            {"name": "b", "type": "streamable", "server_parameters": {"url": web}, "tool_prefix": "web_"},
        ]
    }


def _end(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    process.communicate(timeout=30)

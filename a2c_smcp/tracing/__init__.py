"""Traces: one tree of spans for a request, from the agent through the servers and the computer to the MCP server.

Off, until a program calls `start` or enters `exporting`, or a command has `--otel`.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from a2c_smcp.tracing.problems import TracingProblem
from a2c_smcp.tracing.switch import TRACING
from a2c_smcp.utils.distribution import install_command

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

__all__ = ["TracingProblem", "exporting", "start", "stop"]


def start(provider: "TracerProvider | None" = None) -> None:
    """Make spans from now on, with OpenTelemetry's global provider or with this one.

    For a program that has set up an SDK of its own. Spans have no arguments, results or messages of errors. Those of
    mcp, over HTTP, have messages: `a2c_smcp.tracing.span_export.DiscreetSpanProcessor` takes them out.
    """
    from opentelemetry.trace import get_tracer

    from a2c_smcp import __version__
    from a2c_smcp.tracing.spans import Spans

    TRACING.spans = Spans(get_tracer("a2c_smcp", __version__, provider))


def stop() -> None:
    """Make no more spans."""
    TRACING.spans = None


@contextmanager
def exporting(service: str) -> Iterator[None]:
    """Trace inside this block, and send the spans where the `OTEL_…` variables of the environment say.

    `service` is the name of this process, unless `OTEL_SERVICE_NAME` is set. The end of the block takes at most two
    seconds, whether or not the collector answers. A process can enter it once. Raises `TracingProblem` without the
    extra `otel`, or if a variable asks for an exporter that is not installed.
    """
    if find_spec("opentelemetry.sdk") is None:
        raise TracingProblem(f"traces need the extra otel: {install_command('otel')}")
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        yield
        return
    from a2c_smcp.tracing.span_export import exporting_provider

    with exporting_provider(service) as provider:
        start(provider)
        try:
            yield
        finally:
            stop()

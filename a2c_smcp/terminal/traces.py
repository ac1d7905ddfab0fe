"""The option `--otel` of the commands: traces with OpenTelemetry."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Annotated

import typer

__all__ = ["OtelOption", "traced"]

OtelOption = Annotated[
    bool,
    typer.Option(
        "--otel/--no-otel",
        envvar="A2C_OTEL",
        help="Send traces with OpenTelemetry, as the OTEL_… variables say. Needs the extra otel.",
    ),
]


@contextmanager
def traced(service: str, *, wanted: bool) -> Iterator[None]:
    """Trace inside this block, if that is wanted. It is a usage error of the command if that cannot work."""
    with ExitStack() as stack:
        if wanted:
            from a2c_smcp.tracing import TracingProblem, exporting

            try:
                stack.enter_context(exporting(service))
            except TracingProblem as problem:
                raise typer.BadParameter(f"--otel: {problem}") from None
        yield

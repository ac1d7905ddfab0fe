"""Reports of progress on their way to the caller that asked for them. Pure: no sockets; the clock is handed in."""

from collections.abc import Callable

from a2c_smcp.errors import TooManyRequestsError
from a2c_smcp.packets import encode_event
from a2c_smcp.server.limits import TokenBucket
from a2c_smcp.server.outbox import ReportPacket
from a2c_smcp.server.relays import Relay
from a2c_smcp.smcp import MAX_PROGRESS_MESSAGE, TOOL_PROGRESS_NOTIFICATION, ToolProgress
from a2c_smcp.wire import Encoded, codec

__all__ = ["ReportLimit", "report_packet"]


class ReportLimit:
    """The `ReportWay` to `deliver`, which takes JSON. Drops reports that are too long or come too fast, so that a
    computer cannot harm a caller. The last report is always delivered, at the latest by `end`: after a connection was
    stuck, many reports come at once, though nobody sent them too fast.
    """

    __slots__ = ("_bucket", "_clock", "_deliver", "_held")

    def __init__(self, deliver: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._deliver = deliver
        self._clock = clock
        # Twice the rate of a computer, because a network may deliver the reports of a whole second at once.
        self._bucket = TokenBucket(20.0, clock())
        self._held: ToolProgress | None = None

    def __call__(self, report: ToolProgress) -> None:
        if len(report.get("message", "")) > MAX_PROGRESS_MESSAGE:
            return
        try:
            self._bucket.take(self._clock())
        except TooManyRequestsError:
            self._held = report
            return
        self._held = None
        self._deliver(codec.dumps(report))

    def end(self) -> None:
        if (held := self._held) is not None:
            self._held = None
            self._deliver(codec.dumps(held))


def report_packet(namespace: str, relay: Relay, report: str) -> ReportPacket:
    """A report as its caller gets it."""
    return ReportPacket(encode_event(namespace, TOOL_PROGRESS_NOTIFICATION, Encoded(report)), relay)

"""What a running call says to its caller: reports of progress, and questions. Pure: the clock is handed in."""

from collections.abc import Callable
from typing import Final

from a2c_smcp.errors import PayloadTooLargeError, TooManyRequestsError
from a2c_smcp.packet_text import encode_event
from a2c_smcp.server.limits import TokenBucket
from a2c_smcp.server.port import Mention
from a2c_smcp.server.relays import Relay
from a2c_smcp.smcp import (
    MAX_PROGRESS_MESSAGE,
    MAX_QUESTION,
    MAX_QUESTIONS,
    TOOL_PROGRESS_NOTIFICATION,
    ToolProgress,
    ToolQuestion,
)
from a2c_smcp.wire import Encoded, codec

__all__ = ["QuestionLimit", "ReportLimit", "report_of"]

#: The first reports of a call are not replaced while they wait: a short call may have no others.
_KEPT_REPORTS: Final = 3


class ReportLimit:
    """The `ReportWay` to `deliver`, which takes JSON. Drops reports that are too long or come too fast, so that a
    computer cannot harm a caller. The last report is always delivered, at the latest by `end`: after a connection was
    stuck, many reports come at once, though nobody sent them too fast.
    """

    __slots__ = ("_bucket", "_clock", "_deliver", "_held")

    def __init__(self, deliver: Callable[[str], object], clock: Callable[[], float]) -> None:
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


class QuestionLimit:
    """The `QuestionWay` to `deliver`, which takes JSON and returns whether the question is on its way. A call may ask
    only some questions, and can withdraw as many. None of them replaces another.
    """

    __slots__ = ("_asked", "_deliver", "_withdrawn")

    def __init__(self, deliver: Callable[[str], bool]) -> None:
        self._deliver = deliver
        self._asked = 0
        self._withdrawn = 0

    def __call__(self, question: ToolQuestion, text: str) -> None:
        if len(text) > MAX_QUESTION:
            raise PayloadTooLargeError(f"a question may have {MAX_QUESTION} characters of JSON", {"max": MAX_QUESTION})
        is_withdrawn = question.get("withdrawn", False)
        if is_withdrawn and self._withdrawn >= self._asked:
            return  # the caller knows no question that could be meant
        if not is_withdrawn and self._asked >= MAX_QUESTIONS:
            raise TooManyRequestsError(f"a call may ask {MAX_QUESTIONS} questions")
        if not self._deliver(text):
            raise TooManyRequestsError("this agent has too much to read; the question was left out")
        if is_withdrawn:
            self._withdrawn += 1
        else:
            self._asked += 1


def report_of(namespace: str, relay: Relay, report: str) -> Mention:
    """A report as its caller gets it. While it waits, a later report replaces it, unless it is one of the first."""
    relay.reports += 1
    about = relay if relay.reports > _KEPT_REPORTS else (relay, relay.reports)
    return Mention(encode_event(namespace, TOOL_PROGRESS_NOTIFICATION, Encoded(report)), about)

"""What a server keeps of a request that waits for a computer's answer. Pure; `relay.asks` is the table of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from a2c_smcp.relay.asks import Ask, AskBounds, AskTable
from a2c_smcp.server.envelopes import Answer
from a2c_smcp.server.port import ClientLine
from a2c_smcp.smcp import ToolProgress, ToolQuestion

__all__ = [
    "Cancelable",
    "PassOn",
    "QuestionWay",
    "Relay",
    "RelayAsk",
    "RelayTable",
    "ReportWay",
    "TellEnd",
    "relay_bounds",
    "relay_table",
    "reported_by",
]

TellEnd: TypeAlias = Callable[[Answer | None, Exception | None], None]
"""Is told how a request has ended: with an answer, with an empty one, or with an error."""
PassOn: TypeAlias = Callable[[str, str], bool]
"""Takes a notification for the caller of a relay: its name and its JSON. Returns whether it is on its way."""


class Cancelable(Protocol):
    """A timer of the event loop."""

    def cancel(self) -> None: ...


class ReportWay(Protocol):
    """Takes the reports of one call to its caller. Does not wait."""

    def __call__(self, report: ToolProgress) -> None: ...

    def end(self) -> None:
        """The call has an answer. The answer is sent next."""


class QuestionWay(Protocol):
    """Takes the questions of one call to its caller. Does not wait. Raises an `SMCPError` if it cannot."""

    def __call__(self, question: ToolQuestion, text: str) -> None: ...


@dataclass(slots=True, eq=False)
class Relay:
    """One request on its way."""

    event: str
    agent: str
    req_id: str
    computer: str
    end: TellEnd
    """Told once how it has ended: with an answer, or with an error."""
    line: ClientLine | None = None
    """Where it was sent."""
    ack_id: int = 0
    timer: Cancelable | None = None
    """Fires at its deadline."""
    on_progress: ReportWay | None = None
    """`None` if the caller did not ask for reports."""
    on_question: QuestionWay | None = None
    """`None` if the caller cannot answer questions."""
    reports: int = 0
    """How many reports were passed on."""


RelayAsk: TypeAlias = Ask[int, Relay]
"""A relay in the table: `caller` and `target` are sessions, `topic` is what a report must name."""
RelayTable: TypeAlias = AskTable[int, Relay]


def relay_table(most_per_caller: int) -> RelayTable:
    """A table that allows each caller this many relays. The ids of one caller's relays may have 1 MiB of characters
    together: the caller chooses their length, and the ids are all that is kept of a request once it is sent.
    """
    return AskTable(relay_bounds(most_per_caller))


def relay_bounds(most_per_caller: int) -> AskBounds:
    return AskBounds(most_per_caller, 1024 * 1024)


def reported_by(relays: RelayTable, sid: str, report: ToolProgress | ToolQuestion) -> RelayAsk | None:
    """The relay to this session that a report or a question is about, if its caller wants reports or questions.

    A request that was repeated has two relays. Its caller gets each report once.
    """
    topic = (sid, report["agent"], report["req_id"])
    return relays.report(topic, about=lambda relay: relay.computer == report["computer"])

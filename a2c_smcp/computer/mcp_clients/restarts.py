"""How a life of an MCP server ended, in words, and whether another one follows. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from a2c_smcp.computer.mcp_clients.connection_options import ConnectionOptions
from a2c_smcp.utils.text import cut

__all__ = ["LifeEnd", "Restarts", "end_reason", "with_last_words"]


@dataclass(frozen=True, slots=True)
class LifeEnd:
    """How a life of the server ended."""

    reason: str
    lasted: float | None
    """How many seconds it ran; `None` if it never did."""
    wants_old_handshake: bool = False
    """It never ran because it cannot take the probe."""
    is_planned: bool = False
    """It was ended so that it starts again."""
    is_lasting: bool = False
    """It never ran, and another try would fail as well."""
    needs_sign_in: bool = False
    """A person has to sign in before it can run."""


@dataclass(frozen=True, slots=True)
class Restarts:
    """How many times in a row a server was started again, and after how many short lives."""

    count: int = 0
    short_lives: int = 0

    def after(self, lasted: float | None, options: ConnectionOptions) -> "Restarts | None":
        """The count for the restart after a life of `lasted` seconds; `None` if the server is not restarted.

        A server that has never run is not restarted here: its caller is told why it does not start.
        """
        timings = options.timings
        count = 0 if lasted is not None and lasted >= timings.healthy else self.count
        has_never_run = lasted is None and count == 0
        if not options.auto_reconnect or has_never_run or count >= options.max_restarts:
            return None
        is_steady = lasted is not None and lasted >= timings.steady
        return Restarts(count + 1, 1 if is_steady else self.short_lives + 1)


def end_reason(exit_words: str | None, failure: str | None, session_end: str | None, start_seconds: float) -> str:
    """Why a session did not start, or ended, in words.

    The exit of the process tells most. If there is none, this is the failure of the transport, or else what ended the
    session. If nothing is known, the server did not answer within `start_seconds`.
    """
    return exit_words or failure or session_end or f"no answer within {start_seconds:g} s"


def with_last_words(reason: str, stderr: Sequence[str]) -> str:
    """The reason, and the last lines that the server wrote to stderr."""
    tail = stderr[-5:]
    return f"{reason}; stderr: {cut(' | '.join(tail))}" if tail else reason

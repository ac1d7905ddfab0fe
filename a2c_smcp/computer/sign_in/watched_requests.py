"""How a request to an MCP server learns that the server refused it: then it was not executed.

mcp sends a request in the context of the task that made it, so the task and the transport share a variable.
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

from a2c_smcp.computer.sign_in.challenges import Challenge
from a2c_smcp.computer.utils.callbacks import ignore

__all__ = ["WATCHED_REQUEST", "WatchedRequest"]


class WatchedRequest:
    """A request that waits for its answer. `give_up` ends this wait, if no answer will come."""

    def __init__(self, give_up: Callable[[], None] = ignore) -> None:
        self.give_up = give_up
        self.challenge: Challenge | None = None
        """Why the server refused it."""
        self.signed_in_at: float | None = None
        """The sign-in whose token was refused."""

    def refused(self, challenge: Challenge, signed_in_at: float | None) -> None:
        self.challenge, self.signed_in_at = challenge, signed_in_at
        if challenge.is_step_up:
            self.give_up()


WATCHED_REQUEST: Final[ContextVar[WatchedRequest | None]] = ContextVar("WATCHED_REQUEST", default=None)

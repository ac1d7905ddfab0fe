"""The states of an MCP server, and which state may follow which. Pure. Imports no mcp: front ends use it, too."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

__all__ = ["TRANSITIONS", "ServerState", "StateChange"]


class ServerState(Enum):
    STOPPED = "stopped"
    STARTING = "starting"
    RUNNING = "running"
    BACKING_OFF = "backing_off"
    FAILED = "failed"
    STOPPING = "stopping"
    DISABLED = "disabled"
    SIGN_IN = "sign_in"
    """It waits until a person has signed in to it."""


TRANSITIONS: Final[Mapping[ServerState, frozenset[ServerState]]] = {
    ServerState.STOPPED: frozenset({ServerState.STARTING}),
    ServerState.STARTING: frozenset(
        {
            *(ServerState.RUNNING, ServerState.BACKING_OFF, ServerState.FAILED, ServerState.STOPPING),
            ServerState.SIGN_IN,
        }
    ),
    ServerState.RUNNING: frozenset(
        {ServerState.BACKING_OFF, ServerState.FAILED, ServerState.STOPPING, ServerState.SIGN_IN}
    ),
    ServerState.SIGN_IN: frozenset({ServerState.STARTING, ServerState.STOPPING}),
    ServerState.BACKING_OFF: frozenset({ServerState.STARTING, ServerState.STOPPING}),
    ServerState.FAILED: frozenset({ServerState.STARTING, ServerState.STOPPING}),
    ServerState.STOPPING: frozenset({ServerState.STOPPED}),
    ServerState.DISABLED: frozenset(),
}


@dataclass(frozen=True, slots=True)
class StateChange:
    """A server went from one state to another; `reason` says why, if there is something to say."""

    name: str
    old: ServerState
    new: ServerState
    reason: str | None = None
    restarts: int = 0
    """How many times in a row it had to be started again."""

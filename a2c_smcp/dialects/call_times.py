"""How long a call may take at servers of each dialect. All in seconds. Pure."""

from typing import Final

from a2c_smcp.dialects.handshake import Dialect

__all__ = ["approval_seconds", "call_grace", "tool_seconds"]

#: A 0.4 server waits for a call as long as the computer runs it, and passes nothing on afterwards. So the computer
#: answers this much earlier, but never before this part of the time is over.
_EARLIER: Final = 0.5
_LEAST_PART: Final = 0.8
#: How long after its timeout a call at such a server may still be answered.
_GRACE: Final = 1.0


def tool_seconds(server: Dialect, timeout: float) -> float:
    """How long a tool may run so that this server is still waiting for the answer."""
    return max(timeout - _EARLIER, timeout * _LEAST_PART) if server is Dialect.V0_4 else timeout


def call_grace(server: Dialect, grace: float) -> float:
    """How much longer than a call's timeout an agent waits at this server."""
    return min(grace, _GRACE) if server is Dialect.V0_4 else grace


def approval_seconds(server: Dialect, seconds: int | None) -> int | None:
    """How long an agent asks this server to wait for a person, in addition to the call's timeout. Servers of other
    dialects than ours end the call after its timeout, and 0.1.2 does not even answer then.
    """
    return seconds if server is Dialect.OURS else None

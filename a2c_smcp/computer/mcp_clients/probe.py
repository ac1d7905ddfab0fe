"""The probe of MCP's new era over pipes, and servers that do not answer it. Tells silent servers from slow ones.

mcp's `Client` asks `server/discover` first. When that is refused, it goes on with the old handshake on the same pipes.
A server may answer the probe, refuse it, exit because of it, or ignore it. How long it takes says little: on a busy
machine a good server needs many seconds for its first word. So the clock starts when the server has read what was sent.
When the time is up, the probe is refused in the server's name. If the server speaks the new era and was only slow, it
refuses the old handshake and names its versions, and mcp probes it again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
from mcp_types import REQUEST_TIMEOUT, RequestId

__all__ = ["Probe", "ProbeTimeouts"]


@dataclass(frozen=True, slots=True)
class ProbeTimeouts:
    """How long a server may stay silent after it has read what it was sent, in seconds."""

    probe: float = 2.0
    """After the probe. Then the old handshake follows."""
    handshake: float = 10.0
    """After the handshake. Then the server is taken to be stuck on the probe."""


class Probe:
    """The first requests to one process. `on_stuck` is called when it has read them all and answered none."""

    def __init__(self, timeouts: ProbeTimeouts, on_stuck: Callable[[], None]) -> None:
        self._timeouts = timeouts
        self._on_stuck = on_stuck
        self._heard = False

    def heard(self) -> None:
        """The server has said something, so it is not silent. mcp deals with what it said."""
        self._heard = True

    async def watch(
        self,
        unanswered: Callable[[], Sequence[RequestId]],
        is_read: Callable[[], bool],
        answer: Callable[[dict[str, Any]], None],
    ) -> None:
        """Return when the server speaks or is taken to be stuck.

        `unanswered` returns the requests that wait for an answer; `is_read` tells whether the server has read them.
        `answer` is called with an answer that we give in the server's name.
        """
        probe = await self._ignored(unanswered, is_read, self._timeouts.probe)
        if probe is None:
            return
        answer(
            {
                "jsonrpc": "2.0",
                "id": probe,
                "error": {"code": REQUEST_TIMEOUT, "message": "the server ignores the probe"},
            }
        )
        if await self._ignored(unanswered, is_read, self._timeouts.handshake) is not None:
            self._on_stuck()

    async def _ignored(
        self, unanswered: Callable[[], Sequence[RequestId]], is_read: Callable[[], bool], seconds: float
    ) -> RequestId | None:
        """The first request that the server has read and not answered for `seconds`; `None` once the server speaks."""
        since: float | None = None
        while not self._heard:
            await anyio.sleep(0.05)  # between two looks at the pipe
            requests = unanswered()
            if not requests or not is_read():
                since = None
            elif since is None:
                since = anyio.current_time()
            elif anyio.current_time() - since >= seconds and not self._heard:
                return requests[0]
        return None

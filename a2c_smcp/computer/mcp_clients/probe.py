"""The probe of MCP's new era over pipes, and servers that do not answer it. Tells the silent from the slow.

mcp's `Client` asks `server/discover` first and, when that is refused, goes on with the old handshake on the same pipes.
A server may answer the probe, refuse it, exit over it, or ignore it. How long it takes says little: on a busy machine a
good server needs many seconds for its first word. So the clock runs only once the server has read what was sent. Then
the probe is refused in its place. A server of the new era that was slow all the same refuses the handshake, naming the
versions that it speaks, and mcp probes it again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import anyio
from mcp_types import REQUEST_TIMEOUT, RequestId

__all__ = ["Probe", "ProbeTimeouts"]

_IGNORED: Final = "the server ignores the probe"


@dataclass(frozen=True, slots=True)
class ProbeTimeouts:
    """How long a server that has read what it was sent may say nothing, in seconds."""

    probe: float = 2.0
    """To the probe, before the old handshake follows it."""
    handshake: float = 10.0
    """To both, before it is taken to be stuck on the probe."""


class Probe:
    """The first requests to one process. `on_stuck` is called when it has read them all and answers none."""

    def __init__(self, patience: ProbeTimeouts, on_stuck: Callable[[], None]) -> None:
        self._patience = patience
        self._on_stuck = on_stuck
        self._heard = False

    def heard(self) -> None:
        """The server has spoken: whatever it said, it is not silent, and mcp deals with it."""
        self._heard = True

    async def watch(
        self,
        unanswered: Callable[[], Sequence[RequestId]],
        is_read: Callable[[], bool],
        answer: Callable[[dict[str, Any]], None],
    ) -> None:
        """Until the server speaks or is taken to be stuck. `answer` is handed what is said in its place.

        `unanswered` tells the requests that were sent and wait; `is_read` tells whether the server has read them.
        """
        probe = await self._ignored(unanswered, is_read, self._patience.probe)
        if probe is None:
            return
        answer({"jsonrpc": "2.0", "id": probe, "error": {"code": REQUEST_TIMEOUT, "message": _IGNORED}})
        if await self._ignored(unanswered, is_read, self._patience.handshake) is not None:
            self._on_stuck()

    async def _ignored(
        self, unanswered: Callable[[], Sequence[RequestId]], is_read: Callable[[], bool], patience: float
    ) -> RequestId | None:
        """The first request that was read and not answered for so long; `None` once the server speaks."""
        since: float | None = None
        while not self._heard:
            # Between two looks at the pipe, while a server starts; in seconds.
            await anyio.sleep(0.05)
            requests = unanswered()
            if not requests or not is_read():
                since = None
            elif since is None:
                since = anyio.current_time()
            elif anyio.current_time() - since >= patience and not self._heard:
                return requests[0]
        return None

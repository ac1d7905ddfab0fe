"""The probe of MCP's new era over pipes, and servers that do not answer it. Tells the silent from the slow.

mcp's `Client` asks `server/discover` first and, when that is refused, goes on with the old handshake on the same pipes.
A server may answer the probe, refuse it, exit over it, or ignore it. How long it takes says little: on a busy machine a
good server needs many seconds for its first word. So the clock runs only once the server has read what was sent. Then
the probe is refused in its place. A server of the new era that was slow all the same refuses the handshake, naming the
versions that it speaks, and mcp probes it again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import anyio
from mcp_types import REQUEST_TIMEOUT, JSONRPCMessage, JSONRPCRequest, RequestId

__all__ = ["Patience", "Probe"]

#: Between two looks at the pipe, while a server starts; in seconds.
_LOOK: Final = 0.05


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a server that has read what it was sent may say nothing, in seconds."""

    probe: float = 2.0
    """To the probe, before the old handshake follows it."""
    handshake: float = 10.0
    """To both, before it is taken to be stuck on the probe."""


class Probe:
    """The first requests to one process. `on_stuck` is called when it read them all and answered none."""

    def __init__(self, patience: Patience, on_stuck: Callable[[], None]) -> None:
        self._patience = patience
        self._on_stuck = on_stuck
        self._requests: list[RequestId] = []
        self._heard = False

    def sent(self, message: JSONRPCMessage) -> None:
        if not self._heard and isinstance(message, JSONRPCRequest):
            self._requests.append(message.id)

    def heard(self) -> None:
        """The server has spoken: whatever it said, it is not silent, and mcp deals with it."""
        self._heard = True

    async def watch(self, is_read: Callable[[], bool], answer: Callable[[dict[str, Any]], object]) -> None:
        """Until the server speaks or is taken to be stuck. `answer` is handed what is said in its place."""
        if await self._is_silent(1, is_read, self._patience.probe):
            error = {"code": REQUEST_TIMEOUT, "message": "the server ignores the probe"}
            answer({"jsonrpc": "2.0", "id": self._requests[0], "error": error})
            if await self._is_silent(2, is_read, self._patience.handshake):
                self._on_stuck()

    async def _is_silent(self, requests: int, is_read: Callable[[], bool], patience: float) -> bool:
        """Whether so many requests were read and nothing was said for so long; or it spoke."""
        since: float | None = None
        while not self._heard:
            await anyio.sleep(_LOOK)
            if len(self._requests) < requests or not is_read():
                since = None
            elif since is None:
                since = anyio.current_time()
            elif anyio.current_time() - since >= patience:
                return not self._heard
        return False

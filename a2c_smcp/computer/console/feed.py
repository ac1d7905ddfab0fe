"""The stream of events that a page reads: a snapshot, then changes by number, one JSON object a line.

A page that falls behind gets another snapshot. A page that reads nothing for long loses its stream. The Computer never
waits for a page.
"""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.console.changes import PageChanges
from a2c_smcp.computer.console.limits import CONSOLE_LIMITS
from a2c_smcp.computer.console.page_json import encoded
from a2c_smcp.computer.console.views import snapshot_view
from a2c_smcp.computer.console.visitors import PageSession
from a2c_smcp.computer.watching.events import ConfigChanged, EventsLost

__all__ = ["FeedResponse", "messages"]


async def messages(computer: Computer, run: str) -> AsyncGenerator[dict[str, Any], None]:
    """The messages for one page, until the page is closed."""
    async with computer.events(4096) as stream:
        snapshot = computer.snapshot()
        known = snapshot.number
        yield snapshot_view(snapshot, run, time.time())
        sent = -CONSOLE_LIMITS.gather_seconds
        while True:
            changes, anew, any_at_all = PageChanges(known), False, False
            until = anyio.current_time() + CONSOLE_LIMITS.ping_seconds
            while (left := until - anyio.current_time()) > 0:
                event = None
                with anyio.move_on_after(left):
                    event = await anext(stream)
                if event is None:
                    break
                if isinstance(event, EventsLost | ConfigChanged):
                    # After a change of the config, servers may be gone or in another order: a snapshot says so.
                    anew = True
                elif stream.number > known:
                    changes.add(event)
                known = max(known, stream.number)
                if not any_at_all:
                    any_at_all = True
                    until = max(
                        sent + CONSOLE_LIMITS.gather_seconds, anyio.current_time() + CONSOLE_LIMITS.settle_seconds
                    )
            if anew:
                snapshot = computer.snapshot()
                known = max(known, snapshot.number)
                yield snapshot_view(snapshot, run, time.time())
            elif any_at_all:
                yield {**changes.message(known, time.time()), "name": computer.name}
            else:
                yield {"kind": "ping", "number": known, "now": time.time()}
            sent = anyio.current_time()


class FeedResponse(Response):
    """Messages as a response. It ends when the page goes, when the page reads nothing for `stall` seconds, or by `end`.
    While it is open it is in `streams`.
    """

    media_type = "application/x-ndjson"

    def __init__(
        self,
        source: AsyncGenerator[dict[str, Any], None],
        session: PageSession,
        streams: "set[FeedResponse]",
        stall: float = 30.0,
    ) -> None:
        super().__init__()
        del self.headers["content-length"]
        self.session = session
        self._source = source
        self._streams = streams
        self._stall = stall
        self._scope = anyio.CancelScope()

    def end(self) -> None:
        """Close the stream."""
        self._scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._streams.add(self)
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            # The source is closed now, and not by the garbage collector: until then events would be kept for it.
            async with aclosing(self._source):
                with self._scope:
                    await self._send_all(receive, send)
        finally:
            self._streams.discard(self)
        with anyio.move_on_after(1, shield=True):
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_all(self, receive: Receive, send: Send) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch, receive)
            async for message in self._source:
                body = encoded(message) + b"\n"
                with anyio.move_on_after(self._stall) as patience:
                    await send({"type": "http.response.body", "body": body, "more_body": True})
                if patience.cancelled_caught:
                    self._scope.cancel()
            tasks.cancel_scope.cancel()

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._scope.cancel()

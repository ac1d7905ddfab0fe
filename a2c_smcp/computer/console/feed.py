"""The stream of events that a page reads: a snapshot, then changes by number, one JSON object a line.

A reader that falls behind gets another snapshot; one that reads nothing for long loses its stream. The Computer waits
for neither.
"""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.console.changes import PageChanges
from a2c_smcp.computer.console.page_json import encoded
from a2c_smcp.computer.console.views import snapshot_view
from a2c_smcp.computer.watching.events import ConfigChanged, EventsLost

__all__ = ["PING_SECONDS", "FeedResponse", "messages"]

#: Something is sent this often: a page that hears nothing for several times as long knows that the stream is gone.
PING_SECONDS: Final = 5.0
#: Between two messages: what happens in this time goes out together.
_GATHER_SECONDS: Final = 0.1
#: What happens together, such as a call's end and its server's state, is gathered even when nothing was sent lately.
_SETTLE_SECONDS: Final = 0.01


async def messages(computer: Computer, run: str) -> AsyncGenerator[dict[str, Any], None]:
    """What one page is told, until it is closed."""
    async with computer.events(4096) as stream:
        snapshot = computer.snapshot()
        known = snapshot.number
        yield snapshot_view(snapshot, run, time.time())
        sent = -_GATHER_SECONDS
        while True:
            changes, anew, any_at_all = PageChanges(known), False, False
            until = anyio.current_time() + PING_SECONDS
            while (left := until - anyio.current_time()) > 0:
                event = None
                with anyio.move_on_after(left):
                    event = await anext(stream)
                if event is None:
                    break
                if isinstance(event, EventsLost | ConfigChanged):
                    # After another config servers may be gone, or stand in another order: that is a new beginning, too.
                    anew = True
                elif stream.number > known:
                    changes.add(event)
                known = max(known, stream.number)
                if not any_at_all:
                    any_at_all = True
                    until = max(sent + _GATHER_SECONDS, anyio.current_time() + _SETTLE_SECONDS)
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
    """The messages as a response that ends when the page goes, when it stops reading, or when `end` is called."""

    media_type = "application/x-ndjson"

    def __init__(self, source: AsyncGenerator[dict[str, Any], None], stall: float = 30.0) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._source = source
        self._stall = stall
        self._scope = anyio.CancelScope()

    def end(self) -> None:
        """Close the stream."""
        self._scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        # The source is closed here, not when it is collected: until then its events would be kept for it.
        async with aclosing(self._source):
            with self._scope:
                await self._send_all(receive, send)
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

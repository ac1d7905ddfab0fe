"""A process's own connection to the office, while it has the seat instead of the holder. Knows no holder, no pipe."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from a2c_smcp.agent.seat.seat_frames import ABOUT_CALLS
from a2c_smcp.dialects.handshake import Dialect
from a2c_smcp.errors import ConnectionLostError, SMCPError
from a2c_smcp.link.interface import Disconnected, Handler, LinkEvent, LinkOptions, Membership
from a2c_smcp.link.transports import Way

if TYPE_CHECKING:
    from a2c_smcp.link.office_link import OfficeLink

__all__ = ["OwnWay"]


class OwnWay:
    """`take` takes the seat over, and `is_used` says so from then on. `on_event` hears of what happens after that."""

    def __init__(
        self, options: LinkOptions, handlers: Mapping[str, Handler], on_event: Callable[[LinkEvent], None]
    ) -> None:
        self._options = replace(options, reconnect=True)  # the holder does not return to the office meanwhile
        self._handlers = handlers
        self._on_event = on_event
        self._link: OfficeLink | None = None
        self._others: set[OfficeLink] = set()
        """Links that have given the seat back and still wait for answers."""
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def is_used(self) -> bool:
        return self._link is not None

    @property
    def connected(self) -> bool:
        return self._link is not None and self._link.connected

    @property
    def joined(self) -> bool:
        return self._link is not None and self._link.joined

    @property
    def way(self) -> Way | None:
        return self._link.way if self._link is not None else None

    @property
    def server_dialect(self) -> Dialect:
        return self._link.server_dialect if self._link is not None else Dialect.OURS

    @property
    def problem(self) -> SMCPError | None:
        return self._link.problem if self._link is not None else None

    @property
    def secret(self) -> str | None:
        """With it a new holder takes the seat over."""
        return self._link.resume if self._link is not None else None

    async def exchange(self, event: str, data: Any, timeout: float) -> str:
        if self._link is None:
            raise ConnectionLostError("not connected to the server")
        return await self._link.exchange(event, data, timeout)

    async def take(self, membership: Membership, secret: str) -> None:
        """Take the seat over from the session that has this secret. Raises `SMCPError` if the server refuses it."""
        link_class = await asyncio.to_thread(_office_link)
        link = self._new_link(link_class, secret)
        try:
            await link.open()
            await link.join(membership)
        except BaseException:
            await link.close()
            raise
        link.keep_trying()
        self._link = link

    def let_go(self) -> None:
        """The holder is about to take the seat back: do not return to the office after a loss."""
        if (link := self._link) is not None:
            link.let_go()
            if not link.joined:
                self._link = None
                self._drop(link)

    def give_back(self) -> None:
        """The holder has the seat. What is under way is still answered by the own connection."""
        self.let_go()
        if self._link is not None:
            self._others.add(self._link)
            self._link = None

    async def close(self) -> None:
        links = [*filter(None, [self._link]), *self._others]
        self._link = None
        for link in links:
            await link.close()
        if self._closing:
            await asyncio.wait(self._closing)

    def _new_link(self, link_class: "type[OfficeLink]", secret: str) -> "OfficeLink":
        def on_event(event: LinkEvent) -> None:
            if isinstance(event, Disconnected) and event.final:
                self._others.discard(link)
                if link is self._link:  # it was let go, and the agent comes back through the holder
                    self._link = None
                    self._on_event(replace(event, final=False))
            elif link is self._link:
                self._on_event(event)

        async def hear(name: str, data: Any) -> None:
            if link is self._link or name in ABOUT_CALLS:
                await self._handlers[name](data)

        handlers = {name: partial(hear, name) for name in self._handlers}
        link = link_class(self._options, handlers, on_event=on_event, resume=secret)
        return link

    def _drop(self, link: "OfficeLink") -> None:
        task = asyncio.create_task(link.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _office_link() -> "type[OfficeLink]":
    # It brings python-socketio and aiohttp, which processes that share a seat do not need.
    from a2c_smcp.link.office_link import OfficeLink

    return OfficeLink

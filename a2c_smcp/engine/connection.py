"""One connection of a server on asyncio, whatever carries it: it hands packets to the core, what happens to the
application, and what is to be sent to the websocket or to the poll that waits.

A packet is taken in the callback that brought it, and what is said because of it is written there. Only a client that
knocks makes a task: meanwhile `is_held`, and nothing more of that client is taken.
"""

import asyncio
import logging
from collections.abc import Callable, Container, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, Protocol

from a2c_smcp.engine.bounds import EngineBounds
from a2c_smcp.engine.errors import PeerError
from a2c_smcp.engine.events import (
    CLIENT_DISCONNECT,
    SERVER_DISCONNECT,
    TRANSPORT_CLOSE,
    AckCame,
    BadPacket,
    EngineEvent,
    Knocked,
    Said,
    SaidGoodbye,
    SessionEnded,
)
from a2c_smcp.engine.namespaces import ServerNamespaces
from a2c_smcp.engine.outgoing import Mention, Parcel
from a2c_smcp.engine.server_session import Carrier, ServerSession

__all__ = ["EngineApplication", "EngineConnection", "TurnedAwayError", "WebSocketCarrier"]

logger = logging.getLogger(__name__)

_TURNED_AWAY: Final = {"message": "the server failed to let this client in"}


class TurnedAwayError(Exception):
    """The client is not let into the namespace. `data` is what it hears: a `message`, and perhaps `data`."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        super().__init__(data["message"])
        self.data = data


class WebSocketCarrier(Protocol):
    """What carries a session that has a websocket."""

    def write(self, parcel: Parcel) -> None:
        """Write a parcel now. Tells the connection with `set_writable` when it takes no more."""

    def unwritten(self) -> int:
        """Bytes that wait for the system to take them."""
        ...

    def close(self) -> None:
        """Close it, soon, whatever the peer does."""

    def go_on(self) -> None:
        """The connection is no longer held: hand over what has arrived meanwhile."""


class EngineApplication:
    """What a server does with its connections. Its methods are called on the loop, and only `knock` waits."""

    namespaces: Container[str] = ()

    def opened(self, connection: "EngineConnection") -> None:
        """A session begins. Raises `PeerError` if it may not."""

    def carrying(self, connection: "EngineConnection", scope: Mapping[str, Any]) -> AbstractContextManager[object]:
        """Around every HTTP request of a session that polls."""
        return nullcontext()

    def moved(self, connection: "EngineConnection") -> None:
        """A session has moved from polling to a websocket, whose scope is `connection.scope` now."""

    async def knock(
        self, connection: "EngineConnection", namespace: str, data: Mapping[str, Any] | None
    ) -> Mapping[str, Any]:
        """Let a client in: returns the data that it hears, with its `sid`. Raises `TurnedAwayError`."""
        raise TurnedAwayError(_TURNED_AWAY)

    def let_in(self, connection: "EngineConnection", namespace: str) -> None:
        """The client has been told that it is in."""

    def said(self, connection: "EngineConnection", event: Said) -> None:
        """An event. Raises `ValueError` if it does not decode."""

    def answered(self, connection: "EngineConnection", event: AckCame) -> None:
        """An ack, with what was handed to `ask`."""

    def left(self, connection: "EngineConnection", namespace: str, reason: str) -> None:
        """A client that was in a namespace is not in it any more. Not called from within a call of `connection`."""

    def closed(self, connection: "EngineConnection") -> None:
        """A session has ended."""

    def noticed(self, connection: "EngineConnection", event: BadPacket | SessionEnded) -> None:
        """The peer did something that is worth a line in the log."""


class EngineConnection:
    """One session. `close` may be called at any time, the other methods as long as `is_open`."""

    __slots__ = (
        "__weakref__",
        "_application",
        "_forget",
        "_ids",
        "_knocking",
        "_loop",
        "_poll",
        "_released",
        "_timer",
        "admitted",
        "carrier",
        "scope",
        "session",
        "spaces",
        "user",
    )

    def __init__(
        self,
        sid: str,
        application: EngineApplication,
        bounds: EngineBounds,
        carrier: Carrier,
        scope: Mapping[str, Any],
        numbers: Callable[[], int],
        forget: Callable[[str], object],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._application = application
        self._forget = forget
        self.session = ServerSession(sid, bounds, self._loop.time, carrier)
        self.spaces = ServerNamespaces(application.namespaces, bounds, numbers)
        self.carrier: WebSocketCarrier | None = None
        self.scope = scope
        """The ASGI scope of its first request, or of its websocket."""
        self.admitted = False
        """Whether the client has shown a key."""
        self.user: Any = None
        """For the application."""
        self._poll: asyncio.Future[list[str]] | None = None
        self._released: list[asyncio.Future[None]] = []
        self._knocking: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        application.opened(self)
        self._set_timer()

    @property
    def sid(self) -> str:
        return self.session.sid

    @property
    def is_open(self) -> bool:
        return self.session.ended is None

    @property
    def is_held(self) -> bool:
        """Whether nothing more may be taken now."""
        return self._knocking is not None

    @property
    def is_written_out(self) -> bool:
        """Whether nothing waits for the client to read it."""
        return not self.session.queue.parcels and (self.carrier is None or not self.carrier.unwritten())

    def admit(self) -> None:
        """The client has shown a key: lift the limits of clients without one."""
        self.admitted = True
        self.session.admit()

    # --- from the client

    def take(self, packet: str) -> None:
        """Take a packet that the client has sent. Not while it is held."""
        found = self.session.receive(packet)
        if isinstance(found, str):
            try:
                event = self.spaces.receive(found)
                if type(event) is Said:
                    self._application.said(self, event)
                    return
                if type(event) is AckCame:
                    self._application.answered(self, event)
                    return
            except ValueError as error:
                event = self.session.bad(f"{type(error).__name__}: {error}")
            except Exception as error:
                # A fault of ours must not end the connection of a client that did nothing wrong.
                logger.exception("failed to take a packet")
                event = self.session.bad(type(error).__name__)
        else:
            event = found
            self._set_timer()
        if event is not None:
            self._happened(event)

    def take_binary(self) -> None:
        """Take a binary message, which is dropped."""
        if not self.spaces.expects_attachment() and (event := self.session.receive_binary()) is not None:
            self._happened(event)

    def bad(self, why: str) -> None:
        """Count something that does not decode."""
        if self.is_open:
            self._happened(self.session.bad(why))

    def _happened(self, event: EngineEvent) -> None:
        match event:
            case Knocked(namespace=namespace, data=data):
                if self.spaces.is_known(namespace):
                    self._knocking = self._loop.create_task(self._knock(namespace, data))
                else:
                    self.send(self.spaces.unknown(namespace))
            case SaidGoodbye(namespace=namespace):
                self._application.left(self, namespace, CLIENT_DISCONNECT)
            case BadPacket():
                self._application.noticed(self, event)
            case SessionEnded():
                self._finish()
            case _:
                raise AssertionError(event)

    async def _knock(self, namespace: str, data: Mapping[str, Any] | None) -> None:
        try:
            try:
                said = await self._application.knock(self, namespace, data)
            except TurnedAwayError as error:
                self._turn_away(namespace, error.data)
            except Exception:
                logger.exception("failed to let a client into %s", namespace)
                self._turn_away(namespace, _TURNED_AWAY)
            else:
                if self.session.ended is None:
                    self.send(self.spaces.let_in(namespace, said))
                    self._application.let_in(self, namespace)
                else:
                    self._application.left(self, namespace, self.session.ended.reason)
        finally:
            self._knocking = None
            for waiter in self._released:
                if not waiter.done():
                    waiter.set_result(None)
            self._released.clear()
            if self.carrier is not None and self.is_open:
                self.carrier.go_on()

    def _turn_away(self, namespace: str, data: Mapping[str, Any]) -> None:
        if self.is_open:
            self.send(self.spaces.turn_away(namespace, data))

    async def free(self) -> None:
        """Return when it is not held."""
        while self.is_held:
            waiter = self._loop.create_future()
            self._released.append(waiter)
            await waiter

    # --- to the client

    def send(self, parcel: Parcel) -> None:
        """Send a packet of Socket.IO. A client for which too much waits then has fallen behind, and is cut off."""
        if self.session.ended is None:
            if self.session.send(parcel):
                assert self.carrier is not None
                self.carrier.write(parcel)
            else:
                self._queued()

    def offer(self, parcel: Parcel) -> bool:
        """The same, if it fits. Returns whether it does; the client stays connected."""
        if self.session.ended is not None:
            return False
        taken = self.session.offer(parcel)
        if taken:
            assert self.carrier is not None
            self.carrier.write(parcel)
        elif taken is not None:
            self._queued()
        return taken is not None

    def mention(self, mention: Mention) -> None:
        """The same for what can be replaced while it waits, or left out."""
        if self.session.ended is None:
            if self.session.mention(mention):
                assert self.carrier is not None
                self.carrier.write(mention)
            else:
                self._queued()

    def _queued(self) -> None:
        if self.session.ended is not None:
            self._loop.call_soon(self._finish)
        elif self._poll is not None:
            self.answer_poll()

    def ask_for_a_sign(self) -> None:
        """Ping the client now."""
        if self.is_open:
            self.session.ask_for_a_sign()
            self._flush()
            self._set_timer()

    def _flush(self) -> None:
        if (carrier := self.carrier) is not None:
            for parcel in self.session.frames():
                carrier.write(parcel)
        elif self._poll is not None:
            self.answer_poll()

    # --- what carries it

    def carried_by(self, carrier: WebSocketCarrier, scope: Mapping[str, Any]) -> None:
        """It has this websocket from now on."""
        self.carrier, moved = carrier, self.scope is not scope
        self.scope = scope
        if moved:
            self._application.moved(self)
        self.answer_poll()
        self._flush()

    def set_writable(self, writable: bool) -> None:
        """Whether the websocket takes more."""
        self.session.writable = writable
        if writable and self.is_open:
            self._flush()

    def poll(self) -> "asyncio.Future[list[str]]":
        """The answer to a poll that has come. Raises `PeerError` if there may be no poll."""
        before = self.session.poll()
        if before is not None and self._poll is not None and not self._poll.done():
            self._poll.set_result(before)
        if (ended := self.session.ended) is not None:
            self._poll = None
            self._finish()
            raise PeerError(ended.why)
        self._poll = self._loop.create_future()
        poll = self._poll
        self.answer_poll()
        return poll

    def answer_poll(self) -> None:
        """Answer the poll that waits, if there is something to say."""
        if (packets := self.session.answer()) is not None:
            poll, self._poll = self._poll, None
            if poll is not None and not poll.done():
                poll.set_result(packets)

    def lose_poll(self, poll: "asyncio.Future[list[str]]") -> None:
        """The client no longer waits for this poll."""
        if self._poll is poll:
            self._poll = None
            self.session.lose_poll()
            if not self.is_open:
                self._finish()

    def release_poll(self) -> None:
        """From now on no poll waits."""
        self.session.release()
        self.answer_poll()

    # --- time and the end

    def _set_timer(self) -> None:
        wake_at = self.session.wake_at
        if self._timer is not None:
            if self._timer.when() <= wake_at and self.is_open:
                return  # when it comes, it looks again
            self._timer.cancel()
        self._timer = self._loop.call_at(wake_at, self._tick) if self.is_open else None

    def _tick(self) -> None:
        self._timer = None
        self.session.tick(is_in=bool(self.spaces.members))
        if self.is_open:
            self._flush()
            self._set_timer()
        else:
            self._finish()

    def close(self, reason: str = SERVER_DISCONNECT) -> None:
        """End the session and its transport, so that its client comes back by itself. Clients do not come back if they
        are told goodbye.
        """
        if self.is_open:
            self.session.end(reason)
            self._loop.call_soon(self._finish)
            if self.carrier is not None:
                self.carrier.close()

    def lose(self) -> None:
        """Its transport has ended."""
        self.session.end(TRANSPORT_CLOSE)
        self._finish()

    def _finish(self) -> None:
        """Tell everybody, once, that the session has ended."""
        ended, timer = self.session.ended, self._timer
        if ended is None or self._forget is _nothing:
            return
        self._forget(self.sid)
        self._forget = _nothing
        if timer is not None:
            timer.cancel()
            self._timer = None
        self.answer_poll()
        if ended.why:
            self._application.noticed(self, ended)
        for namespace in self.spaces.members:
            self._application.left(self, namespace, ended.reason)
        if self._knocking is not None:
            self._knocking.cancel()
        self._application.closed(self)
        if self.carrier is not None:
            self.carrier.close()


def _nothing(_: str) -> None:
    pass

"""One connection of a client: the handshake is python-socketio's, messages are read and written here.

Knows packets and acks, nothing of what they ask. The libraries' own loops spend two tasks, two timers and a queue on
each message, so they only do the handshake, the pings and long polling. Measured in the agent, for 1,000 calls: 0.20 s
of CPU, and 0.30 s through the loops of the libraries.
"""

import asyncio
import itertools
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, Final

import aiohttp

from a2c_smcp.dialects.handshake import Dialect, announces_ours, announces_stamps, max_payload_in
from a2c_smcp.errors import SMCPError, UnauthorizedError, error_from_payload
from a2c_smcp.link.proxies import Proxy
from a2c_smcp.link.ways import ElsewhereError
from a2c_smcp.packet_text import encode_ack, read_event, read_head
from a2c_smcp.packets import SMCPPacket
from a2c_smcp.smcp import SMCP_NAMESPACE
from a2c_smcp.utils import engineio_internals, socketio_internals
from a2c_smcp.utils.engineio_internals import CLOSE, MESSAGE, PING, PONG, UPGRADE, Packet
from a2c_smcp.utils.socketio_internals import ACK, CONNECT, DISCONNECT, EVENT
from a2c_smcp.wire import codec, size_of

__all__ = ["ANSWERED_ON", "Connection", "posts"]

logger = logging.getLogger(__name__)
# python-socketio and engineio log every packet at INFO, also the first one, which carries the key. They log every
# orderly close at WARNING. What matters of this is logged here.
_libraries = logging.getLogger(f"{__name__}.libraries")
if _libraries.level == logging.NOTSET:
    _libraries.setLevel(logging.ERROR)

#: The connection whose request is being answered, in the task that answers it. Look at it when the request comes: tasks
#: that began earlier, such as the one that reads from an MCP server, do not have it.
ANSWERED_ON: Final[ContextVar["Connection | None"]] = ContextVar("ANSWERED_ON", default=None)
_numbers: Final = itertools.count(1)
_SCHEMES: Final = {"ws": "http", "wss": "https"}
_MESSAGE: Final = str(MESSAGE)
_EVENT: Final = str(EVENT)
_ACK: Final = str(ACK)
#: What follows the type of a packet in our namespace, where its id stands, and how long an id is at most.
_OURS: Final = f"{SMCP_NAMESPACE},"
_IDS: Final = 1 + len(_OURS)
_LONGEST_ID: Final = 20
_PROBE: Final = f"{PING}probe"
_PROBED: Final = f"{PONG}probe"
_UPGRADE: Final = str(UPGRADE)
#: Between two packets of one polling payload, and how many of them other servers take at once.
_SEPARATOR: Final = "\x1e"
_MOST_PACKETS: Final = 16
#: How long moving from polling to a websocket may take.
_UPGRADE_SECONDS: Final = 3.0


class Connection(socketio_internals.AsyncClient):
    """A python-socketio client of our namespace that connects once. `answer` returns what an event is acked with, or
    `None` for an ack without data. `take_ack` gets the id and the JSON of each ack that comes.
    """

    max_message: int
    """The largest message that may be sent here: a larger one would end the connection."""

    def __init__(
        self,
        answer: Callable[[object, tuple[Any, ...]], Awaitable[Any]],
        take_ack: Callable[[int, str], None],
        max_message: int,
        proxy: Proxy | None = None,
        tls: ssl.SSLContext | None = None,
        connector: Callable[[], aiohttp.BaseConnector] | None = None,
    ) -> None:
        def session() -> aiohttp.ClientSession:
            way = connector() if connector is not None else aiohttp.TCPConnector(ssl=tls or True)
            return aiohttp.ClientSession(
                connector=way,
                proxy=proxy.url if proxy else None,
                middlewares=[_OneAddress(), _send_once],
                ws_response_class=_GreetedWebSocket,
            )

        super().__init__(
            reconnection=False,
            serializer=SMCPPacket,
            handle_sigint=False,
            logger=_libraries,
            engineio_logger=_libraries,
            http_session=session,
            websocket_extra_options={"max_msg_size": max_message},
        )
        self.new_http_session = session
        """Makes an HTTP session with the proxy and the certificates of this connection."""
        self.eio.on_message = self._take
        self.name = f"connection {next(_numbers)}"
        """What the requests that wait for an answer here are filed under."""
        self._answer = answer
        self._take_ack = take_ack
        self._loop = asyncio.get_running_loop()
        self.dropped: asyncio.Future[str] = self._loop.create_future()
        """Done when the connection has ended; its result is the reason."""
        self.told_to_move: asyncio.Future[float] = self._loop.create_future()
        """Done when the server has said that it is about to stop; its result is in how many seconds."""
        self.key: str | None = None
        """The key or the token that it shows."""
        self.dialect = Dialect.OLDER
        """What the server speaks."""
        self.stamps = False
        """Whether the server writes into every request from whom it comes."""
        self.max_message = max_message
        self.refusal: SMCPError | None = None
        """Why the server refused the connection."""
        self.on("connect_error", self._on_refused, namespace=SMCP_NAMESPACE)
        self.on("disconnect", self._on_dropped, namespace=SMCP_NAMESPACE)
        self._answering: set[asyncio.Task[None]] = set()

    @property
    def failure(self) -> Exception | None:
        """Why a request or a websocket did not get through. The libraries only tell that it did not."""
        failure: Exception | None = self.eio.failure
        return failure

    @property
    def is_answering(self) -> bool:
        """Whether requests of the server are being answered."""
        return bool(self._answering)

    async def send_text(self, text: str) -> None:
        """Send an encoded packet. Does not raise when the connection is lost: its reader notices that."""
        await self.eio.send(text)

    async def dispose(self) -> None:
        """End the connection and everything that it holds, in bounded time."""
        with suppress(Exception):
            async with asyncio.timeout(2):
                if self.connected:
                    # Engine.IO's writer stops as soon as disconnect() begins, and does not send packets that wait
                    # behind a POST. So this packet goes first. Otherwise the server would notice the end of a polling
                    # client only at the ping timeout.
                    await self.send_packet(SMCPPacket(DISCONNECT, namespace=SMCP_NAMESPACE))
                    await asyncio.wait_for(self.eio.flushed(), 1)
                await self.disconnect()
        await self.eio.end()

    def engine_class(self) -> type[engineio_internals.AsyncClient]:
        return _Engine

    async def _on_refused(self, data: Any = None) -> None:
        if isinstance(data, Mapping):  # Engine.IO reports a server that is not there in the same way, as plain text
            details = data.get("data")
            first = details[0] if isinstance(details, list) and details else details
            self.refusal = error_from_payload(first) or UnauthorizedError(str(data.get("message", "refused")))

    async def _on_dropped(self, reason: Any = None) -> None:
        if not self.dropped.done():
            self.dropped.set_result(str(reason or "connection lost"))

    def _take(self, text: str) -> bool:
        """Take a message, in the order of arrival; `False` leaves it to python-socketio."""
        try:
            # Almost all messages are events and acks of our namespace, without attachments.
            if text.startswith(_OURS, 1) and (at := text.find("[", _IDS, _IDS + _LONGEST_ID + 1)) > 0:
                number = text[_IDS:at]
                if text[0] == _ACK and number.isascii() and number.isdigit():
                    self._take_ack(int(number), text[at:])
                    return True
                if text[0] == _EVENT and (not number or (number.isascii() and number.isdigit())):
                    self._begin(int(number) if number else None, text[at:])
                    return True
            return self._take_packet(text)
        except Exception as error:
            # Servers may send anything. One message is lost, not the connection.
            logger.warning("ignored a message that does not decode: %s: %s", type(error).__name__, error)
            return True

    def _take_packet(self, text: str) -> bool:
        head = read_head(text)
        if head.packet_type == CONNECT:
            self._greeted(head.namespace, codec.loads(head.body) if head.body else None)
        if head.namespace != SMCP_NAMESPACE or head.packet_type not in (EVENT, ACK) or self.awaits_attachments:
            return False
        if head.packet_type == ACK:
            if head.ack_id is not None:
                self._take_ack(head.ack_id, head.body)
        else:
            self._begin(head.ack_id, head.body)
        return True

    def _begin(self, ack_id: int | None, body: str) -> None:
        task = self._loop.create_task(self._asked_for(ack_id, read_event(body)))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    def _greeted(self, namespace: str | None, payload: object) -> None:
        if self.eio.max_payload is not None:
            self.max_message = min(self.max_message, self.eio.max_payload)
        if announces_ours(payload):
            self.dialect = Dialect.OURS
        if namespace == SMCP_NAMESPACE:
            self.stamps = announces_stamps(payload)

    async def _asked_for(self, ack_id: int | None, data: Any) -> None:
        ANSWERED_ON.set(self)  # for this task only
        event, *args = data
        reply = await self._answer(event, tuple(args))
        if ack_id is not None:
            await self.send_text(encode_ack(SMCP_NAMESPACE, ack_id, () if reply is None else (reply,)))

    # Events and acks with attachments come through python-socketio, which waits for the bytes.

    async def handle_ack(self, namespace: str | None, ack_id: int | None, data: Any) -> None:
        if namespace == SMCP_NAMESPACE and ack_id is not None:
            self._take_ack(ack_id, codec.dumps(data))

    async def handle_event(self, namespace: str | None, ack_id: int | None, data: Any) -> None:
        if namespace == SMCP_NAMESPACE:
            await self._asked_for(ack_id, data)


class _Engine(engineio_internals.AsyncClient):
    """Engine.IO's client, whose websocket messages do not go through its loops."""

    on_message: Callable[[str], bool]
    failure: Exception | None = None
    max_payload: int | None = None
    """The largest message that the server takes, if it says so."""

    async def send(self, data: str) -> None:
        if self.ws is None or self.state != "connected":
            await super().send(data)  # by long polling, or before its writer has begun
            return
        # aiohttp writes whole frames at once, in order, and waits only when the transport is full. It raises when the
        # connection is gone; the reader sees that, too.
        try:
            await self.ws.send_str(_MESSAGE + data)
        except (OSError, aiohttp.ClientError):
            pass
        except asyncio.CancelledError:
            # All senders that wait for a full transport wait for one future of aiohttp. If one sender is cancelled,
            # that future is cancelled, and so are the other senders. Their frames are written by then.
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise

    async def request(
        self, method: str, url: str, headers: Any, body: Any, timeout: float | None
    ) -> aiohttp.ClientResponse | str:
        """Like Engine.IO's own method. That method forgets why a request failed, and does not release its responses."""
        if self.http is None or self.http.closed:
            self.http = self.http_factory()
        try:
            for part in [body] if body is None else posts(body, self.max_payload):
                response = await self._request_once(method, url, headers, part, timeout)
                if response.status >= 400:
                    break
        except (aiohttp.ClientError, TimeoutError) as error:
            self.failure = error
            if self.state == "connected" and not self.http.closed:
                await self._give_up_session(headers)
            return str(error) or "no answer in time"
        if response.status >= 400:
            said = (await response.read())[:200].decode("utf-8", "replace")
            self.failure = aiohttp.ClientResponseError(response.request_info, (), status=response.status, message=said)
        elif not self.sid:
            self.max_payload = max_payload_in((await response.read()).decode("utf-8", "replace"))
        return response

    async def _request_once(
        self, method: str, url: str, headers: Any, body: Any, timeout: float | None
    ) -> aiohttp.ClientResponse:
        limit = aiohttp.ClientTimeout(total=timeout)
        response: aiohttp.ClientResponse = await self.http.request(
            method, url, headers=headers, data=body, timeout=limit
        )
        await response.read()
        return response

    async def _give_up_session(self, headers: Any) -> None:
        """Tell the server that this session has ended. Otherwise it would keep the name until the ping timeout."""
        with suppress(aiohttp.ClientError, TimeoutError):
            await self._request_once("POST", self.base_url, headers, str(CLOSE), timeout=1.0)

    async def open_websocket(self, url: str, headers: dict[str, str], path: str) -> bool:
        if self.sid:
            return await self._upgrade(url, headers, path)
        try:
            opened = await super().open_websocket(url, headers, path)
            self.max_payload = max_payload_in(self.ws.greeting)
            return opened
        except engineio_internals.ConnectionError as error:
            if isinstance(cause := error.__context__, Exception):
                self.failure = cause
            raise

    async def _upgrade(self, url: str, headers: dict[str, str], path: str) -> bool:
        """Move from polling to a websocket, if one gets through in time. Engine.IO's own method waits for ever if a
        proxy lets the websocket through and then swallows its frames.
        """
        ws: aiohttp.ClientWebSocketResponse | None = None
        try:
            async with asyncio.timeout(_UPGRADE_SECONDS):
                ws = await self.http.ws_connect(
                    self.websocket_url(url, path),
                    headers=headers,
                    timeout=aiohttp.ClientWSTimeout(ws_close=1.0),  # 10 s by default, for a peer that does not answer
                    **self.websocket_extra_options,
                )
                assert ws is not None
                await ws.send_str(_PROBE)
                if (await ws.receive()).data != _PROBED:
                    raise aiohttp.ServerDisconnectedError
                await ws.send_str(_UPGRADE)
        except (aiohttp.ClientError, OSError) as error:  # also the timeout
            self.failure = error
            if ws is not None:
                await ws.close()
            return False
        self.use_websocket(ws)
        return True

    async def read_websocket(self) -> None:
        self.ws = _Inbox(self.ws, self.on_message)
        await super().read_websocket()

    async def receive(self, pkt: Packet) -> None:
        if pkt.packet_type == MESSAGE and isinstance(pkt.data, str) and self.on_message(pkt.data):
            return
        await super().receive(pkt)


def posts(body: str, most: int | None) -> list[str]:
    """The packets of a polling payload, in as many bodies as a server needs. It ends the session over one that is
    larger than it said (`most`), or that has more than sixteen packets.
    """
    bodies, parts, room = list[str](), list[str](), 0
    for packet in body.split(_SEPARATOR):
        size = size_of(packet) + 1
        if parts and (len(parts) == _MOST_PACKETS or (most is not None and size > room)):
            bodies.append(_SEPARATOR.join(parts))
            parts = []
        room = (room if parts else (most or 0) + 1) - size
        parts.append(packet)
    return [*bodies, _SEPARATOR.join(parts)]


class _OneAddress:
    """Keeps the requests of a session at one address: aiohttp takes every header along to where a redirect leads."""

    def __init__(self) -> None:
        self._first: tuple[str, str | None, int | None] | None = None

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        url = request.url
        scheme = _SCHEMES.get(url.scheme, url.scheme)
        place = (scheme, url.host, url.port)
        first = self._first = self._first or place
        # With the ports that nobody has to write, the same host with TLS is no other address.
        if place != first and (first, place) != (("http", url.host, 80), ("https", url.host, 443)):
            raise ElsewhereError(f"{scheme}://{url.authority}")
        return await handler(request)


async def _send_once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keeps aiohttp from sending a GET again when the kept connection was cut. A poll takes messages from the
    server. The messages in the answer that was cut off would be lost unnoticed.
    """
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise  # nothing was sent
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise aiohttp.ClientConnectionError(str(error)) from error


class _GreetedWebSocket(aiohttp.ClientWebSocketResponse):
    """A websocket that remembers its first message, in which the server greets. Engine.IO forgets most of it."""

    greeting: str | None = None

    async def receive(self, timeout: float | None = None) -> aiohttp.WSMessage:
        message = await super().receive(timeout)
        if self.greeting is None:
            self.greeting = message.data if isinstance(message.data, str) else ""
        return message


class _Inbox:
    """A websocket that hands its messages over itself. Only pings and the end reach Engine.IO's loop, whose timeout is
    the server's next ping.
    """

    def __init__(self, ws: aiohttp.ClientWebSocketResponse, take: Callable[[str], bool]) -> None:
        self._ws = ws
        # The greeting has come by now.
        self._receive = partial(aiohttp.ClientWebSocketResponse.receive, ws)
        self._take = take
        self.send_str = ws.send_str
        self.send_bytes = ws.send_bytes
        self.close = ws.close

    async def receive(self) -> aiohttp.WSMessage:
        while True:
            message = await self._receive()
            text = message.data
            if not isinstance(text, str) or not text.startswith(_MESSAGE) or not self._take(text[1:]):
                return message

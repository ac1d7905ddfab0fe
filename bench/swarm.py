"""Many light Socket.IO members in one process: raw websockets, no client library, so that the server is what is
measured.
"""

import asyncio
import itertools
import json
from collections.abc import Callable
from typing import Any

import aiohttp


class Member:
    """One websocket that speaks just enough Engine.IO and Socket.IO."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        self._ws = ws
        self._ids = itertools.count(1)
        self._acks: dict[int, asyncio.Future[Any]] = {}
        self._connected: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.notifications = 0
        self._reader = asyncio.create_task(self._read())

    async def open(self) -> None:
        await self._ws.send_str("40/smcp,")
        await asyncio.wait_for(self._connected, 60)

    async def call(self, event: str, data: Any) -> Any:
        ack_id = next(self._ids)
        answered = self._acks[ack_id] = asyncio.get_running_loop().create_future()
        await self._ws.send_str(f"42/smcp,{ack_id}{json.dumps([event, data])}")
        return await asyncio.wait_for(answered, 120)

    async def join(self, name: str, office: str) -> None:
        done, reason = await self.call("server:join_office", {"role": "computer", "name": name, "office_id": office})
        assert done, reason

    async def close(self) -> None:
        await self._ws.close()
        self._reader.cancel()

    async def _read(self) -> None:
        async for message in self._ws:
            text = message.data
            if text.startswith("42/smcp,"):
                self.notifications += 1
            elif text.startswith("43/smcp,"):
                body = text[len("43/smcp,") :]
                digits = body[: body.index("[")]
                self._acks.pop(int(digits)).set_result(json.loads(body[len(digits) :]))
            elif text == "2":
                await self._ws.send_str("3")
            elif text.startswith("40/smcp"):
                self._connected.set_result(None)


class Swarm:
    """`async with Swarm(url) as swarm`: members that are all closed in the end."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.members: list[Member] = []

    async def __aenter__(self) -> "Swarm":
        self._http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.leave()
        await self._http.close()

    async def grow(self, count: int, at_once: int = 1) -> None:
        left = iter(range(count))

        async def connect() -> None:
            for _ in left:
                ws = await self._http.ws_connect(f"{self._url}/socket.io/?EIO=4&transport=websocket", max_msg_size=0)
                member = Member(ws)
                await member.open()
                self.members.append(member)

        await asyncio.gather(*(connect() for _ in range(at_once)))

    async def leave(self) -> None:
        await asyncio.gather(*(member.close() for member in self.members))
        self.members.clear()

    @staticmethod
    async def settled(expected: Callable[[], bool], seconds: float = 300) -> None:
        async with asyncio.timeout(seconds):
            while not expected():  # noqa: ASYNC110 - counters that many tasks move
                await asyncio.sleep(0.01)

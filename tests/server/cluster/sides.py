"""Two ends of a bus over a real NATS server. Each has a shell, and a copy of the membership that a test moves on."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from a2c_smcp.errors import InternalError, NotInRoomError
from a2c_smcp.server.cluster.bus import RemoteRequest
from a2c_smcp.server.cluster.connection import NatsConnection
from a2c_smcp.server.cluster.nats_bus import NatsBus
from a2c_smcp.server.cluster.options import ClusterOptions
from a2c_smcp.server.cluster.seal import FrameSeal
from a2c_smcp.server.effects import Broadcast
from a2c_smcp.server.envelopes import Answer, Message
from a2c_smcp.server.offices import Member

__all__ = ["ASKED", "ASKER", "TARGET", "Shell", "Side", "request", "text_of"]

ASKED, ASKER = "B" * 22, "A" * 22
TARGET = Member("sid-c", "computer", "c", "o", ASKED)
Answers = Callable[[RemoteRequest, "asyncio.Future[Answer | None]"], Awaitable[Answer | None]]


class Everybody:
    """A membership that the test moves on by hand."""

    def __init__(self) -> None:
        self.revision = 1
        self.processes = {ASKED, ASKER}
        self.lease_is_over = False
        self._moved = asyncio.Condition()

    async def reached(self, revision: int) -> None:
        async with self._moved:
            await self._moved.wait_for(lambda: self.revision >= revision)

    async def move_to(self, revision: int) -> None:
        async with self._moved:
            self.revision = revision
            self._moved.notify_all()

    def holders(self, office_id: str) -> set[str]:
        return self.processes

    def seat(self, office_id: str) -> Member | None:
        return None

    def check(self) -> None:
        if self.lease_is_over:
            raise InternalError("the lease is over")


class Counting:
    """Counts what crosses."""

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()
        self.heard: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.seconds: list[float] = []

    def sent_across(self, kind: str) -> None:
        self.sent[kind] += 1

    def heard_across(self, kind: str) -> None:
        self.heard[kind] += 1

    def answered_across(self, seconds: float) -> None:
        self.seconds.append(seconds)

    def dropped_across(self, reason: str) -> None:
        self.dropped[reason] += 1


class Shell:
    """Stands where the namespace stands: answers with a function, and notes what it is told."""

    def __init__(self) -> None:
        self.answers: Answers = self.echo
        self.asked: list[RemoteRequest] = []
        self.told: list[tuple[Broadcast, str]] = []
        self.log: list[str] = []
        self.withdrawn: list[str] = []

    async def echo(self, remote: RemoteRequest, _: Any) -> Answer | None:
        return Answer(remote.message.take_body())

    async def never(self, _: RemoteRequest, answer: "asyncio.Future[Answer | None]") -> Answer | None:
        return await answer

    async def answer(self, remote: RemoteRequest, answer: "asyncio.Future[Answer | None]") -> Answer | None:
        self.asked.append(remote)
        self.log.append(f"asked {remote.message.request['req_id']}")
        try:
            return await self.answers(remote, answer)
        except NotInRoomError:
            self.withdrawn.append(remote.message.request["req_id"])
            raise

    def hear(self, notice: Broadcast, text: str) -> None:
        self.told.append((notice, text))
        self.log.append(f"told {text}")


class Side:
    """One process's part: its bus, its shell, its copy of the membership."""

    def __init__(self, process: str, url: str, prefix: str, seal: FrameSeal | None = None) -> None:
        self.process = process
        self.connection = NatsConnection(ClusterOptions((url,), prefix=prefix))
        self.everybody = Everybody()
        self.count = Counting()
        self.bus = NatsBus(self.connection, self.everybody, prefix, self.count, seal)
        self.shell = Shell()
        self.bus.serve(self.shell)

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator["Side"]:
        async with self.connection, self.bus:
            async with asyncio.timeout(30):
                await self.connection.connected()
                await self.bus.began(self.process)
            yield self

    async def ask(self, body: str = "[1]", req_id: str = "1", **more: Any) -> Answer | None:
        answer: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        remote = request(body, req_id, **more)
        try:
            await self.bus.ask(remote, answer)
            return await answer
        finally:
            self.bus.forget(remote)


def request(body: str = "[1]", req_id: str = "1", **more: Any) -> RemoteRequest:
    message = Message("client:tool_call", {"agent": "a", "req_id": req_id, "timeout": 30}, body=body)
    return RemoteRequest("sid-a", TARGET, message, **more)


def text_of(answer: Answer | None) -> str:
    assert answer is not None
    return answer.text

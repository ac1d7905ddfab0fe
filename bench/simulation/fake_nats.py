"""A NATS with one JetStream bucket, as the membership code sees it: a queue with a service time, without sockets."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from nats.js import api
from nats.js.errors import APIError, NotFoundError

from a2c_smcp.server.cluster.options import ClusterOptions
from bench.simulation.virtual_time import ProcessLoop, World

__all__ = ["Costs", "FakeConnection", "FakeNats"]

_WRONG_LAST_SEQUENCE = 10071
_EXPECTED = api.Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value
#: Messages that nats-py takes from the network at once, in 32 KiB.
_A_READ = 100
_EXPIRED = {"Nats-Marker-Reason": "MaxAge"}


@dataclass(frozen=True)
class Costs:
    """Seconds, measured with a real NATS."""

    way: float
    """From a process to NATS, or back."""
    write: float
    """NATS takes a write: its own CPU time."""
    deliver: float
    """NATS sends a message to one process: its own CPU time."""
    send: float
    """A process writes, and reads the answer: the CPU time of nats-py and the event loop."""
    receive: float
    """A process is told of a change: the CPU time of nats-py and the event loop, before our code sees it."""


@dataclass(frozen=True)
class _Kept:
    sequence: int
    data: bytes
    headers: dict[str, Any] | None
    is_marker: bool = False


@dataclass(eq=False)
class _Watch:
    connection: "FakeConnection"
    take: Callable[[Any], Coroutine[Any, Any, None]]
    count: int = 0
    inbox: "deque[Any]" = field(default_factory=deque)
    is_reading: bool = False
    is_open: bool = True

    def deliver(self, at: float, key: str, kept: _Kept, pending: int) -> None:
        """Hand a message over. A process that computes finds many when it reads again."""
        loop = self.connection.loop
        if not self.is_open or not loop.is_alive:
            return
        self.count += 1
        sequence = SimpleNamespace(consumer=self.count, stream=kept.sequence)
        metadata = SimpleNamespace(sequence=sequence, num_pending=pending)
        self.inbox.append(SimpleNamespace(subject=key, data=kept.data, headers=kept.headers, metadata=metadata))
        loop.clock = max(loop.clock, at)
        if not self.is_reading:
            self.is_reading = True
            loop.call_soon(self._begin)

    def _begin(self) -> None:
        self.connection.loop.create_task(self._read())

    async def _read(self) -> None:
        while self.inbox:
            for _ in range(min(_A_READ, len(self.inbox))):
                self.connection.loop.spend(self.connection.nats.costs.receive)
                await self.take(self.inbox.popleft())
            await asyncio.sleep(0)
        self.is_reading = False


class FakeNats:
    """The one server. It does one thing after the other."""

    def __init__(self, world: World, costs: Costs) -> None:
        self.world = world
        self.costs = costs
        self.writes = self.deliveries = 0
        self._free_at = 0.0
        self._sequence = 0
        self._kept: dict[str, _Kept] = {}
        self._watches: list[_Watch] = []

    def ask(self, connection: "FakeConnection", act: Callable[[], Any]) -> "asyncio.Future[Any]":
        """Do something for a process. The future ends when the answer is back."""
        loop = connection.loop
        answer: asyncio.Future[Any] = loop.create_future()
        loop.spend(self.costs.send)

        def arrive(at: float) -> None:
            begin = max(at, self._free_at)
            self._free_at = begin + self.costs.write
            self.world.at(self._free_at, serve)

        def serve(at: float) -> None:
            try:
                result, error = act(), None
            except Exception as problem:
                result, error = None, problem
            self.world.at(at + self.costs.way, lambda back: finish(back, result, error))

        def finish(at: float, result: Any, error: Exception | None) -> None:
            if not loop.is_alive or answer.done():
                return
            loop.clock = max(loop.clock, at)
            if error is None:
                answer.set_result(result)
            else:
                answer.set_exception(error)

        self.world.at(loop.clock + self.costs.way, arrive)
        return answer

    def publish(self, key: str, data: bytes, headers: dict[str, Any], seconds: int | None) -> Any:
        known = self._kept.get(key)
        if str(known.sequence if known else 0) != headers[_EXPECTED]:
            raise APIError(code=400, err_code=_WRONG_LAST_SEQUENCE, description="wrong last sequence")
        kept = self._keep(key, data, dict(headers), "KV-Operation" in headers)
        self.writes += 1
        if seconds is not None:
            self.world.at(self._free_at + seconds, lambda _: self._expire(key, kept))
        return SimpleNamespace(seq=kept.sequence)

    def _keep(self, key: str, data: bytes, headers: dict[str, Any] | None, is_marker: bool) -> _Kept:
        self._sequence += 1
        kept = self._kept[key] = _Kept(self._sequence, data, headers, is_marker)
        for watch in self._watches:
            self._send(watch, key, kept, 0)
        return kept

    def _expire(self, key: str, kept: _Kept) -> None:
        if self._kept.get(key) is not kept:
            return
        if kept.is_marker:
            del self._kept[key]
        else:
            self._keep(key, b"", dict(_EXPIRED), True)

    def _send(self, watch: _Watch, key: str, kept: _Kept, pending: int) -> None:
        self.deliveries += 1
        self._free_at += self.costs.deliver
        self.world.at(self._free_at + self.costs.way, lambda at: watch.deliver(at, key, kept, pending))

    def watch(self, watch: _Watch) -> Any:
        keys = sorted(self._kept.items(), key=lambda item: item[1].sequence)
        for left, (key, kept) in zip(range(len(keys) - 1, -1, -1), keys, strict=True):
            self._send(watch, key, kept, left)
        self._watches.append(watch)
        return SimpleNamespace(name="watch", num_pending=len(keys))

    def unwatch(self, watch: _Watch) -> None:
        watch.is_open = False
        if watch in self._watches:
            self._watches.remove(watch)

    def get(self, key: str) -> Any:
        if (kept := self._kept.get(key)) is None:
            raise NotFoundError(code=404, err_code=10037, description="no message found")
        return SimpleNamespace(seq=kept.sequence, headers=kept.headers, data=kept.data)


class FakeConnection:
    """What the membership code uses of `NatsConnection`, nats-py's client and its JetStream."""

    is_connected = is_closed = True
    max_payload = 1024 * 1024
    servers = ("nats://simulated:4222",)
    connected_server_version = SimpleNamespace(major=2, minor=12)

    def __init__(self, nats: FakeNats, loop: ProcessLoop, options: ClusterOptions) -> None:
        self.nats = nats
        self.loop = loop
        self.options = options
        self.client: Any = self
        self.on_write: Callable[[float], None] = lambda seconds: None
        self._watch: _Watch | None = None

    def jetstream(self, timeout: float) -> "FakeConnection":
        return self

    def check(self) -> None:
        pass

    async def connected(self) -> None:
        pass

    def new_inbox(self) -> str:
        return "inbox"

    async def subscribe(self, subject: str, cb: Callable[[Any], Coroutine[Any, Any, None]]) -> Any:
        watch = self._watch = _Watch(self, cb)

        async def unsubscribe() -> None:
            self.nats.unwatch(watch)

        return SimpleNamespace(unsubscribe=unsubscribe)

    async def publish(self, subject: str, value: bytes, headers: dict[str, Any], msg_ttl: int | None) -> Any:
        return await self.nats.ask(self, lambda: self.nats.publish(subject, value, headers, msg_ttl))

    async def get_msg(self, stream: str, subject: str) -> Any:
        return await self.nats.ask(self, lambda: self.nats.get(subject))

    async def stream_info(self, stream: str) -> Any:
        return SimpleNamespace(config=SimpleNamespace(num_replicas=3, allow_msg_ttl=True, subject_delete_marker_ttl=1))

    async def add_consumer(self, stream: str, config: Any) -> Any:
        watch = self._watch
        assert watch is not None
        return await self.nats.ask(self, lambda: self.nats.watch(watch))

    async def delete_consumer(self, stream: str, name: str) -> None:
        pass

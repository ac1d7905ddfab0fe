"""Registries over one NATS, each standing for a server process, and what they tell their listeners."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest
from nats.errors import Error as NatsError
from nats.js.errors import NotFoundError

from a2c_smcp.errors import InternalError, NameTakenError
from a2c_smcp.server.cluster import tuning
from a2c_smcp.server.cluster.connection import NatsConnection
from a2c_smcp.server.cluster.options import ClusterOptions
from a2c_smcp.server.cluster.registry import ClusterRegistry
from a2c_smcp.server.offices import Grant, Member, MemberChange
from a2c_smcp.smcp import EnterOfficeReq
from a2c_smcp.types import Role
from tests.server.harness import eventually

__all__ = ["Heard", "Process", "patience", "registries", "registry", "request"]

#: What a server process lets NATS and the others take, for a machine that has far too much to do.
_PATIENT = replace(
    tuning.TIMES,
    nats_answer=10.0,
    nats_check=10.0,
    nats_connect=10,
    nats_ping=10,
    quiet=30.0,
    max_silence=20.0,
    longest_exchange=10.0,
    chunk=20.0,
    revision=15.0,
)


@contextlib.contextmanager
def patience() -> Iterator[None]:
    """Where nothing fails: what begins in this block gives nobody up that was only held up."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tuning, "TIMES", _PATIENT)
        yield


@dataclass
class Heard:
    """A listener that writes down what it was told."""

    changes: list[MemberChange] = field(default_factory=list)
    began_as: list[str] = field(default_factory=list)
    ended_as: list[str] = field(default_factory=list)
    lost_sids: list[str] = field(default_factory=list)

    async def began(self, process: str) -> None:
        self.began_as.append(process)

    def changed(self, changes: Sequence[MemberChange]) -> None:
        self.changes += changes

    def ended(self, process: str) -> None:
        self.ended_as.append(process)

    def lost(self, sid: str) -> None:
        self.lost_sids.append(sid)

    @property
    def told(self) -> list[tuple[Member | None, Member | None]]:
        return [(change.before, change.after) for change in self.changes]


@dataclass
class Process:
    """One registry with its listener."""

    registry: ClusterRegistry
    heard: Heard
    connection: NatsConnection

    async def join(self, sid: str, role: Role, name: str, office_id: str) -> None:
        """Connect a session and let it join; raises what refuses it."""
        self.registry.connect(sid, Grant())
        await self.registry.join(sid, request(role, name, office_id))

    async def until_joined(self, name: str, office_id: str = "o") -> str:
        """Join as a computer does: again and again while NATS is not in order. Returns the session that is in."""
        async with asyncio.timeout(60):
            for attempt in itertools.count():
                sid = f"{name}-{attempt}"
                try:
                    await self.join(sid, "computer", name, office_id)
                except (InternalError, NameTakenError) as error:
                    # Only what was not answered may have taken the name.
                    if attempt == 0 and isinstance(error, NameTakenError):
                        raise
                    await self.registry.disconnect(sid)
                    await asyncio.sleep(0.2)
                else:
                    return sid
        raise AssertionError

    async def forget_watches(self) -> None:
        """Have NATS forget every watch of the bucket. One of them may end, or be begun anew, meanwhile."""
        js, stream = self.connection.client.jetstream(), self.registry._bucket.stream
        async with asyncio.timeout(60):
            while True:
                with contextlib.suppress(NatsError):
                    for consumer in await js.consumers_info(stream):
                        with contextlib.suppress(NotFoundError):
                            await js.delete_consumer(stream, consumer.name)
                    return
                await asyncio.sleep(0.05)

    def names(self, office_id: str) -> list[str]:
        return sorted(member.name for member in self.registry.replica.directory.members(office_id))


def request(role: Role, name: str, office_id: str) -> EnterOfficeReq:
    return {"role": role, "name": name, "office_id": office_id}


@contextlib.asynccontextmanager
async def registry(options: ClusterOptions, *, ready: bool = True) -> AsyncIterator[Process]:
    heard = Heard()
    async with NatsConnection(options) as connection:
        made = ClusterRegistry(connection)
        made.listen(heard)
        async with made:
            if ready:
                await eventually(lambda: made.unavailable() is None)
            yield Process(made, heard, connection)


@contextlib.asynccontextmanager
async def registries(options: ClusterOptions, count: int) -> AsyncIterator[list[Process]]:
    async with contextlib.AsyncExitStack() as stack:
        made = [await stack.enter_async_context(registry(options)) for _ in range(count)]
        await eventually(lambda: all(len(each.registry.processes) == count for each in made))
        yield made

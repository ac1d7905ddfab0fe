"""A directory for sockets that is a test's alone, holders in this process or in their own, and agents behind them."""

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from a2c_smcp.agent import AsyncSMCPAgentClient, LinkOptions
from a2c_smcp.agent.seat.holder import Holder
from a2c_smcp.agent.seat.holder_options import HolderOptions
from a2c_smcp.agent.seat.place import peer_pid, place_of, try_lock
from a2c_smcp.agent.seat.seat_link import SeatLink, shared_seat
from a2c_smcp.link.interface import Membership
from tests.agent.conftest import CONNECT_SECONDS, LIMITS
from tests.server.harness import Running, eventually

MakeShared = Callable[..., Awaitable[AsyncSMCPAgentClient]]


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """pytest's own directories have paths that are too long for a socket."""
    folder = Path(tempfile.mkdtemp(prefix="a2c-test-"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def link(server: Running) -> LinkOptions:
    return LinkOptions(server.url, backoff=(0.05, 0.2), max_message=LIMITS.max_message, connect_timeout=CONNECT_SECONDS)


@asynccontextmanager
async def holding(link: LinkOptions, office: str, linger: float = 30.0, **more: Any) -> AsyncIterator[Holder]:
    """A holder in this process, as if another one had started it."""
    place = place_of(link, office)
    lock = try_lock(place)
    assert lock is not None
    holder = Holder(HolderOptions(link, Membership("agent", "seat", office), linger, **more), place)
    run = asyncio.create_task(holder.run())
    try:
        await eventually(place.socket.exists)
        yield holder
    finally:
        holder.end()
        await asyncio.wait({run})
        os.close(lock)
        run.result()


@pytest.fixture
async def make_shared(
    runtime: Path, link: LinkOptions, office: str, stack: AsyncExitStack
) -> AsyncIterator[MakeShared]:
    """Agents that share the seat of the test's office. Holders that they started are ended by their id."""
    agents: list[AsyncSMCPAgentClient] = []

    async def make(name: str = "ada", *, join: bool = True, options: LinkOptions | None = None, **more: Any) -> Any:
        seat = {key: more.pop(key) for key in ("start", "take_over", "linger") if key in more}
        # A holder waits as long for its first process as after the last: one that is slow to come must find it.
        factory = shared_seat(options or link, office, name, **{"linger": 20.0, **seat})
        agent = AsyncSMCPAgentClient(options or link, name=name, link=factory, **more)
        agents.append(agent)
        await agent.open()
        if join:
            await agent.join_office(office)
        return agent

    yield make
    held = {pid for agent in agents if (pid := holder_pid(agent)) and pid != os.getpid()}
    for agent in agents:
        await agent.close()
    for pid in held:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    for pid in held:
        await eventually(partial(_has_ended, pid))


def holder_pid(agent: AsyncSMCPAgentClient) -> int | None:
    """The process that holds the seat of this agent, `None` while there is none."""
    link = agent._link
    assert isinstance(link, SeatLink)
    try:
        return peer_pid(link._pipe.socket) if link._pipe is not None else None
    except OSError:
        return None  # it is closed already


def _has_ended(pid: int) -> bool:
    return not is_alive(pid)


def is_alive(pid: int) -> bool:
    return state_of(pid) not in (None, "Z", "X")


def state_of(pid: int) -> str | None:
    """The letter for it in `/proc`; `None` when it is no more, which it may become while it is looked at."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def with_key(link: LinkOptions, key: str) -> LinkOptions:
    return replace(link, api_key=key)

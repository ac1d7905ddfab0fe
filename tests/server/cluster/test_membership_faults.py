"""What becomes of memberships when a process, NATS or the watch fails."""

import asyncio
import os
import signal
import urllib.request
from dataclasses import replace
from typing import Any

import pytest

from a2c_smcp.errors import InternalError, NameTakenError
from a2c_smcp.link.interface import LinkOptions, Membership
from a2c_smcp.link.office_link import OfficeLink
from a2c_smcp.server.cluster.options import ClusterOptions
from a2c_smcp.server.offices import Grant
from a2c_smcp.smcp import EVENTS, GET_TOOLS_EVENT
from tests.nats_server import NatsServer
from tests.server.cluster.processes import Process, registries, registry, request
from tests.server.harness import eventually
from tests.server.test_cli import running

pytestmark = pytest.mark.usefixtures("patient")

ROUTED = EVENTS[GET_TOOLS_EVENT]


def arguments(options: ClusterOptions) -> list[str]:
    """For a process that is to lose its lease soon, and not before, on a busy machine; the one that watches it keeps
    its own.
    """
    return ["--nats", options.servers[0], "--nats-prefix", options.prefix, "--nats-lease", "12"]


@pytest.fixture
def options(nats: NatsServer, prefix: str) -> ClusterOptions:
    return ClusterOptions((nats.url,), prefix=prefix, renewal=0.5)


async def ready(url: str) -> None:
    def is_ready() -> bool:
        try:
            with urllib.request.urlopen(url + "/readyz", timeout=10) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False

    await eventually(lambda: is_ready())


async def test_the_names_of_a_killed_process_are_free_when_its_lease_is_over(options: ClusterOptions) -> None:
    async with registry(options) as here:
        with running(*arguments(options)) as there:
            await ready(there.url)
            link_options = LinkOptions(there.url)
            async with OfficeLink(link_options, {}) as computer, OfficeLink(link_options, {}) as agent:
                await computer.join(Membership("computer", "c", "o"))
                await agent.join(Membership("agent", "a", "o"))
                await eventually(lambda: here.names("o") == ["a", "c"])
                with pytest.raises(NameTakenError):
                    await here.join("s1", "computer", "c", "o")
                there.popen.kill()
                there.popen.wait()
                await eventually(lambda: here.names("o") == [])
        assert [after for _, after in here.heard.told[-2:]] == [None, None]
        await here.registry.join("s1", request("computer", "c", "o"))
        await eventually(lambda: here.registry.replica.abandoned() == [])


async def test_a_process_that_was_stopped_for_longer_than_its_lease_does_nothing_in_its_old_name(
    options: ClusterOptions,
) -> None:
    ran: list[str] = []

    async def tools(_: object) -> object:
        ran.append("old")
        return {"tools": [], "req_id": "1"}

    async with registry(options) as here:
        with running(*arguments(options)) as there:
            await ready(there.url)
            link_options = LinkOptions(there.url)
            async with (
                OfficeLink(link_options, {"client:get_tools": tools}) as computer,
                OfficeLink(link_options, {}) as agent,
            ):
                await computer.join(Membership("computer", "c", "o"))
                await agent.join(Membership("agent", "a", "o"))
                await eventually(lambda: here.names("o") == ["a", "c"])
                os.kill(there.popen.pid, signal.SIGSTOP)
                try:
                    # This request waits in the socket of a process that cannot read it.
                    asking = asyncio.create_task(
                        agent.request("client:get_tools", {"agent": "a", "req_id": "1", "computer": "c"}, 20)
                    )
                    await eventually(lambda: here.names("o") == [])
                    await here.join("s1", "agent", "a", "o")
                    await here.join("s2", "computer", "c", "o")
                finally:
                    os.kill(there.popen.pid, signal.SIGCONT)
                outcome: Any = (await asyncio.gather(asking, return_exceptions=True))[0]
                # Its connection was closed, or a word was said before.
                assert isinstance(outcome, BaseException) or outcome[0]["error"]["code"] == 500
                assert ran == []
                # It is a process again, under another name; what it had is not its any more.
                await ready(there.url)
                await eventually(lambda: len(here.registry.processes) == 2)
                assert {member.sid for member in here.registry.members("o")} == {"s1", "s2"}
            code, rest = await asyncio.to_thread(there.stop)
            assert code == 0 and "lease" in rest and "Traceback" not in rest


async def test_a_lease_that_is_over_is_noticed_at_the_next_use_and_never_taken_back(
    options: ClusterOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with registry(replace(options, lease=12)) as here:
        await here.join("s1", "agent", "a", "o")
        name = here.registry.process
        monkeypatch.setattr("a2c_smcp.server.cluster.clock.now", lambda: float("inf"))
        with pytest.raises(InternalError, match="lease"):
            here.registry.route("s1", ROUTED, "c")
        assert here.heard.ended_as == [name]
        monkeypatch.undo()
        await eventually(lambda: here.registry.unavailable() is None)
        assert here.registry.process != name and here.heard.began_as == [name, here.registry.process]
        with pytest.raises(InternalError, match="connect again"):
            await here.registry.join("s1", request("agent", "a", "o"))
        await here.registry.disconnect("s1")
        # The lease of the old name was not given up, and its seat is taken until it is over.
        here.registry.connect("s2", Grant())
        await eventually(lambda: here.names("o") == [])
        await here.registry.join("s2", request("agent", "a", "o"))


async def test_a_watch_that_has_stopped_is_begun_anew_and_the_differences_are_told(options: ClusterOptions) -> None:
    async with registries(options, 2) as (here, there):
        await there.join("s1", "computer", "stays", "o")
        await there.join("s2", "computer", "goes", "o")
        await eventually(lambda: here.names("o") == ["goes", "stays"])
        await here.forget_watches()
        # Neither process is told of anything now, until it misses its own renewals.
        await asyncio.gather(
            there.registry.disconnect("s2"),
            there.join("s3", "computer", "comes", "o"),
        )
        for process in (here, there):
            await eventually(lambda: process.names("o") == ["comes", "stays"])  # noqa: B023 - awaited here
        assert [bool(after) for _, after in here.heard.told] == [True, True, False, True]
        assert here.heard.ended_as == there.heard.ended_as == []


async def test_a_bucket_that_was_deleted_ends_the_lease_and_all_begin_anew(options: ClusterOptions) -> None:
    async with registries(replace(options, lease=12), 2) as processes:
        here, there = processes
        await here.join("s1", "computer", "c", "o")
        await here.connection.client.jetstream(timeout=30).delete_stream(here.registry._bucket.stream)
        await eventually(lambda: all(each.heard.ended_as for each in processes))
        await eventually(lambda: all(each.registry.unavailable() is None for each in processes))
        await there.join("s2", "computer", "c", "o")
        await eventually(lambda: here.names("o") == ["c"])


async def test_a_claim_that_somebody_deleted_costs_its_session_the_connection(options: ClusterOptions) -> None:
    async with registry(options) as here:
        await here.join("s1", "computer", "c", "o")
        member = (here.registry.session("s1")).member
        assert member is not None
        await here.registry._bucket.delete(_key(here, "c"), here.registry.replica.revision_of(_key(here, "c")))
        await eventually(lambda: here.heard.lost_sids == ["s1"])
        with pytest.raises(InternalError, match="connect again"):
            here.registry.session("s1")


@pytest.mark.parametrize("place", ["o", "p"])
async def test_a_join_whose_answer_was_lost_costs_the_session_its_connection_and_leaves_nothing_behind(
    options: ClusterOptions, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    async with registries(options, 2) as (here, there):
        await here.join("s1", "computer", "c", "o")
        write = here.registry._bucket.write

        async def lose(*args: Any) -> int:
            await write(*args)
            raise InternalError("NATS did not answer in time")

        with monkeypatch.context() as patched:
            patched.setattr(here.registry._bucket, "write", lose)
            with pytest.raises(InternalError):
                await here.registry.join("s1", request("computer", "d", place))
        # The claim counts all the same: the session thinks that it is elsewhere, and must come back.
        await eventually(lambda: here.heard.lost_sids == ["s1"])
        await here.registry.disconnect("s1")
        await eventually(lambda: there.names("o") == [])
        await there.join("s2", "computer", "c", "o")
        for process in (here, there):
            await eventually(lambda: _claimed(process) == {"s2"})  # noqa: B023 - awaited here


async def test_a_join_that_is_under_way_when_the_lease_ends_is_refused_and_counts_for_nothing(
    options: ClusterOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with registry(replace(options, lease=12)) as here:
        here.registry.connect("s1", Grant())
        write = here.registry._bucket.write

        async def write_and_sleep(*args: Any) -> int:
            revision = await write(*args)
            monkeypatch.setattr("a2c_smcp.server.cluster.clock.now", lambda: float("inf"))
            with pytest.raises(InternalError, match="lease"):
                here.registry.check()
            monkeypatch.undo()
            return revision

        monkeypatch.setattr(here.registry._bucket, "write", write_and_sleep)
        with pytest.raises(InternalError):
            await here.registry.join("s1", request("computer", "c", "o"))
        assert here.registry.counts().computers == 0
        await eventually(lambda: here.registry.unavailable() is None)
        await eventually(lambda: here.names("o") == [])
        await here.join("s2", "computer", "c", "o")


def _claimed(process: Process) -> set[str]:
    return {claim.member.sid for claim in process.registry.replica._claims.values()}


def _key(process: Process, name: str) -> str:
    replica = process.registry.replica
    return next(key for key, claim in replica._claims.items() if claim.member.name == name)

"""Several agents on one seat. The holder is in this process, unless a test ends it as only a process can be ended."""

import asyncio
import os
import signal
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from a2c_smcp.agent import AsyncSMCPAgentClient, Deadlines, LinkOptions, text_of
from a2c_smcp.agent.seat.place import place_of, try_lock
from a2c_smcp.agent.seat.seat_frames import frame
from a2c_smcp.agent.seat.seat_link import NobodyHoldsItError, shared_seat
from a2c_smcp.errors import (
    AlreadyInRoomError,
    BadRequestError,
    ConnectionLostError,
    ForbiddenError,
    NotInRoomError,
    PayloadTooLargeError,
    RoomFullError,
)
from a2c_smcp.link.interface import Disconnected, Joined
from a2c_smcp.link.office_link import OfficeLink
from a2c_smcp.relay.passing import RETRY_SECONDS, Passing
from a2c_smcp.server import OpenAuthentication
from a2c_smcp.smcp import (
    GET_TOOLS_EVENT,
    LEAVE_OFFICE_EVENT,
    TOOL_CALL_EVENT,
    TOOL_PROGRESS_EVENT,
    UPDATE_TOOL_LIST_EVENT,
)
from a2c_smcp.wire import codec
from tests.agent.conftest import CONNECT_SECONDS, LIMITS, MakeAgent, MakeComputer
from tests.agent.harness import NOT_JSON, a_tool
from tests.agent.seat.conftest import MakeShared, holder_pid, holding, is_alive, state_of, with_key
from tests.server.harness import Running, async_server, eventually


async def names(agent: AsyncSMCPAgentClient) -> list[str]:
    return sorted(str(session.get("name")) for session in await agent.list_room())


async def test_two_agents_use_one_seat_and_each_has_the_whole_office(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    computer = await make_computer()
    async with holding(link, office):
        ada, bob = await make_shared("ada"), await make_shared("bob")
        await ada.settled()
        await bob.settled()
        assert await names(ada) == await names(bob) == ["laptop", "seat"]
        assert [list(agent.computers) for agent in (ada, bob)] == [["laptop"], ["laptop"]]
        results = await asyncio.gather(
            *(
                agent.call_tool("laptop", "echo", {"text": f"{agent.name} {n}"})
                for agent in (ada, bob)
                for n in range(9)
            )
        )
        assert [text_of(result) for result in results] == [f"{name} {n}" for name in ("ada", "bob") for n in range(9)]
        asked = computer.requests(TOOL_CALL_EVENT)
        assert {data["agent"] for data in asked} == {"ada", "bob"} and len(asked) == 18
        assert ada.way is not None and ada.way.transport == "websocket"


async def test_progress_reaches_the_agent_whose_call_it_is(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    computer, heard = await make_computer(), {name: list[float]() for name in ("ada", "bob")}

    async def answer(data: dict[str, Any]) -> Any:
        ids = {"computer": "laptop", "agent": data["agent"], "req_id": data["req_id"]}
        mine, first = heard[data["agent"]], 10 * (data["agent"] == "bob")
        for step in range(3):
            await computer.peer.emit(TOOL_PROGRESS_EVENT, {**ids, "progress": first + step})
            await eventually(partial(mine.__contains__, first + step))
        return computer.result("done")

    computer.override[TOOL_CALL_EVENT] = answer
    async with holding(link, office):
        ada, bob = await make_shared("ada"), await make_shared("bob")
        await asyncio.gather(
            ada.call_tool("laptop", "copy", on_progress=lambda progress, *_: heard["ada"].append(progress)),
            bob.call_tool("laptop", "copy", on_progress=lambda progress, *_: heard["bob"].append(progress)),
        )
    assert heard == {"ada": [0, 1, 2], "bob": [10, 11, 12]}


async def test_what_happens_in_the_office_reaches_everybody(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    async with holding(link, office):
        agents = [await make_shared(name) for name in ("ada", "bob")]
        heard: list[list[str]] = [[], []]
        for agent, happened in zip(agents, heard, strict=True):
            agent.on("enter_office")(partial(_note, happened, "enter"))
            agent.on("leave_office")(partial(_note, happened, "leave"))
        computer = await make_computer()
        await eventually(lambda: all("laptop" in agent.computers for agent in agents))
        computer.tools = [a_tool("echo"), a_tool("new")]
        await computer.announce(UPDATE_TOOL_LIST_EVENT)
        await eventually(lambda: all(len(agent.computers["laptop"].tools or ()) == 2 for agent in agents))
        await computer.peer.disconnect()
        await eventually(lambda: heard == [["enter laptop", "leave laptop"]] * 2)


async def test_a_cancelled_call_cancels_only_its_own(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    computer = await make_computer()
    async with holding(link, office):
        ada, bob = await make_shared("ada"), await make_shared("bob")
        mine = asyncio.create_task(ada.call_tool("laptop", "slow"))
        other = asyncio.create_task(bob.call_tool("laptop", "wait"))
        await eventually(lambda: len(computer.requests(TOOL_CALL_EVENT)) == 2)
        mine.cancel()
        await asyncio.wait({mine})
        ids = {data["tool_name"]: data["req_id"] for data in computer.requests(TOOL_CALL_EVENT)}
        await eventually(lambda: computer.cancelled(ids["slow"]))
        assert not computer.cancelled(ids["wait"])
        computer.release.set()
        assert text_of(await other) == "released"


async def test_the_calls_of_a_process_that_goes_are_cancelled_and_those_of_the_others_are_not(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    computer = await make_computer()
    async with holding(link, office):
        ada, bob = await make_shared("ada"), await make_shared("bob")
        mine = asyncio.create_task(ada.call_tool("laptop", "slow"))
        other = asyncio.create_task(bob.call_tool("laptop", "wait"))
        await eventually(lambda: len(computer.requests(TOOL_CALL_EVENT)) == 2)
        ids = {data["tool_name"]: data["req_id"] for data in computer.requests(TOOL_CALL_EVENT)}
        ada._link._pipe._transport.abort()  # type: ignore[attr-defined]  # as a process that is killed
        with pytest.raises(ConnectionLostError, match="may have run"):
            await mine
        await eventually(lambda: computer.cancelled(ids["slow"]))
        assert not computer.cancelled(ids["wait"])
        computer.release.set()
        assert text_of(await other) == "released"


async def test_one_who_does_not_read_is_cut_off_and_costs_nobody_else_anything(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    computer = await make_computer()
    async with holding(link, office, max_waiting=1024 * 1024) as holder:
        ada, bob = await make_shared("ada"), await make_shared("bob")
        assert len(holder._sharers) == 2
        _, stuck = await asyncio.open_unix_connection(place_of(link, office).socket)
        await eventually(lambda: len(holder._sharers) == 3)
        # It asks, and never reads an answer.
        big = "x" * 200_000
        for number in range(40):
            data = {
                "agent": "stuck",
                "req_id": f"r{number}",
                "computer": "laptop",
                "tool_name": "echo",
                "params": {"text": big},
                "timeout": 20,
            }
            head = ["ask", number, TOOL_CALL_EVENT, 20, "stuck", data["req_id"]]
            stuck.write(frame(head, codec.dumps(data).encode()))
        stuck.transport.pause_reading()  # type: ignore[attr-defined]
        await eventually(lambda: len(holder._sharers) == 2)
        assert text_of(await bob.call_tool("laptop", "echo", {"text": "here"})) == "here"
        assert text_of(await ada.call_tool("laptop", "echo", {"text": "here"})) == "here"
        stuck.transport.abort()
        assert computer.requests(TOOL_CALL_EVENT)


async def test_a_number_that_is_under_way_is_not_asked_again(
    runtime: Path, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    computer = await make_computer()
    async with holding(link, office) as holder:
        await eventually(lambda: holder._state.joined)
        reader, writer = await asyncio.open_unix_connection(place_of(link, office).socket)
        for req_id in ("first", "second"):
            data = {"agent": "ada", "req_id": req_id, "computer": "laptop"}
            writer.write(frame(["ask", 1, GET_TOOLS_EVENT, 20], codec.dumps(data).encode()))
        await reader.readuntil(b'"answer"')
        assert [data["req_id"] for data in computer.requests(GET_TOOLS_EVENT)] == ["first"]
        writer.close()


async def test_a_holder_that_lost_its_office_says_so_and_comes_back(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    await make_computer()
    async with holding(link, office) as holder:
        ada = await make_shared("ada")
        events: list[Any] = []
        ada.on("connection")(events.append)
        inner: OfficeLink = holder._link
        assert inner._connection is not None
        await inner._connection.eio.ws.close()
        await eventually(lambda: any(isinstance(event, Disconnected) for event in events))
        await eventually(lambda: any(isinstance(event, Joined) and event.again for event in events))
        await ada.settled()
        assert text_of(await ada.call_tool("laptop", "echo", {"text": "again"})) == "again"


async def test_without_a_server_a_request_says_why_at_once(runtime: Path) -> None:
    with async_server(OpenAuthentication(), LIMITS) as running:
        gone = running.url
    options = LinkOptions(gone, backoff=(0.05, 0.2))
    async with holding(options, "nowhere"):
        agent = AsyncSMCPAgentClient(options, name="ada", link=shared_seat(options, "nowhere", "ada", start=False))
        await agent.open()
        with pytest.raises(ConnectionLostError, match=gone.rpartition(":")[2]):
            await agent.join_office("nowhere")
        assert agent.problem is not None and "cannot connect" in agent.problem
        await agent.close()


async def test_what_is_tried_for_ever_is_logged_once(
    runtime: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with async_server(OpenAuthentication(), LIMITS) as running:
        # An attempt that ended by the clock would be another problem, and said, too.
        options = LinkOptions(running.url, backoff=(0.05, 0.2), connect_timeout=CONNECT_SECONDS)
    monkeypatch.setitem(RETRY_SECONDS, Passing.SOON, 0.01)
    async with holding(options, "nowhere") as holder:
        attempts: list[None] = []
        opening = holder._link.open

        async def counted() -> None:
            attempts.append(None)
            await opening()

        monkeypatch.setattr(holder._link, "open", counted)
        await eventually(lambda: len(attempts) > 5)
    assert len([record for record in caplog.records if "not in the office" in record.message]) == 1


async def test_a_seat_that_a_stranger_has_is_said_to_be_taken(
    make_shared: MakeShared, make_agent: MakeAgent, link: LinkOptions, office: str
) -> None:
    stranger = await make_agent(name="stranger")
    async with holding(link, office):
        ada = await make_shared("ada", join=False)
        with pytest.raises(RoomFullError, match="stranger"):
            await ada.join_office(office)
        await stranger.leave_office()
        await eventually(lambda: ada._link._state.joined)  # type: ignore[attr-defined]
        await ada.join_office(office)
        assert await names(ada) == ["seat"]


async def test_who_has_the_seat_is_known_before_it_is_reported(
    make_shared: MakeShared, make_agent: MakeAgent, link: LinkOptions, office: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answer of a host names the holder. A join waits: the holder may be a process that is about to end."""
    monkeypatch.setattr("a2c_smcp.agent.seat.holder.FREED_SECONDS", 600.0)
    stranger = await make_agent(name="stranger")
    async with holding(link, office):
        ada = await make_shared("ada", join=False)
        joining = asyncio.create_task(ada.join_office(office))
        await eventually(lambda: "stranger" in str(ada.problem))
        assert not joining.done()
        await stranger.leave_office()
        await joining


@pytest.mark.parametrize("is_used", [False, True])
async def test_a_plain_agent_takes_over_a_seat_that_is_kept_for_nobody(
    make_shared: MakeShared, make_agent: MakeAgent, link: LinkOptions, office: str, is_used: bool
) -> None:
    async with holding(link, office, linger=600.0) as holder:
        ada = await make_shared("ada")
        if not is_used:
            await ada.close()
            await eventually(lambda: not holder._sharers)
        plain = await make_agent(name="plain", join=False)
        if is_used:
            with pytest.raises(RoomFullError, match="seat"):
                await plain.join_office(office)
            assert await names(ada) == ["seat"]
        else:
            await plain.join_office(office)
            assert await names(plain) == ["plain"]
            assert not place_of(link, office).socket.exists()


async def test_another_key_does_not_share(make_shared: MakeShared, link: LinkOptions, office: str) -> None:
    async with holding(with_key(link, "one"), office):
        await make_shared("ada", options=with_key(link, "one"))
        with pytest.raises(NobodyHoldsItError):
            await make_shared("eve", options=with_key(link, "two"), start=False)


async def test_nobody_leaves_the_office_for_the_others(make_shared: MakeShared, link: LinkOptions, office: str) -> None:
    async with holding(link, office):
        ada, bob = await make_shared("ada"), await make_shared("bob")
        with pytest.raises(ForbiddenError):
            await ada._link.exchange(LEAVE_OFFICE_EVENT, {"office_id": office}, 60)
        await ada.leave_office()
        assert ada.office_id is None
        assert await names(bob) == ["seat"]


async def test_a_request_that_is_too_large_is_refused_and_the_seat_lives(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    await make_computer()
    async with holding(link, office):
        ada = await make_shared("ada")
        with pytest.raises(PayloadTooLargeError):
            await ada.call_tool("laptop", "echo", {"text": "x" * LIMITS.max_message})
        text = "é" * (LIMITS.max_message // 8)
        assert text_of(await ada.call_tool("laptop", "echo", {"text": text})) == text


async def test_arguments_that_json_cannot_say_are_refused_and_the_seat_lives(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    await make_computer()
    async with holding(link, office):
        ada = await make_shared("ada")
        for params in NOT_JSON:
            with pytest.raises(BadRequestError):
                await ada.call_tool("laptop", "echo", params)
        assert text_of(await ada.call_tool("laptop", "echo", {"text": "still here"})) == "still here"


async def test_a_holder_ends_some_time_after_the_last_has_gone_and_leaves_no_socket(
    runtime: Path, link: LinkOptions, office: str, make_shared: MakeShared
) -> None:
    place = place_of(link, office)
    async with holding(link, office) as holder:
        ada = await make_shared("ada")
        # Only now: it would not wait longer for the first one to come, either.
        holder._options = replace(holder._options, linger=0.3)
        holder._news.set()
        await asyncio.sleep(0.6)
        holder._news.set()
        await asyncio.sleep(0.1)
        assert place.socket.exists()
        await ada.close()
        await eventually(lambda: not place.socket.exists())
        await eventually(lambda: not holder._link.connected)
        assert list((runtime / "a2c").iterdir()) == []


async def test_a_holder_whose_socket_was_removed_ends(
    runtime: Path, link: LinkOptions, office: str, monkeypatch: pytest.MonkeyPatch, make_shared: MakeShared
) -> None:
    monkeypatch.setattr("a2c_smcp.agent.seat.holder._LOOK", 0.05)
    async with holding(link, office) as holder:
        ada = await make_shared("ada", take_over=False)
        place_of(link, office).socket.unlink()
        await eventually(lambda: not ada.connected)
        await eventually(lambda: not holder._sharers)


# --- processes


def command_line(pid: int | None) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


async def test_of_ten_that_start_at_once_one_starts_a_holder_and_all_share_it(
    make_shared: MakeShared, make_computer: MakeComputer
) -> None:
    await make_computer()
    agents = await asyncio.gather(*(make_shared(f"agent-{n}") for n in range(10)))
    assert len({holder_pid(agent) for agent in agents}) == 1
    assert holder_pid(agents[0]) != os.getpid()
    echoes = await asyncio.gather(*(agent.call_tool("laptop", "echo", {"text": agent.name}) for agent in agents))
    assert [text_of(echo) for echo in echoes] == [agent.name for agent in agents]


async def test_a_holder_outlives_the_process_that_started_it_with_all_calls(
    make_shared: MakeShared, make_computer: MakeComputer
) -> None:
    computer = await make_computer()
    ada, bob = await make_shared("ada"), await make_shared("bob")
    call = asyncio.create_task(bob.call_tool("laptop", "wait"))
    await eventually(lambda: computer.requests(TOOL_CALL_EVENT))
    await ada.close()
    await asyncio.sleep(0.5)
    computer.release.set()
    assert text_of(await call) == "released"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_when_the_holder_ends_another_takes_over_and_no_call_runs_twice(
    make_shared: MakeShared, make_computer: MakeComputer, how: signal.Signals
) -> None:
    computer = await make_computer()
    ada, bob = await make_shared("ada"), await make_shared("bob")
    events: list[Any] = []
    bob.on("connection")(events.append)
    first = holder_pid(ada)
    assert first is not None
    running = asyncio.create_task(bob.call_tool("laptop", "slow"))
    await eventually(lambda: computer.requests(TOOL_CALL_EVENT))
    os.kill(first, how)
    with pytest.raises(ConnectionLostError, match="may have run"):
        await running
    # A process that ends closes one socket after another. What is sent while nobody holds the seat waits for the next.
    await eventually(lambda: not is_alive(first))
    echoes = await asyncio.gather(*(agent.call_tool("laptop", "echo", {"text": "next"}) for agent in (ada, bob)))
    assert [text_of(echo) for echo in echoes] == ["next", "next"]
    assert not is_alive(first)
    assert holder_pid(ada) == holder_pid(bob) != first
    assert [data["tool_name"] for data in computer.requests(TOOL_CALL_EVENT)] == ["slow", "echo", "echo"]
    await eventually(lambda: any(isinstance(event, Joined) and event.again for event in events))
    await bob.settled()
    assert list(bob.computers) == ["laptop"]


async def test_a_call_that_is_sent_before_it_is_heard_that_the_holder_ended_waits_for_the_next_one(
    make_shared: MakeShared, make_computer: MakeComputer
) -> None:
    computer = await make_computer()
    ada = await make_shared("ada")
    holder = holder_pid(ada)
    assert holder is not None
    os.kill(holder, signal.SIGKILL)
    while is_alive(holder):
        time.sleep(0.001)  # noqa: ASYNC251 # the loop must hear nothing meanwhile
    assert text_of(await ada.call_tool("laptop", "echo", {"text": "next"})) == "next"
    assert len(computer.requests(TOOL_CALL_EVENT)) == 1


async def test_what_only_reads_is_asked_again_when_the_holder_ends(
    make_shared: MakeShared, make_computer: MakeComputer
) -> None:
    computer = await make_computer()
    ada = await make_shared("ada", live=False, deadlines=Deadlines(reply=90))  # the next holder has to start first
    answers = computer.answers[GET_TOOLS_EVENT]

    async def late(data: dict[str, Any]) -> Any:
        await computer.release.wait()
        return answers(data)

    computer.override[GET_TOOLS_EVENT] = late
    asked = asyncio.create_task(ada.get_tools("laptop"))
    await eventually(lambda: computer.requests(GET_TOOLS_EVENT))
    holder = holder_pid(ada)
    assert holder is not None
    os.kill(holder, signal.SIGKILL)
    await eventually(lambda: len(computer.requests(GET_TOOLS_EVENT)) == 2)
    computer.release.set()
    assert [tool["name"] for tool in await asked] == ["echo"]


async def test_a_holder_that_does_not_answer_is_named(
    make_shared: MakeShared, monkeypatch: pytest.MonkeyPatch, server: Running
) -> None:
    ada = await make_shared("ada")
    holder = holder_pid(ada)
    assert holder is not None
    monkeypatch.setattr("a2c_smcp.agent.seat.seat_link._GREETING", 0.2)
    os.kill(holder, signal.SIGSTOP)
    try:
        await eventually(lambda: state_of(holder) == "T")
        with pytest.raises(ConnectionLostError, match=f"process {holder} "):
            await make_shared("bob")
    finally:
        os.kill(holder, signal.SIGCONT)


async def test_a_holder_that_does_not_start_is_tried_again_and_its_log_is_named(
    runtime: Path, link: LinkOptions, office: str, make_shared: MakeShared, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = AsyncSMCPAgentClient(link, name="ada", link=shared_seat(link, office, "ada", linger=0.2))
    monkeypatch.setattr("sys.executable", "/bin/false")
    agent.attend(office)
    try:
        await eventually(lambda: agent.problem and str(place_of(link, office).log) in agent.problem)
        monkeypatch.undo()
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
        await eventually(lambda: agent.joined)
    finally:
        await agent.close()


async def test_a_lock_that_cannot_be_opened_is_a_problem_and_not_the_end(
    runtime: Path, link: LinkOptions, office: str
) -> None:
    place = place_of(link, office)
    place.lock.symlink_to(runtime / "elsewhere")
    agent = AsyncSMCPAgentClient(link, name="ada", link=shared_seat(link, office, "ada", linger=0.2))
    agent.attend(office)
    try:
        await eventually(lambda: agent.problem and "cannot be started" in agent.problem)
        assert not agent.is_entering
        os.unlink(place.lock)
        await eventually(lambda: agent.joined)
    finally:
        await agent.close()


async def test_who_waits_for_a_holder_is_told_when_its_agent_is_closed(
    runtime: Path, link: LinkOptions, office: str
) -> None:
    lock = try_lock(place_of(link, office))  # as if another process were starting one
    assert lock is not None
    agent = AsyncSMCPAgentClient(link, name="ada", link=shared_seat(link, office, "ada"))
    agent.attend(office)
    call = asyncio.create_task(agent.call_tool("laptop", "echo"))
    await asyncio.sleep(0.1)
    assert agent.is_entering
    await agent.close()
    async with asyncio.timeout(20):  # well before the 30 s that it would wait
        with pytest.raises(ConnectionLostError):
            await call
    os.close(lock)


async def test_the_key_is_in_no_argument_of_the_holder(make_shared: MakeShared, link: LinkOptions, office: str) -> None:
    ada = await make_shared("ada", options=with_key(link, "a-key-to-hide"))
    command = command_line(holder_pid(ada))
    assert b"a2c_smcp.agent.seat" in command and b"a-key-to-hide" not in command


async def test_a_shared_seat_is_for_its_own_office_and_not_used_after_leaving(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    await make_computer()
    async with holding(link, office):
        ada = await make_shared("ada", join=False)
        heard: list[str] = []
        ada.on("connection")(lambda event: heard.append(type(event).__name__))
        with pytest.raises(AlreadyInRoomError, match="another office needs one of its own"):
            await ada.join_office("elsewhere")
        for _ in range(2):
            with pytest.raises(NotInRoomError):
                await ada.call_tool("laptop", "echo", {"text": "x"})
            await ada.join_office(office)
            assert text_of(await ada.call_tool("laptop", "echo", {"text": "x"})) == "x"
            await ada.leave_office()
        await eventually(lambda: heard[-4:] == ["Joined", "Left", "Joined", "Left"])


def _note(happened: list[str], what: str, data: Any) -> None:
    happened.append(f"{what} {data['computer']}")

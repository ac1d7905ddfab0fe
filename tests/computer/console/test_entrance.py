"""The ways in over HTTP: links, keys of browsers, names, revocation; and what a page outside may ask."""

import logging
import os
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.console import Advice, Console, ConsoleAddress, ConsoleMemory
from a2c_smcp.computer.console.device_proofs import signed_text
from a2c_smcp.computer.console.limits import CONSOLE_LIMITS
from a2c_smcp.utils.limited_log import PER_SECOND, LimitedLog
from tests.computer.console.harness import DEADLINE, Visitor, as_agent, opened
from tests.computer.console.keys import DeviceKey, base64url
from tests.computer.console.test_memory import memory as file
from tests.computer.fakes.computers import server
from tests.server.harness import eventually

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
NOT_KNOWN = {"error": {"code": 403, "message": "this browser is not remembered; get a link"}}


class Times:
    """The clock and the calendar of a console, which a test moves on."""

    def __init__(self, console: Console) -> None:
        self.passed = 0.0
        assert console._app is not None
        entrance = console._app.entrance
        clock, calendar = entrance._clock, entrance._calendar
        entrance._clock = lambda: clock() + self.passed
        entrance._calendar = lambda: calendar() + self.passed


class Remembered:
    """A browser that is remembered, as its page would come in without a link."""

    def __init__(self, visitor: Visitor, key: DeviceKey, granted: dict[str, str]) -> None:
        self._visitor, self._key = visitor, key
        self.device, self.computer = granted["device"], granted["computer"]

    async def proof(self, **changed: str) -> dict[str, str]:
        """What is posted to come in. `challenge`, `origin` and `computer` of the signed text may be others."""
        asked = (await self._visitor.post("/api/challenge", {}, x_a2c_session="")).json()
        given = {
            "challenge": asked["challenge"],
            "origin": self._visitor.base,
            "computer": asked["computer"],
            **changed,
        }
        signature = base64url(self._key.sign(signed_text(**given)))
        return {"device": self.device, "challenge": given["challenge"], "signature": signature}

    async def enter(self, proof: dict[str, str] | None = None, **headers: str) -> httpx2.Response:
        return await self._visitor.post("/api/session", proof or await self.proof(), x_a2c_session="", **headers)


async def remembered(visitor: Visitor) -> Remembered:
    key = DeviceKey()
    answer = await visitor.post("/api/remember", {"key": base64url(key.public)})
    assert answer.status_code == 200, answer.text
    return Remembered(visitor, key, answer.json())


@asynccontextmanager
async def visited(tmp_path: Path, port: int = 0) -> AsyncIterator[tuple[Console, Visitor, ConsoleMemory]]:
    """A console with a memory, which was on `port` the last time, and somebody who came in by a link."""
    with file(tmp_path, now=time.time()) as memory:
        if port:
            memory.keep(replace(memory.found, host="127.0.0.1", port=port))
        async with opened(memory=memory) as (_, console), Visitor(console.link()) as visitor:
            yield console, await visitor.enter(), memory


# --- names


async def test_each_page_has_a_name_and_none_has_that_of_another(tmp_path: Path) -> None:
    async with visited(tmp_path) as (console, _, _):
        names = []
        for agent in (FIREFOX, FIREFOX, "<b>terminal</b>"):
            async with Visitor(console.link()) as visitor:
                answer = await visitor.post("/api/session", {"token": visitor.token}, user_agent=agent)
                names.append(answer.json()["device"])
        assert names == ["Firefox on Linux", "Firefox on Linux (2)", "Unknown browser (2)"]


async def test_a_call_and_a_cancel_are_credited_to_the_page() -> None:
    config = server("one", prefixed=False, default_tool_meta={})
    async with opened(config) as (computer, console), Visitor(console.link()) as visitor:
        await visitor.enter()
        assert (await visitor.post("/api/call", {"tool": "stats", "arguments": {}})).status_code == 200
        await eventually(lambda: len(computer.ended_calls) == 1, DEADLINE)
        with computer.decisions.attend("terminal"):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(as_agent, computer, "stats")
                await eventually(lambda: len(computer.running_calls) == 1, DEADLINE)
                [running] = computer.running_calls
                assert (await visitor.post("/api/cancel", {"id": running.call.id})).json() == {"cancelled": True}
        assert [ended.decided_by for ended in computer.ended_calls] == ["Unknown browser"] * 2


# --- who has to leave


async def test_a_page_that_follows_and_is_silent_stays_and_if_all_follow_the_next_is_told() -> None:
    async with opened() as (_, console), Visitor(console.link()) as visitor, anyio.create_task_group() as tasks:
        await visitor.enter()
        await tasks.start(_follow, visitor)
        times = Times(console)
        others = [await Visitor(console.link()).enter() for _ in range(2 * CONSOLE_LIMITS.sessions)]
        assert (await visitor.get("/api/tools")).status_code == 200
        assert (await others[0].get("/api/tools")).status_code == 401
        # They hear the stream of another tab, and say so.
        for other in others[-CONSOLE_LIMITS.sessions + 1 :]:
            assert (await other.get("/api/alive")).status_code == 200
        late = Visitor(console.link())
        refused = await late.post("/api/session", {"token": late.token})
        assert refused.status_code == 429 and "close one" in refused.json()["error"]["message"]
        times.passed = CONSOLE_LIMITS.alive_seconds + 1
        await late.enter()
        assert (await visitor.get("/api/tools")).status_code == 200
        for each in (*others, late):
            await each.__aexit__()
        tasks.cancel_scope.cancel()


async def _follow(visitor: Visitor, *, task_status: anyio.abc.TaskStatus[None]) -> None:
    async with visitor.feed() as messages:
        await anext(messages)
        task_status.started()
        async for _ in messages:
            pass


# --- browsers that are remembered


async def test_a_browser_that_is_remembered_comes_in_without_a_link_under_its_name(tmp_path: Path) -> None:
    async with visited(tmp_path) as (_, visitor, memory):
        device = await remembered(visitor)
        answer = await device.enter()
        assert answer.status_code == 200 and answer.json()["device"] == "Unknown browser"
        again = await visitor.get("/api/tools", x_a2c_session=answer.json()["key"])
        assert again.status_code == 200
        assert [each.id for each in memory.found.devices] == [device.device]
        assert memory.found.port == int(visitor.base.rpartition(":")[2])
        listed = (await visitor.get("/api/devices")).json()
        assert [(each["name"], each["here"]) for each in listed["devices"]] == [("Unknown browser", True)]
        assert listed["pages"] == [] and not listed["others_reach_it"] and listed["computer"] == memory.found.computer


async def test_it_also_does_so_after_the_computer_was_started_again_and_at_every_name_of_loopback(
    tmp_path: Path, port: int
) -> None:
    async with visited(tmp_path, port) as (_, visitor, _):
        assert visitor.base == f"http://127.0.0.1:{port}"
        device = await remembered(visitor)
    async with visited(tmp_path) as (_, visitor, _):
        assert visitor.base == f"http://127.0.0.1:{port}", "the port is remembered"
        device._visitor = visitor
        assert (await device.enter()).status_code == 200
        there = f"http://localhost:{port}"
        by_name = await device.enter(await device.proof(origin=there), origin=there, host=there[7:])
        assert by_name.status_code == 200


async def test_a_challenge_that_was_answered_is_not_accepted_again(tmp_path: Path) -> None:
    async with visited(tmp_path) as (_, visitor, _):
        device = await remembered(visitor)
        proof = await device.proof()
        assert (await device.enter(proof)).status_code == 200
        again = await device.enter(proof)
        assert (again.status_code, again.json()) == (403, NOT_KNOWN)


async def test_a_challenge_that_is_too_old_is_not_accepted(tmp_path: Path) -> None:
    async with visited(tmp_path) as (console, visitor, _):
        device, times = await remembered(visitor), Times(console)
        proof = await device.proof()
        times.passed = CONSOLE_LIMITS.challenge_seconds + 1
        late = await device.enter(proof)
        assert (late.status_code, late.json()) == (403, NOT_KNOWN)
        assert (await device.enter()).status_code == 200


@pytest.mark.parametrize(
    "changed",
    [{"origin": "http://127.0.0.1:1"}, {"origin": "http://evil.example"}, {"computer": "0" * 32}],
    ids=["another port", "another site", "another computer"],
)
async def test_a_signature_for_another_place_is_worth_nothing(tmp_path: Path, changed: dict[str, str]) -> None:
    async with visited(tmp_path) as (_, visitor, _):
        device = await remembered(visitor)
        answer = await device.enter(await device.proof(**changed))
        assert (answer.status_code, answer.json()) == (403, NOT_KNOWN)


async def test_whatever_is_wrong_the_answer_is_the_same_and_the_log_is_not_flooded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with visited(tmp_path) as (console, visitor, _):
        assert console._app is not None
        log = LimitedLog(logging.getLogger("a2c_smcp"), clock=lambda: 0.0, later=lambda *_: None)
        console._app.entrance._log = log
        device = await remembered(visitor)
        proof = await device.proof()
        wrong = [
            {**proof, "device": "0" * 32},
            {**proof, "device": ""},
            {**proof, "signature": base64url(bytes(64))},
            {**proof, "signature": "x"},
            {**proof, "challenge": "x"},
            {**proof, "challenge": proof["challenge"][:-2]},
            {**proof, "signature": base64url(DeviceKey().sign(b"x"))},
        ]
        for body in wrong * 10:
            answer = await device.enter(body)
            assert (answer.status_code, answer.json()) == (403, NOT_KNOWN)
        lines = [record for record in caplog.records if "refused a browser" in record.message]
        assert len(lines) == PER_SECOND
        assert (await device.enter(proof)).status_code == 200, "a wrong answer uses no challenge up"
        for part in ("device", "challenge", "signature"):
            assert (await device.enter({**proof, part: 1})).status_code == 400  # type: ignore[dict-item]


async def test_a_browser_that_was_not_used_for_thirty_days_is_forgotten(tmp_path: Path) -> None:
    async with visited(tmp_path) as (console, visitor, _):
        device, times = await remembered(visitor), Times(console)
        times.passed = CONSOLE_LIMITS.device_seconds - 60
        assert (await device.enter()).status_code == 200, "and that was a use"
        times.passed += CONSOLE_LIMITS.device_seconds - 60
        assert (await device.enter()).status_code == 200
        times.passed += CONSOLE_LIMITS.device_seconds + 60
        answer = await device.enter()
        assert (answer.status_code, answer.json()) == (403, NOT_KNOWN)


async def test_a_page_that_stays_open_uses_its_browser(tmp_path: Path) -> None:
    async with visited(tmp_path) as (console, visitor, memory):
        device, times = await remembered(visitor), Times(console)
        granted = memory.found.devices[0].used
        times.passed = CONSOLE_LIMITS.device_seconds - 60
        assert (await visitor.get("/api/alive")).status_code == 200
        assert memory.found.devices[0].used > granted
        times.passed += CONSOLE_LIMITS.device_seconds - 60
        assert (await device.enter()).status_code == 200


async def test_what_is_revoked_is_out_at_once_with_its_sessions_and_streams(tmp_path: Path) -> None:
    async with visited(tmp_path) as (console, visitor, memory), Visitor(console.link()) as other:
        device = await remembered(visitor)
        await other.enter()
        tab = (await device.enter()).json()["key"]
        async with anyio.create_task_group() as tasks:
            await tasks.start(_follow, visitor)
            answer = await other.post("/api/revoke", {"device": device.device})
            assert answer.status_code == 200
            # The task group ends when the stream does.
            with anyio.fail_after(DEADLINE):
                while console._app and console._app.api._streams:  # noqa: ASYNC110 - it ends in another task
                    await anyio.sleep(0.01)
        for key in (tab, visitor.headers["x-a2c-session"]):
            assert (await visitor.get("/api/tools", x_a2c_session=key)).status_code == 401
        answer = await device.enter()
        assert (answer.status_code, answer.json()) == (403, NOT_KNOWN)
        assert memory.found.devices == ()
        assert (await other.post("/api/revoke", {"device": device.device})).status_code == 404
        assert (await other.get("/api/tools")).status_code == 200


async def test_a_request_whose_body_comes_after_the_revocation_does_nothing(tmp_path: Path) -> None:
    async with visited(tmp_path) as (console, visitor, _), Visitor(console.link()) as other:
        await other.enter()
        started, revoked = anyio.Event(), anyio.Event()

        async def slowly() -> AsyncIterator[bytes]:
            yield b'{"key": "'
            started.set()
            await revoked.wait()
            yield f'{base64url(DeviceKey().public)}"}}'.encode()

        async with anyio.create_task_group() as tasks:
            statuses: list[int] = []

            async def post() -> None:
                headers = {**visitor.headers, "content-type": "application/json"}
                answer = await visitor._client.post("/api/remember", content=slowly(), headers=headers)
                statuses.append(answer.status_code)

            tasks.start_soon(post)
            await started.wait()
            assert (await other.post("/api/revoke", {"page": "Unknown browser"})).status_code == 200
            revoked.set()
        assert statuses == [401]
        assert (await other.get("/api/devices")).json()["devices"] == []


async def test_a_page_that_is_not_remembered_can_be_ended_too(tmp_path: Path) -> None:
    async with visited(tmp_path) as (console, visitor, _), Visitor(console.link()) as other:
        await other.enter()
        pages = (await other.get("/api/devices")).json()["pages"]
        assert sorted((page["name"], page["here"]) for page in pages) == [
            ("Unknown browser", False),
            ("Unknown browser (2)", True),
        ]
        assert (await other.post("/api/revoke", {"page": "Unknown browser"})).status_code == 200
        assert (await visitor.get("/api/tools")).status_code == 401
        assert (await other.post("/api/revoke", {"page": "Unknown browser"})).status_code == 404
        assert (await other.post("/api/revoke", {})).status_code == 400


@pytest.mark.parametrize("key", ["", "x", base64url(bytes(65)), base64url(b"\x04" + b"\xff" * 64), 1, None])
async def test_what_is_no_key_is_not_remembered(tmp_path: Path, key: Any) -> None:
    async with visited(tmp_path) as (_, visitor, memory):
        assert (await visitor.post("/api/remember", {"key": key})).status_code == 400
        assert memory.found.devices == ()


async def test_one_more_than_the_most_is_refused(tmp_path: Path) -> None:
    async with visited(tmp_path) as (console, visitor, memory):
        device = await remembered(visitor)
        assert (await remembered(visitor)).device == device.device, "a browser that lost its key keeps its place"
        for number in range(CONSOLE_LIMITS.devices - 1):
            console._app.entrance._devices.grant(f"page {number}", DeviceKey().public, memory.found.devices[0].used)  # type: ignore[union-attr]
        async with Visitor(console.link()) as other:
            await other.enter()
            refused = await other.post("/api/remember", {"key": base64url(DeviceKey().public)})
            assert refused.status_code == 429 and "revoke one" in refused.json()["error"]["message"]


async def test_what_cannot_be_written_is_said_and_a_revoked_browser_stays_out_of_this_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with visited(tmp_path) as (console, visitor, memory), Visitor(console.link()) as other:
        device = await remembered(visitor)
        await other.enter()
        monkeypatch.setattr(memory, "_file", tmp_path / "nowhere" / "file.json")
        refused = await other.post("/api/remember", {"key": base64url(DeviceKey().public)})
        assert refused.status_code == 500 and "cannot be remembered" in refused.json()["error"]["message"]
        assert len((await other.get("/api/devices")).json()["devices"]) == 1
        told = await other.post("/api/revoke", {"device": device.device})
        assert told.status_code == 500 and "cannot be written" in told.json()["error"]["message"]
        assert (await device.enter()).status_code == 403


# --- consoles that remember nothing, and the port


async def test_without_a_memory_nothing_is_remembered() -> None:
    async with opened() as (_, console), Visitor(console.link()) as visitor:
        assert (await visitor.post("/api/challenge", {})).status_code == 404
        assert (await visitor.get("/api/door")).json() == {"advice": "program", "pid": None, "remembers": False}
        await visitor.enter()
        assert (await visitor.post("/api/remember", {"key": "x"})).status_code == 404
        assert (await visitor.get("/api/devices")).json()["computer"] is None
        proof = {"device": "0" * 32, "challenge": "x", "signature": "x"}
        assert (await visitor.post("/api/session", proof)).status_code == 403


async def test_a_port_that_is_taken_is_said_and_comes_back_when_it_is_free(tmp_path: Path, port: int) -> None:
    def listening(memory: ConsoleMemory | None, at: int = 0) -> tuple[Console, socket.socket]:
        console = Console(Computer("pc"), ConsoleAddress("127.0.0.1", at), memory=memory)
        console.listen()
        assert console._listener is not None
        return console, console._listener

    with file(tmp_path, now=time.time()) as memory:
        memory.keep(replace(memory.found, host="127.0.0.1", port=port))
        other, taken = listening(None, port)
        console, listener = listening(memory)
        with taken, listener:
            assert other.notice is None and listener.getsockname()[1] != port
            assert console.notice is not None and f"{port} cannot be used" in console.notice
            assert "let in again" in console.notice and memory.found.port == port
        again, listener = listening(memory)
        with listener:
            assert again.notice is None and listener.getsockname()[1] == port


# --- what a page outside may ask


async def test_the_advice_is_that_of_the_command_and_says_no_more(tmp_path: Path) -> None:
    for advice, pid in ((Advice.SIGNAL, os.getpid()), (Advice.PROMPT, None)):
        console = Console(Computer("pc"), ConsoleAddress("127.0.0.1", 0), advice=advice)
        async with anyio.create_task_group() as tasks:
            await tasks.start(console.run)
            async with Visitor(console.link()) as visitor:
                found = (await visitor.get("/api/door")).json()
                assert found == {"advice": str(advice), "pid": pid, "remembers": False}
                for headers in (
                    {"host": "evil.example"},
                    {"origin": "http://evil.example"},
                    {"sec_fetch_site": "cross-site"},
                ):
                    refused = await visitor.get("/api/door", **headers)
                    assert refused.status_code in (403, 421) and "advice" not in refused.text
            tasks.cancel_scope.cancel()


async def test_no_link_is_made_where_no_other_device_would_get_anywhere() -> None:
    async with opened() as (_, console), Visitor(console.link()) as visitor:
        await visitor.enter()
        refused = await visitor.post("/api/link", {})
        assert refused.status_code == 400 and "certificate" in refused.json()["error"]["message"]

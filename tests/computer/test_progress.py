"""The progress of a call inside the computer: real servers of each era report it, and nobody else's is heard."""

import asyncio
from typing import Any

import anyio
import pytest

from a2c_smcp.computer.calls.progress import CallProgress
from a2c_smcp.computer.computer import Computer
from a2c_smcp.smcp import WAITING_FOR_PERSON
from tests.computer.fakes.computers import FAST, call, running, server, text

Report = tuple[float, float | None, str | None]
MODERN = "2026-07-28"


class Heard(list[Report]):
    """What a listener was told."""

    def take(self, progress: float, total: float | None, message: str | None) -> None:
        self.append((progress, total, message))


def redact(message: str) -> str:
    return message.replace("hunter2", "***")


# --- one call's reports


def test_progress_never_decreases() -> None:
    heard = Heard()
    progress = CallProgress(heard.take, redact)
    for value in (1, 5, 3, 5, 7):
        progress.report(value, 10)
    assert [value for value, *_ in heard] == [1, 5, 5, 5, 7]


def test_what_is_no_number_is_not_passed_on() -> None:
    heard = Heard()
    progress = CallProgress(heard.take, redact)
    for value in (float("nan"), float("inf"), float("-inf")):
        progress.report(value)
    progress.report(1, float("inf"), "a total that is none")
    assert heard == [(1, None, "a total that is none")]


def test_a_message_is_redacted_before_it_is_cut() -> None:
    heard = Heard()
    progress = CallProgress(heard.take, redact)
    progress.report(1, None, "x" * 990 + "hunter2" + "y" * 1000)
    progress.report(2, None, "half a pair \ud800")
    message = heard[0][2]
    assert message is not None
    assert len(message) == 1000
    assert "hunter" not in message
    assert "***" in message
    assert heard[1][2] == "half a pair \ufffd"


def test_a_wait_is_reported_with_what_is_known() -> None:
    heard = Heard()
    progress = CallProgress(heard.take, redact)
    progress.waiting()
    progress.report(2, 4, "on the way")
    progress.waiting()
    assert heard == [(0, None, WAITING_FOR_PERSON), (2, 4, "on the way"), (2, 4, WAITING_FOR_PERSON)]


def test_nothing_is_reported_after_the_end() -> None:
    heard = Heard()
    progress = CallProgress(heard.take, redact)
    progress.end()
    progress.report(1)
    progress.waiting()
    assert heard == []


def test_a_listener_that_fails_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    CallProgress(fail, redact).report(1)
    assert "failed to take the progress" in caplog.text


# --- with real servers


@pytest.mark.parametrize("protocol", ["legacy", MODERN])
async def test_two_hundred_steps_in_a_second_come_in_order_before_the_result(protocol: str) -> None:
    heard = Heard()
    async with running(server("a", protocol=protocol)) as (computer, _):
        params = {"steps": 200, "seconds": 1, "message": "copying"}
        result = await computer.execute_tool("r", "a.report", params, 60, heard.take)
        assert text(result) == "reported"
        assert heard == [(step, 200, "copying") for step in range(1, 201)]


@pytest.mark.parametrize(("kind", "protocol"), [("streamable", "legacy"), ("streamable", MODERN), ("sse", "legacy")])
async def test_two_hundred_steps_over_http(http_server: str, kind: str, protocol: str) -> None:
    path = {"streamable": "/mcp", "sse": "/sse"}[kind]
    config = {
        "name": "web",
        "type": kind,
        "protocol": protocol,
        "default_tool_meta": {"auto_apply": True},
        "server_parameters": {"url": http_server + path},
    }
    heard = Heard()
    async with running(config) as (computer, _):
        result = await computer.execute_tool("r", "report", {"steps": 200, "seconds": 1}, 60, heard.take)
        assert text(result) == "reported"
        assert heard == [(step, 200, f"step {step}") for step in range(1, 201)]
    async with Computer("pc", mcp_servers=[config], timings=FAST) as unwatched:
        assert text(await call(unwatched, "report", steps=1, seconds=0)) == "did not report"


async def test_without_a_listener_the_server_is_not_asked_to_report() -> None:
    async with Computer("pc", mcp_servers=[server("a")], timings=FAST) as unwatched:
        assert text(await call(unwatched, "a.report", steps=1)) == "did not report"


async def test_what_a_server_makes_of_progress_is_put_right() -> None:
    heard = Heard()
    values: list[dict[str, Any]] = [
        {"progress": 2, "total": 3},
        {"progress": 1, "total": 3},
        {"progress": "3"},
        {"total": 3},
        {"progress": 2.5, "total": "3", "message": 5},
    ]
    async with running(server("a")) as (computer, _):
        await computer.execute_tool("r", "a.report", {"values": values}, 60, heard.take)
        assert heard == [(2, 3, None), (2, 3, None), (2.5, None, None)]


async def test_each_round_of_an_exchange_reports_and_nothing_goes_back() -> None:
    heard = Heard()
    async with running(server("a", protocol=MODERN)) as (computer, _):
        result = await computer.execute_tool("r", "a.twice", {}, 60, heard.take)
        assert text(result) == "asked once before"
        assert heard == [(3, 4, None), (3, 4, None)]


async def test_secrets_are_taken_out_of_messages() -> None:
    config = server("a")
    config["server_parameters"]["env"] = {"API_TOKEN": "hunter2-and-more"}
    heard = Heard()
    async with running(config) as (computer, _):
        params = {"steps": 1, "message": "logging in with hunter2-and-more"}
        await computer.execute_tool("r", "a.report", params, 60, heard.take)
        assert heard == [(1, 1, "logging in with ***")]


async def test_a_server_that_reports_without_end_holds_up_no_other() -> None:
    heard, prompt = Heard(), 0
    async with Computer("pc", mcp_servers=[server("loud"), server("quiet")], timings=FAST) as computer:

        async def flood() -> None:
            # Again, where the machine had no time for the quiet one while the loud one spoke.
            while prompt <= 10:
                heard.clear()
                params = {"steps": 20_000, "message": "x" * 1000}
                result = await computer.execute_tool("r", "loud.report", params, 60, heard.take)
                assert text(result) == "reported"
                assert len(heard) == 20_000

        with anyio.fail_after(90):
            flooding = asyncio.create_task(flood())
            while not flooding.done():
                before = len(heard)
                assert text(await call(computer, "quiet.echo", text="x")) == "x"
                # One that is held up is answered before a flood or after it.
                prompt += 0 < len(heard) - before < 2000
            await flooding


async def test_a_call_that_waits_for_its_confirmation_says_so() -> None:
    heard = Heard()

    async def confirm(*_: Any) -> bool:
        assert heard == [(0, None, WAITING_FOR_PERSON)]
        return True

    async with running(server("a", default_tool_meta=None), confirm_callback=confirm) as (computer, _):
        await computer.execute_tool("r", "a.report", {"steps": 2}, 60, heard.take)
        assert heard == [(0, None, WAITING_FOR_PERSON), (1, 2, None), (2, 2, None)]

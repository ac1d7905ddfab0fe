"""An MCP server over HTTP that sends too much, or too little: it costs the call that it answers, and nothing else."""

import json
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import httpx2
import pytest

from a2c_smcp.computer.mcp_clients.http.bounds import AnswerBounds, BoundedTransport
from a2c_smcp.computer.mcp_clients.http.failures import describe_http
from a2c_smcp.computer.mcp_clients.mcp_connection import MCPConnection
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.errors import PayloadTooLargeError, SMCPError, ToolExecutionError, ToolExecutionTimeoutError
from tests.computer.test_first_starts import answering
from tests.computer.test_mcp_connection import connected, connection_to, text

HOSTILE = str(Path(__file__).parent / "fakes" / "hostile_http.py")
#: A message may have so much, and an answer a quarter more.
MESSAGE = 2 * 1024 * 1024
LIMIT = MESSAGE + MESSAGE // 4


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, "-I", "-S", HOSTILE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.communicate(timeout=20)


def config(base: str, path: str = "/mcp", **parameters: Any) -> dict[str, Any]:
    kind = "streamable" if path in ("/mcp", "/moved") else "sse"
    return {"name": "web", "type": kind, "protocol": "legacy", "server_parameters": {"url": base + path, **parameters}}


async def alive(connection: MCPConnection) -> None:
    await text(connection, "echo", text="here")
    assert (connection.state, connection.restarts) == (ServerState.RUNNING, 0)


async def failure(connection: MCPConnection, tool: str, timeout: float = 60, **params: Any) -> SMCPError:
    """How a call failed, while another call of the same server went on."""
    with pytest.raises(SMCPError) as failed:
        await connection.call_tool(tool, params, timeout)
    await alive(connection)
    return failed.value


async def seen(connection: MCPConnection, what: str) -> int:
    counts: dict[str, int] = json.loads(await text(connection, "seen"))
    return counts.get(what, 0)


async def left_alone(connection: MCPConnection, what: str) -> None:
    """Wait until the server has noticed that nobody reads on."""
    with anyio.fail_after(30):
        while await seen(connection, what):  # which takes its time
            pass


@pytest.mark.parametrize("tool", ["endless_json", "endless_event"])
async def test_an_answer_without_an_end_is_413_and_the_session_lives(
    base: str, tool: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(config(base), max_message=MESSAGE) as connection:
        failed = await failure(connection, tool)
        assert isinstance(failed, PayloadTooLargeError)
        assert failed.message.startswith("Server web: ")
        assert f"more than {LIMIT} bytes" in failed.message
        await left_alone(connection, "endless")
    assert f"MCP server web: {failed.message.removeprefix('Server web: ')}: 1 requests fail with it" in caplog.text


@pytest.mark.parametrize("kind", ["json", "events"])
async def test_an_answer_of_just_the_limit_arrives_and_one_byte_more_does_not(base: str, kind: str) -> None:
    async with connected(config(base), max_message=MESSAGE) as connection:
        assert len(await text(connection, "sized", kind=kind, size=LIMIT)) > LIMIT - 200
        failed = await failure(connection, "sized", kind=kind, size=LIMIT + 1)
        assert isinstance(failed, PayloadTooLargeError)


@pytest.mark.parametrize("tool", ["bomb", "encoded"])
@pytest.mark.parametrize("kind", ["json", "events"])
async def test_an_encoded_answer_is_refused_unread(base: str, tool: str, kind: str) -> None:
    headers = {"accept-encoding": "gzip"}
    async with connected(config(base, headers=headers), max_message=MESSAGE) as connection:
        failed = await failure(connection, tool, kind=kind)
        assert isinstance(failed, PayloadTooLargeError)
        assert "encoded as 'deflate'" in failed.message or tool == "bomb"
        assert await seen(connection, "identity") == 1


async def test_an_answer_that_is_cut_short_fails_alone(base: str) -> None:
    async with connected(config(base)) as connection:
        failed = await failure(connection, "cut")
        assert isinstance(failed, ToolExecutionError)
        assert "cut short after 10 bytes" in failed.message
        assert failed.details["mcp_code"] == -32700
        assert isinstance(await failure(connection, "cut", status="500 Oh no"), ToolExecutionError)


async def test_an_error_without_an_end_is_its_status(base: str) -> None:
    async with connected(config(base), max_message=MESSAGE) as connection:
        failed = await failure(connection, "refused")
        assert isinstance(failed, ToolExecutionError)
        assert "Server returned an error response" in failed.message


async def test_a_redirect_without_an_end_is_followed(base: str) -> None:
    async with connected(config(base, "/moved"), max_message=MESSAGE) as connection:
        await alive(connection)


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream", "nothing"])
async def test_nothing_is_read_any_more_when_a_call_is_over(base: str, kind: str) -> None:
    async with connected(config(base)) as connection:
        failed = await failure(connection, "drip", 0.3, kind=kind)
        assert isinstance(failed, ToolExecutionTimeoutError)
        await left_alone(connection, "drips")


async def test_a_stream_is_not_resumed_any_more_when_its_call_is_over(base: str) -> None:
    async with connected(config(base)) as connection:
        with pytest.raises(ToolExecutionTimeoutError):
            await connection.call_tool("unfinished", {}, 2)
        resumed, streams = await seen(connection, "resumed"), await seen(connection, "streams")
        assert resumed
        with anyio.fail_after(60):
            # Both are opened at one pace, and this one goes on for ever.
            while await seen(connection, "streams") < streams + 20:
                pass
        assert await seen(connection, "resumed") <= resumed + 1
        await alive(connection)


async def test_the_stream_of_one_answer_is_resumed_so_many_times(base: str) -> None:
    bounds, url = AnswerBounds(LIMIT, LIMIT, resumptions=3), f"{base}/mcp"
    async with httpx2.AsyncClient(transport=BoundedTransport("web", bounds, list)) as client:
        for request_id in (1, 2):
            call = {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": {"name": "unfinished"}}
            await client.post(url, json=call)
            for _ in range(3):
                assert "error" not in (await client.get(url, headers={"Last-Event-ID": "1"})).text
            answer = await client.get(url, headers={"Last-Event-ID": "1"})
            assert answer.headers["content-type"] == "text/event-stream"
            assert json.loads(answer.text.removeprefix("data: "))["id"] == request_id
            assert "ended 4 times without an answer" in answer.text


async def test_many_large_answers_are_read_a_few_at_a_time_and_all_arrive(base: str) -> None:
    async with connected(config(base), max_message=MESSAGE) as connection:
        sizes: list[int] = []

        async def ask(kind: str) -> None:
            sizes.append(len(await text(connection, "sized", 120, kind=kind, size=2_000_000)))

        async with anyio.create_task_group() as tasks:
            for number in range(12):
                tasks.start_soon(ask, ("json", "events")[number % 2])
        assert len(sizes) == 12
        assert min(sizes) > 1_999_000


async def test_events_without_an_end_last_as_long_as_the_call(base: str) -> None:
    async with connected(config(base), max_message=MESSAGE) as connection:
        failed = await failure(connection, "endless_events", 0.5)
        assert isinstance(failed, ToolExecutionTimeoutError)
        await left_alone(connection, "endless")


async def test_a_stream_that_ends_at_once_is_not_opened_at_once_for_ever(base: str) -> None:
    async with connected(config(base)) as connection:
        began, before, opened = anyio.current_time(), await seen(connection, "streams"), 0
        while anyio.current_time() < began + 0.5:
            opened = await seen(connection, "streams") - before
        # A second's worth at once, and 32 a second.
        assert opened <= 40 * (1 + anyio.current_time() - began)


@asynccontextmanager
async def client(bounds: AnswerBounds) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(transport=BoundedTransport("web", bounds, list), timeout=60) as http:
        yield http


async def test_events_come_no_faster_than_they_may(base: str) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "endless_events"}}
    bounds = AnswerBounds(LIMIT, LIMIT, events_per_second=2048 * 16 * 1024)
    async with client(bounds) as http, http.stream("POST", base + "/mcp", json=call) as response:
        began, events = anyio.current_time(), 0
        async for chunk in response.aiter_bytes():
            events += chunk.count(b"\n\n")
            if events > 4096:
                break
    # Two thousand at once, and two thousand in a second. The first and the last chunk have a few hundred of them.
    assert anyio.current_time() - began > 0.5


class Crumbs(httpx2.AsyncBaseTransport, httpx2.AsyncByteStream):
    """A server whose answer is there at once, in a thousand pieces."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, stream=self)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for _ in range(1000):
            yield b"x"


async def test_an_answer_in_many_pieces_leaves_the_loop_to_others() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    way = BoundedTransport("web", AnswerBounds(LIMIT, LIMIT), list)
    async with httpx2.AsyncClient(transport=Crumbs()) as way._client, anyio.create_task_group() as tasks:
        request = httpx2.Request("GET", "http://web")
        response = await way.handle_async_request(request)
        tasks.start_soon(count)
        assert len(await response.aread()) == 1000
        assert turns > 30
        tasks.cancel_scope.cancel()


async def test_what_answers_no_request_is_bounded_too(base: str) -> None:
    async with client(AnswerBounds(LIMIT, LIMIT)) as http:
        with pytest.raises(httpx2.StreamError, match=f"more than {LIMIT} bytes"):
            await http.get(base + "/metadata")
        with pytest.raises(httpx2.StreamError, match="encoded as 'gzip'"):
            await http.get(base + "/metadata?packed")


async def test_the_proxy_of_the_environment_is_used(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", base)
    async with connected(config("http://nowhere.invalid")) as connection:
        await alive(connection)


# --- SSE, where one stream has the answers to all requests


@pytest.mark.parametrize("place", ["first", "last"])
async def test_over_sse_an_event_that_is_too_long_is_413_for_the_call_that_it_answers(
    base: str, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(config(base, "/sse")) as connection:
        assert len(await text(connection, "echo", size=1024 * 1024)) > 1_048_000
        failed = await failure(connection, "echo", size=1024 * 1024 + 1, id=place)
        assert isinstance(failed, PayloadTooLargeError)
        assert "more than 1048576 bytes" in failed.message
        of_no_text = await failure(connection, "echo", size=500_000, of="\xff")
        assert isinstance(of_no_text, PayloadTooLargeError)
    assert "1 requests fail with it" in caplog.text


async def test_over_sse_all_that_wait_fail_if_it_does_not_show_which_was_answered(base: str) -> None:
    async with connected(config(base, "/sse")) as connection:
        failed = await failure(connection, "echo", size=2_000_000, id="none")
        assert isinstance(failed, PayloadTooLargeError)


async def test_over_sse_what_a_post_is_answered_with_is_not_read(base: str) -> None:
    async with connected(config(base, "/sse"), max_message=MESSAGE) as connection:
        await text(connection, "echo", rambles=True)
        await alive(connection)


async def test_events_are_utf_8_whatever_else_a_server_claims(base: str) -> None:
    async with connected(config(base, "/sse;charset=utf-16")) as connection:
        await alive(connection)


async def test_a_start_that_fails_so_says_why(base: str) -> None:
    caught = connection_to(config(base, "/packed"))
    with pytest.raises(ToolExecutionError, match="encoded as 'gzip'"):
        await caught.connect()
    await caught.disconnect()


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "a2c_smcp")


@pytest.mark.parametrize(
    ("headers", "answers_posts", "said"),
    [
        ({}, True, "look at the url"),
        ({"mcp-session-id": "s"}, True, "has lost its session"),
        ({}, False, "has lost its session"),
    ],
)
async def test_404_is_a_wrong_url_or_a_session_that_is_gone(
    headers: dict[str, str], answers_posts: bool, said: str
) -> None:
    bounds = AnswerBounds(1000, 1000, answers_posts=answers_posts)
    async with answering("404 Not Found") as url, BoundedTransport("web", bounds, tuple) as transport:
        await transport.handle_async_request(httpx2.Request("POST", url, headers=headers, json={}))
    assert said in (describe_http(transport.failed, url, {}) or "")

"""The server over HTTP: who comes in, being mounted elsewhere, stopping, and clients that stop reading."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import pytest
import uvicorn
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from starlette.applications import Starlette
from starlette.routing import Mount

from a2c_smcp.mcp_server import ContextServer, Window
from a2c_smcp.mcp_server.http import HttpApp
from tests.mcp_server.clients import (
    DEADLINE,
    ERAS,
    LEGACY,
    MODERN,
    Listening,
    call,
    connected,
    eventually,
    http_shop,
    subscribe,
    text,
    watching,
)
from tests.mcp_server.fakes.shop import DOOR, make_server
from tests.server.raw import connect, is_closed

both_eras = pytest.mark.parametrize("era", ERAS)

ABOUT = {"name": "raw", "version": "1"}
ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


@asynccontextmanager
async def serving(app: Any, send_buffer: int | None = None) -> AsyncIterator[str]:
    """The base URL of an application that is served in this loop."""
    listener = socket.create_server(("127.0.0.1", 0))
    if send_buffer is not None:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)  # which accepted ones inherit
    config = uvicorn.Config(app, lifespan="on", ws="none", log_config=None, timeout_graceful_shutdown=1)
    runner = uvicorn.Server(config)
    runner.capture_signals = _nothing  # type: ignore[assignment,method-assign]
    task = asyncio.create_task(runner.serve([listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        if isinstance(app, HttpApp):
            app.end_streams()
        runner.should_exit = True
        with anyio.fail_after(DEADLINE):
            await task


class _nothing:  # noqa: N801
    """Instead of uvicorn's signal handlers: this process belongs to pytest."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


# --- who comes in


async def test_only_this_machine_with_the_token_comes_in() -> None:
    app = make_server().http_app(token="s3cret")
    async with serving(app) as url, httpx2.AsyncClient(timeout=DEADLINE) as web:
        good = {**ACCEPT, "authorization": "Bearer s3cret"}
        refused = {
            401: {**ACCEPT},
            421: {**good, "host": "rebound.example:80"},
            403: {**good, "origin": "https://evil.example"},
        }
        for status, headers in refused.items():
            answer = await web.post(f"{url}/mcp", headers=headers, content=b"{}")
            assert answer.status_code == status
            assert "s3cret" not in answer.text
        answer = await web.post(f"{url}/mcp", headers=ACCEPT, content=b"{}")
        assert answer.headers["www-authenticate"] == "Bearer"
        assert (await web.get(f"{url}/other", headers=good)).status_code == 404
        too_large = await web.post(f"{url}/mcp", headers=good, content=b" " * (17 * 2**20))
        assert too_large.status_code == 413
        for era in ERAS:
            async with httpx2.AsyncClient(headers={"authorization": "Bearer s3cret"}, timeout=DEADLINE) as authorised:
                target = streamable_http_client(f"{url}/mcp", http_client=authorised)
                async with Client(target, mode="legacy" if era == LEGACY else "auto", cache=None) as client:
                    assert await text(client, DOOR) == "The door is open."


async def test_a_request_that_is_cut_off_is_not_a_fault(caplog: pytest.LogCaptureFixture) -> None:
    def blocking(url: str) -> None:
        head = "".join(f"{name}: {value}\r\n" for name, value in ACCEPT.items())
        for length in ("Content-Length: 10", "Transfer-Encoding: chunked"):
            with connect(url) as sock:
                sock.sendall(f"POST /mcp HTTP/1.1\r\nHost: localhost\r\n{head}{length}\r\n\r\n5\r\n{{".encode())
                sock.shutdown(socket.SHUT_WR)
                assert is_closed(sock)

    async with serving(make_server().http_app()) as url:
        await anyio.to_thread.run_sync(blocking, url)
        async with httpx2.AsyncClient(timeout=DEADLINE) as web:
            assert (await web.post(f"{url}/mcp", headers=ACCEPT, content=b"{")).status_code == 400
    assert "Traceback" not in caplog.text


async def test_refused_requests_are_a_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    app = make_server().http_app(token="s3cret")
    async with serving(app) as url, httpx2.AsyncClient(timeout=DEADLINE) as web:
        for _ in range(50):
            assert (await web.post(f"{url}/mcp", headers=ACCEPT, content=b"{}")).status_code == 401
    assert 0 < caplog.text.count("a bearer token is needed") < 50


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"host": "0.0.0.0"}, "refusing to serve 0.0.0.0 without a token"),
        ({"host": "example.com"}, "refusing to serve example.com without a token"),
        ({"host": "0.0.0.0", "token": "t"}, "say by which names 0.0.0.0 is reached"),
        ({"host": "127.0.0.1", "token": ""}, "printable ASCII"),
    ],
)
def test_serving_others_needs_a_token_and_names(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make_server().run_http(**options)


@both_eras
async def test_it_is_mounted_in_another_application(era: str) -> None:
    app = make_server().http_app(path="/")

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with app.running():
            yield

    async with serving(Starlette(routes=[Mount("/tools", app)], lifespan=lifespan)) as url:
        async with connected(f"{url}/tools/", era) as (client, listening), watching(client, listening, DOOR):
            await call(client, "show", path="door", text="shut", priority=10)
            await listening.of(DOOR)
        async with httpx2.AsyncClient(timeout=DEADLINE) as web:
            assert (await web.get(f"{url}/tools/mcp")).status_code == 404
        app.end_streams()


async def test_an_application_whose_lifespan_was_forgotten_says_so(caplog: pytest.LogCaptureFixture) -> None:
    app = make_server().http_app()
    async with serving(Starlette(routes=[Mount("/", app)])) as url, httpx2.AsyncClient(timeout=DEADLINE) as web:
        assert (await web.post(f"{url}/mcp", headers=ACCEPT, content=b"{}")).status_code == 503
    assert "enter running() in the outer lifespan" in caplog.text
    async with app.running():
        with pytest.raises(RuntimeError, match="runs already"):
            async with app.running():
                pass
    async with app.running():
        pass  # and again


# --- sessions of the old era


async def test_a_call_that_its_client_took_back_gets_no_answer() -> None:
    server = make_server()
    async with serving(server.http_app()) as url, httpx2.AsyncClient(timeout=DEADLINE) as web:
        client = Deaf(url, LEGACY)
        await client._initialize(web, DOOR)
        headers = {**ACCEPT, "mcp-session-id": client._session}
        waiting = _message(3, "tools/call", name="wait", arguments={"seconds": 600})
        async with web.stream("POST", f"{url}/mcp", headers=headers, content=waiting) as stream:
            cancel = _message(None, "notifications/cancelled", requestId=3)
            assert (await web.post(f"{url}/mcp", headers=headers, content=cancel)).status_code == 202
            heard = [line async for line in stream.aiter_lines() if line.startswith("data:")]
        assert heard == []
        client.vanish()


async def test_after_a_restart_a_session_is_not_found_and_a_new_one_can_begin() -> None:
    app, client = make_server().http_app(), None
    for _ in range(2):
        async with serving(app) as url, httpx2.AsyncClient(timeout=DEADLINE) as web:
            if client is not None:  # its session was the first server's
                for method in ("POST", "GET", "DELETE"):
                    headers = {**ACCEPT, "mcp-session-id": client._session, "mcp-protocol-version": "2025-11-25"}
                    body = _message(7, "tools/list") if method == "POST" else b""
                    answer = await web.request(method, f"{url}/mcp", headers=headers, content=body)
                    assert answer.status_code == 404
            client = Deaf(url, LEGACY)
            await client._initialize(web, DOOR)
            assert client._session
            client.vanish()


# --- stopping


async def test_it_stops_at_once_however_many_streams_are_open() -> None:
    command = [sys.executable, "-m", "tests.mcp_server.fakes.shop", "http"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: ASYNC220
    try:
        assert process.stdout is not None
        url = (await anyio.to_thread.run_sync(process.stdout.readline)).strip()
        async with AsyncExitStack() as stack:
            for era in (LEGACY, MODERN, LEGACY, MODERN):
                client, listening = await stack.enter_async_context(connected(url, era))
                if era == LEGACY:
                    await subscribe(client, DOOR)
                    await call(client, "show", path="door", text=f"{id(client)}", priority=10)
                    await listening.of(DOOR)  # so its stream is open
                else:
                    stream = client.listen(resources_list_changed=True)
                    await stack.enter_async_context(stream)
            process.send_signal(signal.SIGTERM)
            with anyio.fail_after(DEADLINE):
                await anyio.to_thread.run_sync(process.wait)
        assert process.returncode == 0
        assert process.stderr is not None
        errors = process.stderr.read()
        assert "Traceback" not in errors and "timeout graceful" not in errors, errors
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


# --- clients that do not read


class Deaf:
    """A client that opens a stream of changes and reads nothing of it."""

    def __init__(self, url: str, era: str) -> None:
        self._era = era
        self._port = int(url.rpartition(":")[2])
        self._session = ""
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)

    async def open(self, web: httpx2.AsyncClient, uri: str) -> None:
        if self._era == LEGACY:
            await self._initialize(web, uri)
            head = [f"GET /mcp HTTP/1.1\r\naccept: text/event-stream\r\nmcp-session-id: {self._session}"]
            body = b""
        else:
            meta = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": ABOUT,
            }
            wanted = {"resourcesListChanged": True, "resourceSubscriptions": [uri]}
            body = _message(1, "subscriptions/listen", _meta=meta, notifications=wanted)
            head = ["POST /mcp HTTP/1.1", f"mcp-protocol-version: {MODERN}\r\nmcp-method: subscriptions/listen"]
            head += [f"{name}: {value}" for name, value in ACCEPT.items()]
        head += [f"host: 127.0.0.1:{self._port}", f"content-length: {len(body)}", "", ""]
        self._socket.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(self._socket, ("127.0.0.1", self._port))
        await loop.sock_sendall(self._socket, "\r\n".join(head).encode() + body)
        with anyio.fail_after(DEADLINE):
            started = await loop.sock_recv(self._socket, 16)
        assert started.startswith(b"HTTP/1.1 200"), started + await loop.sock_recv(self._socket, 1000)

    async def _initialize(self, web: httpx2.AsyncClient, uri: str) -> None:
        url = f"http://127.0.0.1:{self._port}/mcp"
        hello = _message(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=ABOUT)
        answer = await web.post(url, headers=ACCEPT, content=hello)
        self._session = answer.headers["mcp-session-id"]
        headers = {**ACCEPT, "mcp-session-id": self._session}
        for message in (_message(None, "notifications/initialized"), _message(2, "resources/subscribe", uri=uri)):
            await web.post(url, headers=headers, content=message)

    async def hear(self, until: bytes) -> bytes:
        """Read at last, up to these bytes."""
        loop, heard = asyncio.get_running_loop(), b""
        with anyio.fail_after(DEADLINE):
            while until not in heard:
                heard += await loop.sock_recv(self._socket, 2**16)
        return heard

    def vanish(self) -> None:
        if self._socket.fileno() == -1:
            return
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # without a goodbye
        self._socket.close()


def _message(number: int | None, method: str, **params: Any) -> bytes:
    fields: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(fields if number is None else fields | {"id": number}).encode()


LONG = "d" * 6000
BIG = f"window://com.example.shop/{LONG}"
"""A window whose name alone fills the buffers between server and client after a few changes."""


async def test_fifty_clients_of_which_ten_stop_reading_and_the_others_hear_of_every_change() -> None:
    server = make_server()
    server.windows[LONG] = Window("0")
    rounds = 40
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(serving(server.http_app(), send_buffer=4096))
        web = await stack.enter_async_context(httpx2.AsyncClient(timeout=DEADLINE))
        deaf = [Deaf(url, era) for era in ERAS for _ in range(5)]
        for each in deaf:
            await each.open(web, BIG)
            stack.callback(each.vanish)
        readers: list[Listening] = []
        for number in range(40):
            client, listening = await stack.enter_async_context(connected(f"{url}/mcp", ERAS[number % 2]))
            await stack.enter_async_context(watching(client, listening, BIG))
            readers.append(listening)
        assert len(server.changes) == 50
        for number in range(rounds):
            server.windows[LONG] = Window(f"{number + 1}")
            for listening in readers:
                await listening.of(BIG)
        server.windows["last"] = Window("x")
        for listening in readers:
            await listening.of("resources")
        # They were held up, and when they read again they hear all there is to hear.
        for each in deaf:
            heard = await each.hear(b"notifications/resources/list_changed")
            assert 1 <= heard.count(b"notifications/resources/updated") < rounds
        # A few of them vanish: of a listen stream nothing is kept, a session may come back.
        for each in deaf:
            each.vanish()
        await eventually(lambda: _is(len(server.changes) == 45))


async def test_a_client_that_reads_nothing_for_too_long_is_let_go(caplog: pytest.LogCaptureFixture) -> None:
    server = make_server()
    server.windows[LONG] = Window("0")
    app = HttpApp(server, stall_seconds=0.5)
    async with serving(app, send_buffer=4096) as url, httpx2.AsyncClient(timeout=DEADLINE) as web:
        deaf = [Deaf(url, era) for era in ERAS]
        for each in deaf:
            await each.open(web, BIG)
        texts = iter(range(10**6))

        async def let_go() -> bool:
            server.windows[LONG] = Window(f"{next(texts)}")
            return caplog.text.count("a client has read nothing for 0.5 s") == 2

        await eventually(let_go)
        await eventually(lambda: _is(len(server.changes) == 1))  # the older session may open another stream
        for each in deaf:
            each.vanish()
    assert "Traceback" not in caplog.text


async def _is(what: bool) -> bool:
    return what


async def test_what_changes_while_an_older_client_has_no_stream_waits_for_the_next() -> None:
    server = make_server()
    async with serving(server.http_app()) as url, httpx2.AsyncClient(timeout=DEADLINE) as web:
        for _ in range(2):
            client = Deaf(url, LEGACY)
            await client._initialize(web, DOOR)
            server.windows["door"] = Window(f"{id(client)}", priority=10)
            await asyncio.sleep(0.1)  # nobody listens, so nothing can be waited for
            headers = {"accept": "text/event-stream", "mcp-session-id": client._session}
            async with web.stream("GET", f"{url}/mcp", headers=headers) as stream:
                with anyio.fail_after(DEADLINE):
                    async for line in stream.aiter_lines():
                        if "notifications/resources/updated" in line:
                            break
            client.vanish()


@pytest.mark.parametrize("is_ended", [True, False])
async def test_a_stream_is_ended_once(is_ended: bool) -> None:
    """mcp's own end of a stream and a stop may come in the same moment, which no client can bring about."""
    app, sent = HttpApp(ContextServer("s", host="h")), list[Any]()

    class Manager:
        async def handle_request(self, _scope: Any, _receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            if is_ended:
                await send({"type": "http.response.body", "body": b""})
            app.end_streams()
            await anyio.sleep(DEADLINE)

    async def send(message: Any) -> None:
        sent.append(message)

    await app._serve(Manager(), "id", {}, None, send)  # type: ignore[arg-type]
    assert [message["type"] for message in sent].count("http.response.body") == 1


# --- many at once


async def test_many_clients_ask_side_by_side() -> None:
    with http_shop() as url:
        async with AsyncExitStack() as stack:
            clients = [(await stack.enter_async_context(connected(url, era)))[0] for era in ERAS * 5]

            async def work(client: Client, number: int) -> None:
                for _ in range(2):
                    assert await call(client, "add", a=number) == json.dumps({"sum": number + 1}, indent=2)
                    assert await text(client, DOOR) == "The door is open."

            async with anyio.create_task_group() as tasks:
                for client in clients:
                    for number in range(5):
                        tasks.start_soon(work, client, number)


async def test_the_same_server_over_a_pipe_and_http_tells_both() -> None:
    server = ContextServer("s", host="h")
    server.windows["a"] = Window("1")
    async with (
        serving(server.http_app()) as url,
        connected(f"{url}/mcp", MODERN) as (first, one),
        connected(server.mcp, LEGACY) as (second, two),
        watching(first, one, "window://h/a"),
        watching(second, two, "window://h/a"),
    ):
        server.windows["a"] = Window("2")
        await one.of("window://h/a")
        await two.of("window://h/a")

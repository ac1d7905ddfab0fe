"""The console over HTTP: who comes in, what everybody is told, and what is refused."""

import base64
import hashlib
import re
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import anyio.to_thread
import httpx2
import pytest

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.console import Console, ConsoleAddress, ConsoleError
from a2c_smcp.computer.console.limits import CONSOLE_LIMITS
from tests.certificates import self_signed
from tests.computer.console.harness import DEADLINE, Visitor, opened
from tests.computer.fakes.computers import server
from tests.server.raw import connect, is_closed

READS = [
    *("feed", "tools", "desktop", "finder", "document", "page", "element", "inputs", "log", "result", "decision"),
    *("history", "export", "alive", "devices", "home", "entry", "clashes", "shared"),
]
WRITES = [
    *("answer", "refuse-all", "ask-again", "call", "cancel", "server", "input", "remember", "revoke", "link"),
    *("check-servers", "save-servers", "cancel-save", "remove-server", "join-office", "leave-office"),
]


@pytest.fixture
async def visitor() -> AsyncIterator[Visitor]:
    async with opened() as (_, console), Visitor(console.link()) as visitor:
        yield visitor


# --- the way in


async def test_a_link_works_once(visitor: Visitor) -> None:
    await visitor.enter()
    assert (await visitor.get("/api/tools")).status_code == 200
    again = await visitor.post("/api/session", {"token": visitor.token})
    assert again.status_code == 403 and "used already" in again.json()["error"]["message"]


@pytest.mark.parametrize("token", ["", "x", "\ud800", "a" * 32])
async def test_a_token_that_is_none_of_ours_opens_nothing(visitor: Visitor, token: str) -> None:
    assert (await visitor.post("/api/session", {"token": token})).status_code == 403


@pytest.mark.parametrize("body", [{}, {"token": 1}, [], "x", None])
async def test_what_is_no_token_at_all_is_a_bad_request(visitor: Visitor, body: object) -> None:
    assert (await visitor.post("/api/session", body)).status_code == 400


async def test_without_a_session_nothing_is_answered(visitor: Visitor) -> None:
    for key in ("", "x", visitor.token):
        for path in READS:
            assert (await visitor.get(f"/api/{path}", x_a2c_session=key)).status_code == 401
        for path in WRITES:
            assert (await visitor.post(f"/api/{path}", {}, x_a2c_session=key)).status_code == 401


async def test_the_key_counts_in_its_header_only(visitor: Visitor) -> None:
    await visitor.enter()
    key = visitor.headers.pop("x-a2c-session")
    assert (await visitor.get(f"/api/tools?x-a2c-session={key}")).status_code == 401
    assert (await visitor.get("/api/tools", cookie=f"x-a2c-session={key}")).status_code == 401
    assert (await visitor.get("/api/tools", authorization=f"Bearer {key}")).status_code == 401


# --- other pages in the same browser


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:1", "null"])
async def test_a_page_of_another_origin_gets_nothing_even_with_a_key(visitor: Visitor, origin: str) -> None:
    await visitor.enter()
    for path in READS:
        answer = await visitor.get(f"/api/{path}", origin=origin)
        assert answer.status_code == 403 and "access-control-allow-origin" not in answer.headers
    for path in WRITES:
        assert (await visitor.post(f"/api/{path}", {}, origin=origin)).status_code == 403


async def test_a_name_that_resolves_to_this_machine_is_not_the_consoles(visitor: Visitor) -> None:
    await visitor.enter()
    for path in ("/", "/js/main.js", "/api/tools"):
        assert (await visitor.get(path, host="evil.example")).status_code == 421


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
async def test_a_form_cannot_be_posted_here(visitor: Visitor, kind: str) -> None:
    await visitor.enter()
    answer = await visitor.post("/api/call", {"tool": "x", "arguments": {}}, content_type=kind)
    assert answer.status_code == 400


async def test_a_page_of_another_origin_may_not_ask_for_leave_either(visitor: Visitor) -> None:
    async with httpx2.AsyncClient(base_url=visitor.base, timeout=DEADLINE, trust_env=False) as client:
        answer = await client.options(
            "/api/call", headers={"origin": "http://evil.example", "access-control-request-method": "POST"}
        )
    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]


# --- what every answer says


@pytest.mark.parametrize("path", ["/", "/js/main.js", "/nowhere", "/api/tools", "/api/nowhere", "/../app.py"])
async def test_every_answer_carries_the_policy_and_sets_no_cookie(visitor: Visitor, path: str) -> None:
    for headers in ({}, {"origin": "http://evil.example"}, {"host": "evil.example"}):
        answer = await visitor.get(path, **headers)
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "set-cookie" not in answer.headers and "server" not in answer.headers


async def test_the_one_inline_script_is_the_one_that_the_policy_names(visitor: Visitor) -> None:
    answer = await visitor.get("/")
    [script] = re.findall(r"<script(?![^>]*src=)[^>]*>(.*?)</script>", answer.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'self' 'sha256-{digest}';" in answer.headers["content-security-policy"]
    assert "style=" not in answer.text and "onclick" not in answer.text


async def test_only_the_files_of_the_page_are_there(visitor: Visitor) -> None:
    assert (await visitor.get("/vendor/preact.mjs")).headers["content-type"].startswith("text/javascript")
    for path in ("/app.py", "/..%2fapp.py", "/vendor/README.md", "/vendor", "/js/"):
        assert (await visitor.get(path)).status_code == 404
    assert (await visitor.post("/", {})).status_code == 405


# --- bounds


async def test_a_body_that_is_too_large_or_no_json_is_refused(visitor: Visitor) -> None:
    await visitor.enter()
    assert (await visitor.post("/api/call", b"x" * (CONSOLE_LIMITS.body_bytes + 1))).status_code == 413
    for body in (b"", b"{", b"[" * 200_000, b"\xff", b'{"tool": NaN}'):
        assert (await visitor.post("/api/call", body)).status_code == 400
    assert (await visitor.post("/api/session", b"x" * 5000)).status_code == 413


async def test_a_body_that_is_cut_off_is_not_a_fault(visitor: Visitor, caplog: pytest.LogCaptureFixture) -> None:
    head = f"POST /api/session HTTP/1.1\r\nHost: {visitor.base[7:]}\r\nOrigin: {visitor.base}\r\n"
    head += "Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{"

    def blocking() -> None:
        for _ in range(5):
            with connect(visitor.base) as sock:
                sock.sendall(head.encode())
                sock.shutdown(socket.SHUT_WR)
                assert is_closed(sock)

    await anyio.to_thread.run_sync(blocking)
    await visitor.enter()  # by now the requests before it have ended, too
    assert "Traceback" not in caplog.text and "ASGI" not in caplog.text


async def test_only_so_many_pages_follow_at_a_time(visitor: Visitor) -> None:
    await visitor.enter()
    async with anyio.create_task_group() as tasks:
        for _ in range(CONSOLE_LIMITS.streams):
            await tasks.start(_follow, visitor)
        refused = await visitor.get("/api/feed")
        assert refused.status_code == 429
        tasks.cancel_scope.cancel()
    with anyio.fail_after(DEADLINE):
        while await _status(visitor) == 429:  # noqa: ASYNC110 - the end of a stream is seen at the other side
            await anyio.sleep(0.1)


async def _follow(visitor: Visitor, *, task_status: anyio.abc.TaskStatus[None]) -> None:
    async with visitor.feed() as messages:
        assert (await anext(messages))["kind"] == "snapshot"
        task_status.started()
        await anyio.sleep_forever()


async def _status(visitor: Visitor) -> int:
    try:
        async with visitor.feed():
            return 200
    except AssertionError:
        return 429


# --- beginning and end


async def test_a_stop_does_not_wait_for_the_pages_that_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    # After this time streams are cut, which is an error for those who read them: on a busy machine, too early.
    monkeypatch.setattr("a2c_smcp.computer.console.serving._CLOSE_SECONDS", DEADLINE)
    computer = Computer("pc")
    async with anyio.create_task_group() as outer:
        console = Console(computer, ConsoleAddress("127.0.0.1", 0))
        async with anyio.create_task_group() as tasks:
            await tasks.start(console.run)
            visitor = await Visitor(console.link()).enter()
            await outer.start(_until_the_end, visitor)
            assert computer.decisions.answerers == ("browser",)
            tasks.cancel_scope.cancel()
    assert computer.decisions.answerers == ()
    with pytest.raises(ConsoleError):
        console.link()


async def _until_the_end(visitor: Visitor, *, task_status: anyio.abc.TaskStatus[None]) -> None:
    async with visitor, visitor.feed() as messages:
        await anext(messages)
        task_status.started()
        async for _ in messages:
            pass


async def test_a_port_that_is_taken_is_said() -> None:
    async with opened() as (computer, console):
        port = int(console.link().partition("#")[0].rstrip("/").rpartition(":")[2])
        with pytest.raises(ConsoleError, match="cannot listen"):
            await Console(computer, ConsoleAddress("127.0.0.1", port)).run()


def test_a_host_that_others_reach_needs_tls() -> None:
    with pytest.raises(ConsoleError, match="--console-cert"):
        Console(Computer("pc"), ConsoleAddress("box.example", 8000))


async def test_with_a_certificate_it_speaks_tls(tmp_path: Path) -> None:
    certificate = self_signed(tmp_path, "127.0.0.1")
    console = Console(
        Computer("pc"), ConsoleAddress("127.0.0.1", 0), cert=Path(certificate.cert), key=Path(certificate.key)
    )
    async with anyio.create_task_group() as tasks:
        await tasks.start(console.run)
        link = console.link()
        assert link.startswith("https://127.0.0.1:")
        trusting = _trusting(certificate.cert)
        async with httpx2.AsyncClient(verify=trusting, timeout=DEADLINE, trust_env=False) as client:
            assert (await client.get(link)).status_code == 200
        tasks.cancel_scope.cancel()


async def test_a_certificate_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("none")
    console = Console(Computer("pc"), ConsoleAddress("127.0.0.1", 0), cert=tmp_path / "cert.pem")
    with pytest.raises(ConsoleError, match="certificate"):
        await console.run()


def _trusting(cert: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=cert)


def test_it_is_imported_only_when_asked_for() -> None:
    code = (
        "import sys, a2c_smcp.cli, a2c_smcp.computer.cli.repl, a2c_smcp.computer.cli.headless, a2c_smcp.demo.tour;"
        "print([name for name in sys.modules if name.startswith('a2c_smcp.computer.console')])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.stdout.strip() == "[]"


# --- the API over the computer


async def test_servers_tools_windows_and_logs_are_what_the_computer_has() -> None:
    async with opened(server("one", prefixed=False, resources=1)) as (computer, console), Visitor(console.link()) as v:
        await v.enter()
        tools = (await v.get("/api/tools")).json()["tools"]
        assert {tool["server"] for tool in tools} == {"one"}
        assert [tool["name"] for tool in tools] == [tool["name"] for tool in computer.get_available_tools()]
        with anyio.fail_after(DEADLINE):
            while not await computer.get_desktop():  # noqa: ASYNC110 - its list is not waited for very long
                await anyio.sleep(0.02)
        windows = (await v.get("/api/desktop")).json()["windows"]
        assert [window["uri"] for window in windows] == [
            each.partition("\n\n")[0] for each in await computer.get_desktop()
        ]
        assert "ready" in (await v.get("/api/log?server=one")).json()["lines"]
        assert (await v.get("/api/log?server=two")).status_code == 404
        assert (await v.get("/api/log")).status_code == 400
        assert (await v.post("/api/server", {"server": "one", "action": "stop"})).status_code == 200
        assert computer.statuses[0].state.value == "stopped"
        assert (await v.post("/api/server", {"server": "one", "action": "explode"})).status_code == 400
        assert (await v.post("/api/server", {"server": "two", "action": "start"})).status_code == 404

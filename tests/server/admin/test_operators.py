"""What operators see and do at a running server, and who is kept out."""

import asyncio
import http.client
import json
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pexpect
import pytest
from playwright.async_api import Browser

from a2c_smcp.errors import (
    BadRequestError,
    ConnectionLostError,
    NotFoundError,
    UnauthorizedError,
)
from a2c_smcp.link.interface import LinkOptions, Membership
from a2c_smcp.link.office_link import OfficeLink
from a2c_smcp.server.admin.client import AdminClient
from a2c_smcp.server.admin.here import Controls, ProcessAdmin
from a2c_smcp.server.admin.listening import local_door
from a2c_smcp.server.admin.setup import AdminOptions, AdminProblem
from a2c_smcp.server.clients import Client
from a2c_smcp.server.key_sources import KeySources
from a2c_smcp.server.mounted import MountedLine
from a2c_smcp.server.offices import Grant
from a2c_smcp.server.session_record import SessionRecord
from a2c_smcp.server.switchboard import Switchboard
from tests.forked import A2C, shared
from tests.server.admin.servers import ADMIN_KEY, Attended, attended
from tests.server.conftest import MakePeer
from tests.server.harness import Peer, eventually

KEY = {"x-api-key": "key-of-everybody"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attended]:
    folder = tmp_path_factory.mktemp("admin")
    with attended(folder, KeySources(("key-of-everybody", "key-to-be-revoked"))) as running:
        yield running


async def asked(client: AdminClient, operation: str, **query: Any) -> dict[str, Any]:
    return await asyncio.to_thread(lambda: client.get(operation, **query))


async def told(client: AdminClient, operation: str, **body: Any) -> dict[str, Any]:
    return await asyncio.to_thread(lambda: client.post(operation, **body))


async def joined(make_peer: MakePeer, server: Any, role: str, name: str, office: str, **options: Any) -> Peer:
    peer = await make_peer(server, **{"headers": KEY, **options})
    reply = await peer.call("server:join_office", {"role": role, "name": name, "office_id": office})
    assert tuple(reply) == (True, None)
    return peer


async def test_members_offices_and_the_top_show_who_is_there_and_what_runs(
    server: Attended, make_peer: MakePeer, office: str
) -> None:
    computer = await joined(make_peer, server, "computer", "laptop", office)
    computer.answer("client:tool_call", lambda _: {"content": [], "isError": False})
    agent = await joined(make_peer, server, "agent", "smith", office)
    call = {
        "agent": "smith",
        "req_id": "1",
        "computer": "laptop",
        "tool_name": "say\x1b[2J",
        "params": {},
        "timeout": 20,
    }
    assert "error" not in await agent.call("client:tool_call", call)
    page = await asked(server.local, "members", office=office)
    assert [(row["name"], row["role"], row["calls"], row["key"]) for row in page["members"]] == [
        ("smith", "agent", 1, "api-key"),
        ("laptop", "computer", 1, "api-key"),
    ]
    [row] = (await asked(server.port, "members", office=office, name="laptop"))["members"]
    assert row["address"] == "127.0.0.1" and row["received"] > 0 and row["sent"] > 0
    assert abs(row["since"] - time.time()) < 60
    offices = {row["office"]: row for row in (await asked(server.local, "offices"))["offices"]}
    assert (offices[office]["agent"], offices[office]["computers"], offices[office]["calls"]) == ("smith", 1, 1)
    top = await asked(server.local, "top")
    [tool] = [row for row in top["tools"] if row["office"] == office]
    assert tool["tool"] == "say\\u001b[2J"  # a name that a peer chose cannot act on a terminal
    assert top["processes"][0]["ready"] == "ready"


async def test_our_own_clients_say_their_version(server: Attended, office: str) -> None:
    from a2c_smcp import __version__

    async with OfficeLink(LinkOptions(server.url, api_key="key-of-everybody"), {}) as link:
        await link.join(Membership("computer", "c", office))
        [row] = (await asked(server.local, "members", office=office))["members"]
    assert row["version"] == __version__


async def test_a_kicked_member_is_gone_and_its_office_hears_it(
    server: Attended, make_peer: MakePeer, office: str
) -> None:
    agent = await joined(make_peer, server, "agent", "same", office)
    computer = await joined(make_peer, server, "computer", "same", office)
    with pytest.raises(BadRequestError, match="2 sessions"):
        await told(server.local, "kick", target=f"same/{office}")
    [row] = [
        row for row in (await asked(server.local, "members", office=office))["members"] if row["role"] == "computer"
    ]
    answer = await told(server.local, "kick", target=row["session"])
    assert answer["kicked"]["name"] == "same"
    await eventually(lambda: not computer.connected)
    await eventually(lambda: ("notify:leave_office", {"office_id": office, "computer": "same"}) in agent.received)
    with pytest.raises(NotFoundError):
        await told(server.local, "kick", target=row["session"])


async def test_a_revoked_key_ends_its_sessions_and_lets_nobody_in(
    server: Attended, make_peer: MakePeer, office: str
) -> None:
    revoked = {"headers": {"x-api-key": "key-to-be-revoked"}}
    ends = await joined(make_peer, server, "computer", "ends", office, **revoked)
    stays = await joined(make_peer, server, "computer", "stays", office)
    keys = (await asked(server.local, "keys"))["keys"]
    text = json.dumps(keys)
    assert "key-of" not in text and "key-to" not in text
    [row] = (await asked(server.local, "members", office=office, name="ends"))["members"]
    answer = await told(server.local, "revoke", key=row["fingerprint"])
    assert answer["revoked"] == [row["fingerprint"]]
    await eventually(lambda: not ends.connected)
    assert stays.connected
    with pytest.raises(UnauthorizedError):
        async with OfficeLink(LinkOptions(server.url, api_key="key-to-be-revoked"), {}):
            pass
    states = {row["fingerprint"]: row["state"] for row in (await asked(server.local, "keys"))["keys"]}
    assert sorted(states.values()) == ["revoked", "valid"]


# --- the live view and the page


def test_the_live_view_at_a_terminal_ends_with_q(server: Attended) -> None:
    where = ["--socket", str(server.local.socket)]
    environment = {**os.environ, "TERM": "xterm"}
    terminal = pexpect.spawn(
        A2C, ["server", "admin", "top", *where], timeout=60, dimensions=(40, 160), env=environment, encoding="utf-8"
    )
    try:
        terminal.expect("Server processes")
        terminal.expect("Longest queues")
        terminal.expect("Server processes")  # it looks again
        terminal.send("q")
        terminal.expect(pexpect.EOF)
        terminal.wait()
    finally:
        terminal.close(force=True)
    assert terminal.exitstatus == 0


async def test_the_top_in_a_pipe_is_printed_once(server: Attended, make_peer: MakePeer, office: str) -> None:
    computer = await joined(make_peer, server, "computer", "laptop", office)
    computer.answer("client:tool_call", lambda _: {"content": [], "isError": False})
    agent = await joined(make_peer, server, "agent", "smith", office)
    call = {
        "agent": "smith",
        "req_id": "1",
        "computer": "laptop",
        "tool_name": "\x1b]0;x\x07",
        "params": {},
        "timeout": 20,
    }
    await agent.call("client:tool_call", call)
    printed = await asyncio.to_thread(run, "top", "--socket", str(server.local.socket))
    assert printed.returncode == 0, printed.stderr
    assert "Slowest tools:" in printed.stdout and office in printed.stdout
    assert "\x1b" not in printed.stdout and "\x07" not in printed.stdout


async def test_the_page_shows_what_the_command_shows_and_changes_nothing(
    server: Attended, make_peer: MakePeer, office: str, browser: Browser
) -> None:
    await joined(make_peer, server, "computer", "<img src=x onerror=alert(1)>", office)
    page = await browser.new_page()
    problems: list[str] = []
    asked_for: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: asked_for.append(f"{request.method} {urlsplit(request.url).path}"))
    try:
        await page.goto(f"{server.port.url}/admin")
        await page.fill("#key", "a-wrong-key-of-somebody")
        await page.click("button")
        await page.wait_for_selector("#state.bad:has-text('admin key')", timeout=30_000)
        await page.fill("#key", ADMIN_KEY)
        await page.click("button")
        await page.wait_for_selector(f"td:has-text('{office}')", timeout=30_000)
        text = await page.inner_text("main")
        assert "<img src=x onerror=alert(1)>" in text and "Server processes" in text
        assert await page.query_selector("main img") is None
        assert (
            await page.evaluate("document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)")
            == "{}{}"
        )
        await page.wait_for_function("document.querySelector('#state').textContent.startsWith('as of')")
    finally:
        await page.close()
    assert not problems
    assert {each.partition(" ")[0] for each in asked_for} == {"GET"}
    assert set(asked_for) <= {
        "GET /admin",
        "GET /admin/admin.css",
        "GET /admin/admin.js",
        "GET /admin/api/overview",
        "GET /favicon.ico",
    }


# --- who is kept out


def raw(server: Attended, path: str, method: str = "GET", **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
    address = urlsplit(server.port.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


async def test_a_web_page_gets_nothing_even_with_the_key(server: Attended) -> None:
    path, key = "/admin/api/members", {"x_a2c_admin_key": ADMIN_KEY}
    assert (await asyncio.to_thread(raw, server, path, **key))[0] == 200
    for headers, status in (
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "http://127.0.0.1:9"}, 403),
        ({"host": "evil.example"}, 421),
        ({"sec_fetch_site": "cross-site"}, 403),
    ):
        assert (await asyncio.to_thread(lambda given: raw(server, path, **key, **given), headers))[0] == status
    # A form or a picture of another site sends no Origin, or no JSON.
    status, headers_sent, _ = await asyncio.to_thread(lambda: raw(server, "/admin/api/drain", "POST", **key))
    assert status == 403
    assert "default-src 'none'" in headers_sent["content-security-policy"]
    assert "access-control-allow-origin" not in headers_sent


async def test_a_stranger_at_the_port_is_slowed_and_costs_nobody_else_anything(tmp_path: Path) -> None:
    with attended(tmp_path, KeySources(("some-key",))) as fresh:
        stranger = AdminClient(url=fresh.port.url, key="wrong")

        async def attempt() -> float:
            began = time.monotonic()
            with pytest.raises(UnauthorizedError):
                await asked(stranger, "members")
            return time.monotonic() - began

        for _ in range(3):
            await attempt()
        attempts = [asyncio.create_task(attempt()) for _ in range(2)]
        assert (await asked(fresh.port, "processes"))["processes"]  # the right key comes in meanwhile
        assert not all(task.done() for task in attempts)
        assert max(await asyncio.gather(*attempts)) > 1  # each wrong key after the third costs a second


async def test_nonsense_is_refused_with_its_reason(server: Attended) -> None:
    for operation, query in (("members", {"limit": "0"}), ("members", {"after": "[1]"}), ("members", {"limit": "x"})):
        with pytest.raises(BadRequestError):
            await asked(server.local, operation, **query)
    with pytest.raises(BadRequestError):
        await told(server.local, "kick")
    with pytest.raises(NotFoundError):
        await asked(server.local, "secrets")


async def test_the_local_socket_is_for_its_owner_alone_and_is_not_taken_from_a_living_server(
    server: Attended, tmp_path: Path
) -> None:
    path = server.local.socket
    assert path is not None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError, match="another server"):
        local_door(path, lambda: pytest.fail("not served"))
    file = tmp_path / "precious"
    file.write_text("data")
    with pytest.raises(FileExistsError, match="not a socket"):
        local_door(file, lambda: pytest.fail("not served"))
    with pytest.raises(ConnectionLostError):
        await asked(AdminClient(socket=tmp_path / "nobody.sock"), "members")


@pytest.mark.parametrize(
    "options",
    [
        AdminOptions(host="127.0.0.1"),
        AdminOptions(host="127.0.0.1", key="short"),
        AdminOptions(host="0.0.0.0", key=ADMIN_KEY),
        AdminOptions(key=ADMIN_KEY),
    ],
)
def test_a_port_that_is_not_safe_is_refused(options: AdminOptions) -> None:
    with pytest.raises(AdminProblem):
        options.check(tls=False)


# --- many


async def test_ten_thousand_members_come_in_pages_and_hold_nobody_up() -> None:
    switchboard = Switchboard(None)  # type: ignore[arg-type]
    for number in range(10_000):
        record = SessionRecord(Grant(), "127.0.0.1", "", 0.0, f"office-{number % 100:03}", "computer", f"c{number:05}")
        line = MountedLine(str(number), "127.0.0.1", switchboard.admission)
        switchboard._clients[str(number)] = Client(line, None, record)
    admin = ProcessAdmin(switchboard, Controls())
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    seen: list[str] = []
    page: dict[str, Any] = {"next": None}
    while not seen or page["next"] is not None:
        before = turns
        page = await admin.do("members", {"limit": 1000, "after": page["next"]})
        assert len(page["members"]) <= 500
        assert turns - before >= 20
        seen += [row["session"] for row in page["members"]]
    counting.cancel()
    assert len(seen) == len(set(seen)) == 10_000


# --- the command


def run(*args: str) -> Any:
    return shared().run_text("server", "admin", *args, env={"COLUMNS": "300", "PATH": "/usr/bin:/bin"})


async def test_the_command_prints_tables_and_json(server: Attended, make_peer: MakePeer, office: str) -> None:
    await joined(make_peer, server, "computer", "laptop", office)
    where = ("--socket", str(server.local.socket))
    table = await asyncio.to_thread(run, "members", *where, "--office", office)
    assert table.returncode == 0, table.stderr
    head, row = table.stdout.splitlines()
    assert head.startswith("NAME") and row.startswith("laptop ")
    page = await asyncio.to_thread(run, "members", *where, "--office", office, "--json")
    assert [row["name"] for row in json.loads(page.stdout)["members"]] == ["laptop"]
    refused = await asyncio.to_thread(run, "kick", *where, "nobody/nowhere")
    assert refused.returncode == 3 and "404" in refused.stderr

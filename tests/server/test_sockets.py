"""What a connection of either server may do, whatever web server is under it."""

import json
import threading
import time
import urllib.request
from collections.abc import Callable

import anyio.to_thread
import pytest

from a2c_smcp.server import (
    Limits,
    OpenAuthentication,
    SyncAPIKeyAuthentication,
    SyncOpenAuthentication,
)
from a2c_smcp.server.registry import Counts
from tests.server.conftest import MakePeer
from tests.server.harness import Running, async_server, eventually, heard, sync_server
from tests.server.raw import (
    BINARY,
    connect,
    frame,
    is_closed,
    joined,
    receive_until,
    send_text,
)


@pytest.mark.parametrize("bad", [b"x", b"42/smcp,{", b"44/smcp,", b"\x00"])
async def test_ten_frames_that_do_not_decode_close_the_connection_and_nine_do_not(
    own_server: Running, bad: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    one = frame(bad, BINARY if bad == b"\x00" else 1)

    def nine() -> None:
        with joined(own_server.url) as sock:
            sock.sendall(one * 9)
            send_text(sock, '42/smcp,7["client:dance",{}]')
            receive_until(sock, b"43/smcp,7", b"400")

    def ten() -> None:
        with joined(own_server.url) as sock:
            sock.sendall(one * 10)
            assert is_closed(sock)

    await anyio.to_thread.run_sync(nine)
    await anyio.to_thread.run_sync(ten)
    assert "Traceback" not in caplog.text


async def test_a_pong_that_carries_json_is_a_frame_that_does_not_decode() -> None:
    def blocking(server: Running) -> None:
        with joined(server.url) as sock:
            send_text(sock, "3[" + "[]," * 1000 + "[]]")
            send_text(sock, '42/smcp,7["client:dance",{}]')
            receive_until(sock, b"43/smcp,7")
            (connection,) = server.sio.connections.values()
            assert connection.session.bad_packets == 1

    with async_server(OpenAuthentication()) as server:
        await anyio.to_thread.run_sync(blocking, server)


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


async def test_whoever_goes_before_python_socketio_has_noted_it_leaves_nothing() -> None:
    def blocking(server: Running) -> None:
        go, reached = threading.Event(), threading.Event()
        note = server.sio.manager.connect

        def note_late(sid: str, namespace: str) -> None:
            if not reached.is_set():
                reached.set()
                assert go.wait(20)
            note(sid, namespace)

        server.sio.manager.connect = note_late
        sid = ask(server, "GET", "").split('"sid":"')[1].split('"')[0]
        connecting = threading.Thread(target=ask, args=(server, "POST", sid, '40/smcp,{"token":"right"}'))
        connecting.start()
        assert reached.wait(20)
        assert server.namespace.registry.counts().sessions == 1
        ask(server, "POST", sid, "1")
        go.set()
        connecting.join(20)
        wait_until(lambda: server.namespace.registry.counts() == Counts(0, 0, 0, 0))

    with sync_server(SyncAPIKeyAuthentication(["right"])) as server:
        await anyio.to_thread.run_sync(blocking, server)


def ask(server: Running, method: str, sid: str, body: str = "") -> str:
    """One request of a client that polls."""
    url = f"{server.url}/socket.io/?EIO=4&transport=polling" + (f"&sid={sid}" if sid else "")
    request = urllib.request.Request(url, data=body.encode() or None, method=method)
    with urllib.request.urlopen(request, timeout=20) as reply:
        return str(reply.read().decode())


async def test_one_connection_gets_no_more_lines_in_the_log_by_taking_one_session_after_another(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def blocking(url: str) -> None:
        with joined(url) as sock:
            for _ in range(50):
                for n in range(20):
                    send_text(sock, f'42/smcp,{n}["client:dance",{{}}]')
                receive_until(sock, b"43/smcp,19")
                send_text(sock, "41/smcp,")
                send_text(sock, "40/smcp,")
                receive_until(sock, b"40/smcp")

    began = time.monotonic()
    with async_server(OpenAuthentication()) as server:
        await anyio.to_thread.run_sync(blocking, server.url)
    lines = sum("refused client:dance" in line for line in caplog.messages)
    # 20 a second about the connection, and as many about sessions that have ended.
    assert 20 <= lines <= 40 * (time.monotonic() - began + 2)


async def test_a_poll_is_answered_uncompressed_whatever_its_client_offers(
    server: Running, office: str, make_peer: MakePeer
) -> None:
    """One MiB takes seconds to compress, and nobody else is served meanwhile."""
    agent = await make_peer(server)
    await agent.call("server:join_office", {"role": "agent", "name": "a", "office_id": office})

    def enter() -> str:
        sid = ask(server, "GET", "").split('"sid":"')[1].split('"')[0]
        ask(server, "POST", sid, "40/smcp,")
        assert "40/smcp" in ask(server, "GET", sid)
        request = json.dumps({"role": "computer", "name": "c", "office_id": office})
        ask(server, "POST", sid, f'42/smcp,7["server:join_office",{request}]')
        return sid

    sid = await anyio.to_thread.run_sync(enter)
    await eventually(lambda: heard(agent, "notify:enter_office"))
    await agent.call("server:tool_call_cancel", {"agent": "x" * 900, "req_id": "x" * 900})

    def poll() -> None:
        url = f"{server.url}/socket.io/?EIO=4&transport=polling&sid={sid}"
        text = ""
        while "x" * 900 not in text:
            request = urllib.request.Request(url, headers={"Accept-Encoding": "gzip, deflate"})
            with urllib.request.urlopen(request, timeout=20) as reply:
                assert reply.headers["Content-Encoding"] is None
                text = reply.read().decode()

    await anyio.to_thread.run_sync(poll)


@pytest.mark.parametrize("gives_up", ["it closes", "it asks again"])
async def test_a_poll_that_its_client_has_given_up_takes_no_packet(open_async_server: Running, gives_up: str) -> None:
    server = open_async_server

    def blocking() -> None:
        sid = ask(server, "GET", "").split('"sid":"')[1].split('"')[0]
        ask(server, "POST", sid, "40/smcp,")
        assert "40/smcp" in ask(server, "GET", sid)
        connection = server.sio.connections[sid]
        poll = f"GET /socket.io/?EIO=4&transport=polling&sid={sid} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        with connect(server.url) as first, connect(server.url) as second:
            first.sendall(poll)
            wait_until(lambda: connection._poll is not None)
            if gives_up == "it closes":
                first.close()
                wait_until(lambda: connection._poll is None)
            second.sendall(poll)
            if gives_up == "it asks again":
                receive_until(first, b"\r\n\r\n6")
            wait_until(lambda: connection._poll is not None)
            ask(server, "POST", sid, '42/smcp,7["client:dance",{}]')
            receive_until(second, b"43/smcp,7")

    await anyio.to_thread.run_sync(blocking)


@pytest.mark.parametrize(
    "body",
    ["d=42%2Fsmcp%2C6%5B%22client%3Adance%22%2C%7B%7D%5D", "\x1e".join(["42/smcp,6[]"] * 4097)],
    ids=["a form", "too many packets"],
)
async def test_what_a_post_may_not_hold_is_one_bad_frame_and_not_taken_apart(
    own_server: Running, body: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Engine.IO takes what begins with `d=` for a form, and parses it: seconds for each MiB."""

    def blocking() -> None:
        sid = ask(own_server, "GET", "").split('"sid":"')[1].split('"')[0]
        ask(own_server, "POST", sid, "40/smcp,")
        assert "40/smcp" in ask(own_server, "GET", sid)
        connection = own_server.sio.connections[sid]
        assert ask(own_server, "POST", sid, body) == "ok"
        assert connection.session.bad_packets == 1
        ask(own_server, "POST", sid, '42/smcp,7["client:dance",{}]\x1e42/smcp,8["client:dance",{}]')
        answers = ""
        while "43/smcp,8" not in answers:
            answers += ask(own_server, "GET", sid)
        assert "43/smcp,7" in answers
        assert "43/smcp,6" not in answers

    await anyio.to_thread.run_sync(blocking)
    assert "Traceback" not in caplog.text


async def test_a_threaded_server_counts_connections_per_address(make_peer: MakePeer) -> None:
    with sync_server(SyncOpenAuthentication(), Limits(connections_per_address=2)) as server:
        peers = [await make_peer(server, "async", transport) for transport in ("websocket", "polling")]
        with pytest.raises(Exception, match="namespaces failed to connect"):
            await make_peer(server)
        await peers[0].disconnect()
        await eventually(lambda: server.namespace.registry.counts().sessions == 1)
        addresses = server.namespace.admission.addresses
        await eventually(lambda: addresses._joined.total() == 1 and not addresses._knocked)  # nor the refused one
        await make_peer(server)
        await peers[1].disconnect()  # a polling client takes ten seconds for it when its server has gone

"""What a connection of either server may do, whatever web server is under it."""

import anyio.to_thread
import pytest

from a2c_smcp.server import APIKeyAuthentication, Limits, SyncAPIKeyAuthentication, SyncOpenAuthentication
from tests.server.conftest import MakePeer
from tests.server.harness import Running, async_server, eventually, sync_server
from tests.server.raw import BINARY, frame, is_closed, joined, raw_websocket, receive_until, send_text


@pytest.mark.parametrize("bad", [b"x", b"42/smcp,{", b"44/smcp,", b"\x00"])
async def test_ten_frames_that_do_not_decode_close_the_connection_and_nine_do_not(
    server: Running, bad: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    one = frame(bad, BINARY if bad == b"\x00" else 1)

    def nine() -> None:
        with joined(server.url) as sock:
            sock.sendall(one * 9)
            send_text(sock, '42/smcp,7["client:dance",{}]')
            assert b"400" in receive_until(sock, b"43/smcp,7")

    def ten() -> None:
        with joined(server.url) as sock:
            sock.sendall(one * 10)
            assert is_closed(sock)

    await anyio.to_thread.run_sync(nine)
    await anyio.to_thread.run_sync(ten)
    assert "Traceback" not in caplog.text


async def test_a_threaded_server_refuses_a_large_message_before_a_key_was_shown(
    caplog: pytest.LogCaptureFixture, make_peer: MakePeer
) -> None:
    def blocking(url: str) -> None:
        with raw_websocket(url) as sock:
            receive_until(sock, b'"sid"')
            send_text(sock, "40/smcp," + "x" * 16 * 1024)
            assert is_closed(sock)

    with sync_server(SyncAPIKeyAuthentication(["right"])) as server:
        await anyio.to_thread.run_sync(blocking, server.url)
        await eventually(lambda: "more than 16384 bytes" in caplog.text)
        for transport in ("websocket", "polling"):
            peer = await make_peer(server, "async", transport, auth={"token": "right"})
            assert (await peer.call("client:dance", {"padding": "x" * 500_000}))["error"]["code"] == 400


@pytest.mark.parametrize("colour", ["async", "threaded"])
async def test_a_namespace_that_lets_everybody_in_lifts_no_limit(colour: str) -> None:
    def blocking(server: Running) -> None:
        with raw_websocket(server.url) as sock:
            receive_until(sock, b'"sid"')
            send_text(sock, "40")
            receive_until(sock, b"40{")
            (connection,) = server.sio.eio.sockets.values()
            assert connection.limit == 16 * 1024
            server.sio.on("dance", lambda _: None)
            assert connection.limit > 16 * 1024

    with (
        async_server(APIKeyAuthentication(["right"]))
        if colour == "async"
        else sync_server(SyncAPIKeyAuthentication(["right"]))
    ) as server:
        server.sio.namespaces = ["/"]  # python-socketio's default
        await anyio.to_thread.run_sync(blocking, server)


async def test_a_threaded_server_counts_connections_per_address(make_peer: MakePeer) -> None:
    with sync_server(SyncOpenAuthentication(), Limits(connections_per_address=2)) as server:
        peers = [await make_peer(server, "async", transport) for transport in ("websocket", "polling")]
        with pytest.raises(Exception, match="namespaces failed to connect"):
            await make_peer(server)
        await peers[0].disconnect()
        await eventually(lambda: server.namespace.registry.counts().sessions == 1)
        await eventually(lambda: sum(server.namespace.admission.addresses._joined.values()) == 1, 30)
        await make_peer(server)

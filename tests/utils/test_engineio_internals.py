"""What we rely on in python-engineio and its documentation does not promise: an upgrade fails here first."""

import pytest
from engineio import async_client, exceptions, packet

from a2c_smcp.link.connection import _Engine
from a2c_smcp.utils.engineio_internals import NO_GREETING, AsyncClient
from tests.undocumented import Library

library = Library("python-engineio", "a2c_smcp.utils.engineio_internals")


def test_packets_and_exceptions_are_where_they_were() -> None:
    library.has(packet, ["MESSAGE", "PING", "PONG", "UPGRADE", "CLOSE", "Packet"])
    types = [packet.CLOSE, packet.PING, packet.PONG, packet.MESSAGE, packet.UPGRADE]
    assert types == [1, 2, 3, 4, 5]
    library.takes(packet.Packet.__init__, "packet_type", "data", "encoded_packet")
    library.has(packet.Packet(packet.MESSAGE, "x"), ["packet_type", "data", "encode"])
    library.has(exceptions, ["ConnectionError"])


async def test_a_client_has_what_we_use_of_it() -> None:
    client = async_client.AsyncClient()
    library.has(client, AsyncClient.__annotations__.keys() - {"write_loop_task"})
    library.takes(client._send_request, "method", "url", "headers", "body", "timeout")
    library.takes(client._connect_websocket, "url", "headers", "engineio_path")
    library.takes(client._get_engineio_url, "url", "engineio_path", "transport")
    library.takes(client._receive_packet, "pkt")
    for method in (client._read_loop_websocket, client._write_loop, client._get_url_timestamp):
        library.takes(method)


def test_a_client_takes_the_steps_that_we_replace() -> None:
    client = async_client.AsyncClient
    library.says(client._connect_polling, "self._send_request(", "self._connect_websocket(", "self._receive_packet(")
    library.says(client._connect_websocket, "self._read_loop_websocket", "self._write_loop", NO_GREETING)
    library.says(client._read_loop_websocket, "self.ws.receive()", "self._receive_packet(")
    library.says(client._read_loop_polling, "self._send_request(", "self._receive_packet(")
    library.says(client._write_loop, "self.ws.send_str(", "self._send_request(", "self.queue.task_done()")


@pytest.mark.parametrize(
    ("ours", "theirs", "names"),
    [
        (
            _Engine,
            async_client.AsyncClient,
            ["send", "_connect_websocket", "_read_loop_websocket", "_receive_packet", "_send_request"],
        ),
    ],
)
def test_we_override_what_we_mean_to(ours: type, theirs: type, names: list[str]) -> None:
    library.is_overridden(ours, theirs, *names)


def test_what_is_missing_is_said_in_a_sentence() -> None:
    sentence = r"python-engineio [\d.]+: {} .* see a2c_smcp.utils.engineio_internals"
    client = async_client.AsyncClient
    with pytest.raises(AssertionError, match=sentence.format("AsyncClient has no elsewhere any")):
        library.has(client, ["send", "elsewhere"])
    with pytest.raises(AssertionError, match=sentence.format("AsyncClient.send takes")):
        library.takes(client.send, "text")
    with pytest.raises(AssertionError, match=sentence.format("AsyncClient.send has no `elsewhere`")):
        library.says(client.send, "elsewhere")
    with pytest.raises(AssertionError, match=sentence.format("our _Engine overrides")):
        library.is_overridden(_Engine, client, "send")

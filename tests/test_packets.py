"""Packets that carry JSON only: read as python-socketio reads them, bytes and depth refused."""

from typing import Any

import pytest
import socketio
from hypothesis import given
from hypothesis import strategies as st
from socketio.packet import ACK, BINARY_ACK, BINARY_EVENT, CONNECT, DISCONNECT, EVENT

from a2c_smcp.errors import BadRequestError
from a2c_smcp.packet_text import MAX_DEPTH, encode_ack, encode_event, name_of, read_ack, read_event, read_head
from a2c_smcp.packets import SMCPPacket
from a2c_smcp.smcp import TOOL_CALL_EVENT
from a2c_smcp.wire import Encoded, Unacceptable, parse

CALL = {"agent": "a", "req_id": "1", "computer": "c", "tool_name": "t", "params": {"x": [1]}, "timeout": 30}


def refused(data: object) -> BadRequestError:
    with pytest.raises(BadRequestError) as caught:
        parse(TOOL_CALL_EVENT, data)
    return caught.value


def nested(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


def test_python_socketio_takes_the_packet_class_on_both_sides_and_keeps_its_own() -> None:
    before = socketio.packet.Packet.json
    assert socketio.AsyncServer(serializer=SMCPPacket).packet_class is SMCPPacket
    assert socketio.AsyncClient(serializer=SMCPPacket).packet_class is SMCPPacket
    assert socketio.packet.Packet.json is before


def test_packets_round_trip() -> None:
    for packet in (
        SMCPPacket(EVENT, data=["client:tool_call", CALL], namespace="/smcp", id=7),
        SMCPPacket(ACK, data=[True, None], namespace="/smcp", id=2**60),
    ):
        back = SMCPPacket(encoded_packet=packet.encode())
        assert (back.packet_type, back.data, back.namespace, back.id) == (
            packet.packet_type,
            packet.data,
            packet.namespace,
            packet.id,
        )


def test_an_event_with_bytes_reaches_its_handler_as_unacceptable() -> None:
    theirs = socketio.packet.Packet(EVENT, data=["client:tool_call", {**CALL, "params": {"b": b"x"}}], id=3)
    first, *attachments = theirs.encode()
    packet = SMCPPacket(encoded_packet=first)
    assert packet.packet_type == BINARY_EVENT
    assert packet.add_attachment(attachments[0]) is True
    assert isinstance(packet.data[1], Unacceptable)
    assert "binary" in refused(packet.data[1]).message


def test_an_ack_with_bytes_becomes_an_error_reply() -> None:
    first, *attachments = socketio.packet.Packet(ACK, data=[{"a": b"x", "b": b"y"}], id=3).encode()
    packet = SMCPPacket(encoded_packet=first)
    assert packet.packet_type == BINARY_ACK
    assert [packet.add_attachment(item) for item in attachments] == [False, True]
    assert packet.data[0]["error"]["code"] == 400


def test_the_depth_limit_counts_the_payload_alone() -> None:
    for depth, accepted in ((MAX_DEPTH, True), (MAX_DEPTH + 1, False), (900, False)):
        text = SMCPPacket(EVENT, data=["client:tool_call", nested(depth)], id=1).encode()
        payload = SMCPPacket(encoded_packet=text).data[1]
        assert isinstance(payload, dict) is accepted
        if not accepted:
            assert "100 levels" in refused(payload).message


@pytest.mark.parametrize("odd", ["1e999", "9" * 5000])
def test_a_number_out_of_range_is_refused_and_the_event_still_answered(odd: str) -> None:
    event, payload = read_event(f'["client:tool_call",{{"params":{{"n":{odd}}}}}]')
    assert event == "client:tool_call"
    assert "out of range" in refused(payload).message
    assert read_ack(f'[{{"n":{odd}}}]')[0]["error"]["code"] == 400


def test_an_answer_that_nests_too_deep_is_an_error() -> None:
    for depth, accepted in ((MAX_DEPTH, True), (MAX_DEPTH + 1, False), (900, False)):
        (answer,) = read_ack(SMCPPacket(ACK, data=[nested(depth)]).encode()[1:])
        assert ("error" not in answer) is accepted


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ('["a",{}]', "a"),
        (' [ "a" ]', "a"),
        ('["a\\u0062"]', None),
        ("[7]", None),
        ('["a', None),
        ('["' + "x" * 101 + '"]', None),
        ("", None),
    ],
)
def test_a_name_that_needs_no_decoding_is_found(body: str, name: str | None) -> None:
    assert name_of(body) == name


def test_a_wide_payload_is_not_a_deep_one() -> None:
    text = SMCPPacket(EVENT, data=["client:tool_call", {"list": [[{}]] * 500}]).encode()
    assert isinstance(SMCPPacket(encoded_packet=text).data[1], dict)


def test_bytes_cannot_be_sent() -> None:
    with pytest.raises(TypeError):
        SMCPPacket(EVENT, data=["e", b"x"]).encode()


@pytest.mark.parametrize("body", ["", "[", "{}", "7", "[" * 2000])
def test_an_ack_that_is_none_has_no_arguments(body: str) -> None:
    assert SMCPPacket(encoded_packet=f"3/smcp,1 {body}").data == []


namespaces = st.sampled_from([None, "/", "/smcp", "/smcp?token=x", "/a-b/c", "/1"])
arguments = st.lists(st.one_of(st.text(), st.integers(-(2**53), 2**53), st.dictionaries(st.text(), st.text())))


@given(
    st.sampled_from([CONNECT, DISCONNECT, EVENT, ACK]),
    namespaces,
    st.none() | st.integers(0, 2**64),
    arguments,
)
def test_a_packet_is_read_as_python_socketio_reads_it(
    packet_type: int, namespace: str | None, ack_id: int | None, args: list[Any]
) -> None:
    data = {EVENT: ["name", *args], ACK: args}.get(packet_type, args or None)
    text = socketio.packet.Packet(packet_type, data=data, namespace=namespace, id=ack_id).encode()
    assert isinstance(text, str)
    theirs, ours = socketio.packet.Packet(encoded_packet=text), SMCPPacket(encoded_packet=text)
    for name in ("packet_type", "namespace", "id", "data", "attachment_count"):
        assert getattr(ours, name) == getattr(theirs, name)


@pytest.mark.parametrize("text", ["", "x", "7[]", "[]", "9/smcp,[]"])
def test_what_is_no_packet_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        read_head(text)


@pytest.mark.parametrize(
    "text", ["2/smcp,1[", "2/smcp,nonsense", "2/smcp," + "1" * 101 + "[]", '2["a"', "2", "2[]", "2{}", "0{"]
)
def test_a_packet_without_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        SMCPPacket(encoded_packet=text)


def test_what_is_written_by_hand_is_what_the_packet_writes() -> None:
    event = SMCPPacket(EVENT, data=["client:tool_call", CALL], namespace="/smcp", id=7)
    assert encode_event("/smcp", "client:tool_call", CALL, 7) == event.encode()
    ack = SMCPPacket(ACK, data=[{"a": 1}], namespace="/smcp", id=7)
    assert encode_ack("/smcp", 7, [{"a": 1}]) == encode_ack("/smcp", 7, [Encoded('{"a":1}')]) == ack.encode()
    assert encode_ack("/smcp", 7, ()) == SMCPPacket(ACK, data=[], namespace="/smcp", id=7).encode()

"""Whom a line is for that was too long to be kept."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.computer.mcp_clients.pipes.long_lines import Answered, answered_by, request_in
from a2c_smcp.utils.pipes import LineSplitter, LongLine

BIG = '{"content":[' + ",".join(['{"id":7,"method":"no"}'] * 1000) + '],"id":8}'


def long_line(text: str) -> LongLine:
    [line] = LineSplitter(100).feed(text.encode() + b"\n")
    assert isinstance(line, LongLine)
    assert line.size == len(text.encode())
    return line


@pytest.mark.parametrize(
    ("text", "answered"),
    [
        (f'{{"jsonrpc":"2.0","id":5,"result":{BIG}}}', Answered(True, 5)),
        (f' {{ "id" : "5" , "jsonrpc" : "2.0" , "result" : {BIG} }} ', Answered(True, "5")),
        (f'{{"jsonrpc":"2.0","result":{BIG},"id":5}}', Answered(True, 5)),
        (f'{{"result":{BIG}, "jsonrpc": "2.0", "id": 5 }}\r', Answered(True, 5)),
        (f'{{"jsonrpc":"2.0","id":5,"error":{{"code":1,"data":{BIG}}}}}', Answered(True, 5)),
        (f'{{"jsonrpc":"2.0","result":{BIG}}}', Answered(True)),
        (f'{{"result":{BIG},"jsonrpc":"2.0"}}', Answered(True)),
        (f'{{"jsonrpc":"2.0","id":null,"error":{BIG}}}', Answered(True)),
        (f'{{"jsonrpc":"2.0","id":true,"error":{BIG}}}', Answered(True)),
        (f'{{"jsonrpc":"2.0","id":[5],"error":{BIG}}}', Answered(True)),
        (f'{{"jsonrpc":"2.0","method":"notifications/message","params":{BIG}}}', Answered(False)),
        (f'{{"jsonrpc":"2.0","params":{BIG},"id":1,"method":"ping"}}', Answered(False)),
        (BIG.removeprefix("{"), Answered(True, 8)),  # its end says so; half a message is anybody's guess
        ("x" * 10_000, Answered(True)),
        ("[" * 10_000, Answered(True)),
        ('{"' + "\\" * 10_000, Answered(True)),
        ("," * 10_000 + "}", Answered(True)),
    ],
)
def test_the_id_is_found_at_either_end_and_never_inside(text: str, answered: Answered) -> None:
    assert answered_by(long_line(text)) == answered


@given(st.one_of(st.integers(), st.text(st.characters(codec="utf-8", exclude_characters=","))), st.booleans())
def test_any_id_is_found_first_or_last(request_id: int | str, first: bool) -> None:
    members = {"id": request_id, "result": [0] * 5000} if first else {"result": [0] * 5000, "id": request_id}
    for text in (json.dumps(members), json.dumps(members, separators=(",", ":"), ensure_ascii=False)):
        assert answered_by(long_line(text)).request_id == request_id


def test_lines_that_fit_are_whole_around_one_that_does_not() -> None:
    lines = LineSplitter(10, ends=4)
    found = []
    for chunk in (b"first\n0123", b"456789", b"\n0123456", b"789A", b"BCDEF", b"\nlast\n", b"rest"):
        found += lines.feed(chunk)
    assert found == [b"first", b"0123456789", LongLine(b"0123", b"CDEF", 16), b"last"]
    assert lines.rest() == b"rest"
    assert lines.rest() == b""


def test_a_long_line_is_not_kept_while_it_comes() -> None:
    lines = LineSplitter(100_000)
    for _ in range(1000):
        assert lines.feed(b"x" * 65536) == []
        assert sum(map(len, lines._parts)) <= 100_000 + 65536
    [line] = lines.feed(b"end\n")
    assert line == LongLine(b"x" * 4096, b"x" * 4093 + b"end", 65_536_003)


@pytest.mark.parametrize(
    ("text", "request_id"),
    [
        (f'{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{BIG}}}', 5),
        ('{"jsonrpc":"2.0","id":"a","method":"ping"}', "a"),
        (f'{{"jsonrpc":"2.0","method":"notifications/progress","params":{BIG.replace(",", ", ")[:-7]}}}}}', None),
        (f'{{"jsonrpc":"2.0","id":5,"result":{BIG}}}', None),
        ("grant_type=refresh_token", None),
    ],
)
def test_the_id_of_a_request_that_we_send(text: str, request_id: int | str | None) -> None:
    content = text.encode()
    assert request_in(LongLine(content[:4096], content[-4096:], len(content))) == request_id

"""Hostile Socket.IO frames, made from a seeded random source. Pure.

A `Frame` knows whether it is an event that decodes and asks for an ack: such an event must be answered.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from a2c_smcp.smcp import EVENTS, SMCP_NAMESPACE

__all__ = ["Frame", "acks", "frames", "garbage"]

#: Fields that make most requests valid; each event takes what it knows of them.
_VALID: Final[dict[str, Any]] = {
    "agent": "fuzz",
    "req_id": "r-1",
    "computer": "victim",
    "tool_name": "echo",
    "params": {"text": "hello"},
    "timeout": 5,
    "uri": "dpe://com.example.docs/report",
    "window": "window://com.example.editor/main",
    "desktop_size": 3,
    "keywords": ["a"],
    "file_type": "pdf",
    "offset": 0,
    "limit": 20,
    "role": "agent",
    "name": "fuzz",
    "office_id": "fuzz",
}
#: Texts that are JSON, and hard to swallow.
_RARE: Final = (
    "1e999",
    "-0.0",
    "9" * 400,
    '"\\ud800"',
    '"\\u0000"',
    '"\\u202e"',
    '{"a":1,"a":2}',
    "[" * 900 + "]" * 900,
    '{"a":' * 120 + "1" + "}" * 120,
    '"' + "x" * 100_000 + '"',
    "[" + ",".join(["[]"] * 5_000) + "]",
)


@dataclass(frozen=True, slots=True)
class Frame:
    """One websocket frame, and the ack id that must come back for it, if one must."""

    data: str | bytes
    must_ack: int | None = None


def frames(source: random.Random, count: int, first_ack: int) -> Iterator[Frame]:
    """Events that decode, most of them wrong in some way; every one must be answered."""
    for ack_id in range(first_ack, first_ack + count):
        name, arguments = _event(source)
        yield Frame(f"42{SMCP_NAMESPACE},{ack_id}[{','.join([name, *arguments])}]", ack_id)


def garbage(source: random.Random) -> Frame:
    """A frame of which nothing is expected but that it does no harm."""
    return Frame(source.choice(_GARBAGE)(source))


def acks(source: random.Random) -> str:
    """What a hostile computer acks with: the JSON after the ack id, which need not be JSON."""
    kinds = (
        "[]",
        "[null]",
        "[[]]",
        "[1,2,3]",
        "{}",
        "",
        "[",
        '[{"error":',
        '[{"error":{"code":"x"}}]',
        '[{"code":404}]',
    )
    rare = source.choice(_RARE)
    return source.choice((*kinds, f"[{rare}]", f'[{{"content":{rare}}}]', f"[{json.dumps(_value(source))}]"))


def _event(source: random.Random) -> tuple[str, list[str]]:
    if source.random() < 0.1:
        name = source.choice((*_RARE, "1", "null", "[]", "{}", '"connect"', '"disconnect"', '"message"', '""'))
        return name, [_text(source) for _ in range(source.randrange(3))]
    event = source.choice(list(EVENTS.values()))
    payload = {key: value for key, value in _VALID.items() if key in event.request.__annotations__}
    draw = source.random()
    if draw < 0.15:
        return json.dumps(event.name), [_text(source) for _ in range(source.randrange(4))]
    fields = {key: json.dumps(value) for key, value in payload.items()}
    if draw < 0.75 and fields:
        key = source.choice(list(fields))
        fields[key] = _text(source)
        if source.random() < 0.3:
            del fields[key]
        if source.random() < 0.2:
            fields["extra"] = _text(source)
    return json.dumps(event.name), ["{" + ",".join(f"{json.dumps(key)}:{text}" for key, text in fields.items()) + "}"]


def _text(source: random.Random) -> str:
    return source.choice(_RARE) if source.random() < 0.2 else json.dumps(_value(source))


def _value(source: random.Random, depth: int = 0) -> Any:
    draw = source.randrange(9 if depth < 3 else 7)
    match draw:
        case 0:
            return None
        case 1:
            return source.random() < 0.5
        case 2:
            return source.randrange(-(2**70), 2**70)
        case 3:
            return source.uniform(-1e6, 1e6)
        case 4:
            return ""
        case 5 | 6:
            return "".join(
                chr(source.choice((65, 0x4E2D, 0x202E, 0x7F, 10, 0x1F600))) for _ in range(source.randrange(99))
            )
        case 7:
            return [_value(source, depth + 1) for _ in range(source.randrange(4))]
        case _:
            return {str(number): _value(source, depth + 1) for number in range(source.randrange(4))}


def _noise(source: random.Random) -> bytes:
    return source.randbytes(source.randrange(200))


def _mangled(source: random.Random) -> str:
    """A packet with one piece taken out, doubled or replaced."""
    (frame,) = frames(source, 1, source.randrange(10**6))
    text = str(frame.data)
    at, length = source.randrange(len(text)), source.randrange(1, 9)
    piece = source.choice(("", text[at : at + length] * 2, chr(source.randrange(32, 0x3000))))
    return "4" + text[1:at] + piece + text[at + length :]


def _odd_packet(source: random.Random) -> str:
    kind = source.choice("0123456789x")
    attachments = source.choice(("", "1-", "0-", "99999999999-", "-"))
    namespace = source.choice(("", "/smcp,", "/smcp", "/other,", "/smcp?a=b,", "/,", "/" + "n" * 500 + ","))
    ack = source.choice(("", "0", "7", "9" * 150, "-1"))
    body = source.choice(("", "[]", "{}", "null", '["x"]', "[", json.dumps(_value(source)), source.choice(_RARE)))
    return f"4{kind}{attachments}{namespace}{ack}{body}"


_GARBAGE: Final = (
    _noise,
    _mangled,
    _mangled,
    _odd_packet,
    _odd_packet,
    lambda source: source.choice(("", "2", "3", "2probe", "5", "6", "7", "9", "\x1e", "b", "bAAAA", "4", "44", "0{}")),
    lambda source: "".join(chr(source.randrange(32, 0x3000)) for _ in range(source.randrange(1, 60))),
)

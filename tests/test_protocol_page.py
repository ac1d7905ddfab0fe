"""docs/protocol.md has every event, every field of every structure, and every error code, as the code has them."""

import json
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from typing_extensions import is_typeddict

from a2c_smcp import errors, smcp, wire
from a2c_smcp.dialects.flat_errors import KNOWN_CODES
from a2c_smcp.errors import SMCPError
from a2c_smcp.server import limits, offices
from a2c_smcp.smcp import EVENTS, PROTOCOL_VERSION, SMCP_NAMESPACE, Event, Kind
from a2c_smcp.utils.dpe_uri import CATEGORIES, parse_dpe_uri
from a2c_smcp.utils.window_uri import WindowURI

PAGE = (Path(__file__).parent.parent / "docs" / "protocol.md").read_text("utf-8")
_ACKS = {
    Kind.MEMBERSHIP: "`true, null` or `false, reason`",
    Kind.ANNOUNCE: "`{}`",
    Kind.REPORT: "`{}`",
    Kind.CREDENTIALS: "`{}`",
    Kind.NOTIFICATION: "none",
}
_JSON = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def section(heading: str) -> str:
    return PAGE.split(f"\n{heading}\n", 1)[1].split("\n#", 1)[0]


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head."""
    table = section(heading).split("\n| --- ", 1)[1].split("\n\n", 1)[0]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.strip().splitlines()[1:]]


def shown(structure: type) -> str:
    return f"[`{structure.__name__}`](#{structure.__name__.lower()})"


def direction(event: Event) -> str:
    sender = " or ".join(sorted(event.senders))
    match event.kind:
        case Kind.RELAY:
            return "agent → server → computer"
        case Kind.ANNOUNCE | Kind.REPORT:
            assert event.notification is not None
            return f"{sender} → {direction(EVENTS[event.notification])}"
        case Kind.NOTIFICATION:
            return "server → agent" if event.agent_only else "server → office"
        case _:
            return f"{sender} → server"


# --- events


def test_every_event_has_its_row() -> None:
    table = {row[0].strip("`"): row for row in rows("## Events")}
    assert list(table) == list(EVENTS)
    for name, event in EVENTS.items():
        _, said, payload, ack, codes = table[name]
        assert said == direction(event), name
        assert payload == shown(event.request), name
        assert ack == (_ACKS[event.kind] if event.response is None else shown(event.response)), name
        assert set(re.findall(r"\d+", codes)) <= {str(code) for code in known_codes().keys() | KNOWN_CODES}, name
        assert bool(codes) == (event.kind is not Kind.NOTIFICATION), name


def test_each_flow_is_drawn_with_events_that_exist_and_together_they_have_all() -> None:
    flows = re.findall(r"^## (\d)\. .*?^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert [number for number, _ in flows] == ["1", "2", "3", "4", "5", "6", "7"]
    drawn = {name for _, flow in flows for name in re.findall(r"(?:client|server|notify):[a-z_]+", flow)}
    assert drawn == set(EVENTS)


# --- structures


#: What a document server answers; the contents of `client:read_resource` are any JSON to the wire.
IN_DOCUMENTS: list[type] = [smcp.DPEPageSummary, smcp.DPEElementDetail]


def structures() -> list[type]:
    """What the events carry, and what is inside of that, each once."""
    waiting = [shape for event in EVENTS.values() for shape in (event.request, event.response) if shape is not None]
    seen: dict[type, None] = {}
    while waiting:
        shape = waiting.pop(0)
        if shape not in seen:
            seen[shape] = None
            waiting += [inner for hint in get_type_hints(shape).values() for inner in _inside(hint)]
    return [*seen, *IN_DOCUMENTS]


def _inside(hint: Any) -> Iterator[type]:
    if is_typeddict(hint):
        yield hint
    for argument in get_args(hint):
        yield from _inside(argument)


def json_type(hint: Any) -> str:
    """A type as the page writes it."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(json_type, get_args(hint))))
    if origin is Literal:
        return " or ".join(f"`{json.dumps(value)}`" for value in get_args(hint))
    if origin in (list, Sequence):
        return f"list of {json_type(get_args(hint)[0])}"
    if origin in (dict, Mapping):
        inner = json_type(get_args(hint)[1])
        return f"object of {inner}" if "[`" in inner else "object"
    if is_typeddict(hint):
        return shown(hint)
    return "any" if hint is Any else _JSON[hint]


@pytest.mark.parametrize("structure", structures(), ids=lambda structure: structure.__name__)
def test_a_structure_has_every_field_with_its_type(structure: type) -> None:
    hints = get_type_hints(structure)
    required: frozenset[str] = structure.__required_keys__  # type: ignore[attr-defined]
    said = [row[:3] for row in rows(f"### {structure.__name__}")]
    assert said == [[f"`{key}`", json_type(hint), "yes" if key in required else "no"] for key, hint in hints.items()]


def test_the_page_has_no_structure_that_nothing_carries() -> None:
    headings = re.findall(r"^### ([A-Z]\w+)$", PAGE, re.MULTILINE)
    assert headings == [structure.__name__ for structure in structures()]


# --- errors, samples, limits, URIs


def known_codes() -> dict[int, str]:
    """The codes that cross the wire, each with the name of the class that has it first."""
    classes = [cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, SMCPError)]
    first = [cls for cls in classes if cls is not SMCPError and vars(cls).get("default_code")]
    return {cls.default_code: cls.title for cls in first}


def test_every_code_has_its_row_and_its_name() -> None:
    table = {int(row[0]): row[1] for row in rows("## Errors")}
    assert {code: name for code, name in table.items() if code not in KNOWN_CODES - {404}} == dict(
        sorted(known_codes().items())
    )
    assert sorted(table) == list(table)


def test_the_samples_are_what_the_events_carry() -> None:
    samples = re.findall(r"^<!-- (\S+) -->\n```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(samples) >= 6
    for name, text in samples:
        data = json.loads(text)
        match name.split("/"):
            case [event, "ack"]:
                wire.parse_response(event, data)
            case [event]:
                wire.parse(event, data)


def test_what_the_page_says_in_numbers_is_so() -> None:
    table = {row[0]: row[1] for row in rows("## Limits")}
    values = limits.Limits()
    assert table["one message"] == f"{values.max_message // 2**20} MiB"
    assert table["a message before the connection is authenticated"] == f"{values.first_messages // 2**10} KiB"
    assert table["a name"] == f"1 to {offices.MAX_NAME} characters"
    assert table["an office id"] == f"1 to {offices.MAX_OFFICE_ID} characters"
    assert table["`timeout` of a tool call, with its `approval_timeout`"] == f"1 to {values.max_timeout:,} s"
    grace = f"{values.tool_call_grace:g} s"
    assert table["the server's wait for a tool call"] == f"its `timeout`, its `approval_timeout` and {grace}"
    assert table["the server's wait for any other relay"] == f"{values.relay_timeout:g} s"
    assert table["unanswered requests of one agent"] == f"{values.pending_relays:,}"
    assert f"protocol {PROTOCOL_VERSION}" in PAGE and f"`{SMCP_NAMESPACE}`" in PAGE


def test_the_uris_on_the_page_are_valid_and_every_category_is_named() -> None:
    windows = re.findall(r"^(window://\S+)", PAGE, re.MULTILINE)
    documents = re.findall(r"^(dpe://\S+)", PAGE, re.MULTILINE)
    assert [WindowURI.parse(uri).priority for uri in windows] == [None, 50]
    assert [parse_dpe_uri(uri).level for uri in documents] == [0, 1, 2, 3]
    assert set(re.findall(r"`(\w+)`", section("## URIs").split("Categories:")[1])) == CATEGORIES

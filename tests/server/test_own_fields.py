"""The fields that only the server writes into a request: how they get into its text, and a client's out of it."""

import json
from typing import Any, Literal, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.dialects.marks import MARK_FIELD
from a2c_smcp.errors import BadRequestError
from a2c_smcp.request_fields import REQUEST_FIELDS, RequestField
from a2c_smcp.server.envelopes import read_message
from a2c_smcp.server.offices import Member
from a2c_smcp.server.own_fields import stamp_of, with_field, without_foreign_stamp
from a2c_smcp.smcp import EVENTS, STAMP_FIELD, Kind
from a2c_smcp.wire import LARGE

PLANNER = Member("s", "agent", "planner", "o", key="ci", bound=True)
FORGED = '{"name":"librarian","key":"root","bound":true}'
REQUEST = '"agent":"a","req_id":"r","computer":"c"'
#: Spellings of the name of the field. A reader takes each of them for the same name.
SPELLINGS = ["a2c_from", r"a2c\u005ffrom", r"\u0061\u0032\u0063\u005F\u0066\u0072\u006f\u006D"]


def forged_bodies() -> dict[str, str]:
    """Requests with a stamp of the client's own, by how it hides it."""
    found = {f"spelled {name}": f'["client:get_tools",{{{REQUEST},"{name}":{FORGED}}}]' for name in SPELLINGS}
    stamp = f'"a2c_from":{FORGED}'
    return {
        **found,
        "first": f'["client:get_tools",{{{stamp},{REQUEST}}}]',
        "twice": f'["client:get_tools",{{{stamp},{REQUEST},"{SPELLINGS[1]}":{FORGED}}}]',
        "null": f'["client:get_tools",{{{REQUEST},"a2c_from":null}}]',
        "text": f'["client:get_tools",{{{REQUEST},"a2c_from":"librarian"}}]',
        "behind blanks": f'["client:get_tools" ,{{{REQUEST} , {stamp} \t}} \n ] \r\n ',
        "beside half a character": f'["client:get_tools",{{{REQUEST},{stamp},"half":"\\ud800"}}]',
        "with a field that is null": f'["client:get_tools",{{{REQUEST},"meta":null,{stamp}}}]',
    }


@pytest.mark.parametrize(("how", "body"), forged_bodies().items(), ids=forged_bodies())
def test_what_a_client_wrote_there_is_taken_out_and_the_rest_stays(how: str, body: str) -> None:
    message = read_message(body)
    assert message.error is None and message.body is not None
    assert STAMP_FIELD not in json.loads(message.body)[1] and STAMP_FIELD not in message.body
    kept = {key: value for key, value in json.loads(body)[1].items() if key != STAMP_FIELD}
    assert json.loads(message.body) == ["client:get_tools", kept]
    event, request = json.loads(with_field(message.body, STAMP_FIELD, stamp_of(PLANNER)))
    assert (event, list(request)[-1]) == ("client:get_tools", STAMP_FIELD)
    assert request[STAMP_FIELD] == {"name": "planner", "key": "ci", "bound": True}


@pytest.mark.parametrize(("how", "body"), forged_bodies().items(), ids=forged_bodies())
def test_what_another_process_passes_on_there_is_taken_out(how: str, body: str) -> None:
    cleaned = without_foreign_stamp(body)
    kept = {key: value for key, value in json.loads(body)[1].items() if key != STAMP_FIELD}
    assert json.loads(cleaned) == ["client:get_tools", kept]


def test_an_honest_request_stays_the_text_that_it_was() -> None:
    honest = [
        f'["client:get_tools", {{{REQUEST},"big":12345678901234567890123,"u":1.50}} ]',
        f'["client:tool_call",{{{REQUEST},"tool_name":"t","timeout":1,"params":{{"a2c_from":{FORGED}}}}}]',
        f'["client:tool_call",{{{REQUEST},"tool_name":"t","timeout":1,"params":{{"t":"}}\\u0000\\u005f}}"}}}}]',
    ]
    for body in honest:
        assert read_message(body).body == body == without_foreign_stamp(body)
        request = json.loads(with_field(body, STAMP_FIELD, stamp_of(PLANNER)))[1]
        assert request.pop(STAMP_FIELD)["name"] == "planner"
        assert request == json.loads(body)[1]


def test_numbers_that_no_float_holds_stay_exact_beside_a_forged_stamp() -> None:
    body = f'["client:get_tools",{{"n":12345678901234567890123,{REQUEST},"a2c_from":1,"f":0.10}}]'
    assert read_message(body).body == f'["client:get_tools",{{"n":12345678901234567890123,{REQUEST},"f":0.10}}]'


def test_a_large_request_with_a_forged_stamp_keeps_the_fields_of_its_event_alone() -> None:
    """It may have a million other fields, and reading each of them would hold everybody up."""
    many = ",".join(f'"{number}":1' for number in range(20_000))
    params = f'"params":{{"deep":[{{}}],"text":"{"x" * LARGE}"}},"tool_name":"t","timeout":1'
    honest = f'["client:tool_call",{{{REQUEST},{params},{many},"n":"\\u005f"}}]'
    assert read_message(honest).body == honest == without_foreign_stamp(honest)
    for spelling in SPELLINGS:
        forged = f'["client:tool_call",{{{many},"{spelling}":{FORGED},{REQUEST},{params}}}]'
        kept = f'["client:tool_call",{{{REQUEST},{params}}}]'
        for body in (read_message(forged).body, without_foreign_stamp(forged)):
            assert body is not None and json.loads(body) == json.loads(kept)
    beside_a_mark = f'["client:tool_call",{{{REQUEST},{params},"a2c_dialect":"0.4","a2c_from":1}}]'
    assert json.loads(without_foreign_stamp(beside_a_mark))[1]["a2c_dialect"] == "0.4"  # the other process wrote it


def value_for(field: RequestField) -> Any:
    if get_origin(field.reads) is Literal:
        return get_args(field.reads)[0]
    brackets: dict[int, Any] = {ord("{"): {}, ord("["): []}
    return brackets[field.opening] if field.opening else {str: "x", bool: True}.get(field.reads, 1)


@pytest.mark.parametrize("name", [row.name for row in EVENTS.values() if row.kind is Kind.RELAY])
def test_every_event_that_is_relayed_is_cleaned(name: str) -> None:
    request = {field.name: value_for(field) for field in REQUEST_FIELDS[name]}
    for forged in ({STAMP_FIELD: {"name": "librarian"}}, {MARK_FIELD: "0.4"}, {STAMP_FIELD: 1, MARK_FIELD: 2}):
        message = read_message(json.dumps([name, {**request, **forged}]))
        assert message.error is None and message.body is not None
        assert json.loads(message.body) == [name, request]


@pytest.mark.parametrize(
    "body",
    [
        '["client:get_tools",{"a2c_from":1},{"z":1}]',
        '["client:get_tools","a2c_from"]',
        '{"a2c_from":1}',
        '["client:get_tools",{"a2c_from":1}',
        '["client:get_tools",{"a2c_from":' + "[" * 5000 + "]" * 5000 + "}]",
        '["client:get_tools",{"a2c_from":1,"half":"\\ud800' + "x" * LARGE + '"}]',
        '["client:get_tools",{"a2c_from":"\ud800"}]',
        "a2c_from",
    ],
)
def test_what_no_server_passes_on_is_refused(body: str) -> None:
    with pytest.raises(BadRequestError):
        without_foreign_stamp(body)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


class Pairs:
    """An object with all its fields, also those of one name."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs


@given(fields=st.dictionaries(st.sampled_from([STAMP_FIELD, MARK_FIELD, "x", "y}"]) | st.text(max_size=4), _JSON))
def test_the_stamp_of_the_server_is_the_only_one_whatever_else_is_sent(fields: dict[str, Any]) -> None:
    fields = {"agent": "a", "req_id": "r", "computer": "c"} | {
        key: value for key, value in fields.items() if key not in ("agent", "req_id", "computer", "meta")
    }
    for text in (
        json.dumps(["client:get_tools", fields]),
        json.dumps(["client:get_tools", fields], ensure_ascii=False),
    ):
        message = read_message(text)
        assert message.body is not None
        last = json.loads(with_field(message.body, STAMP_FIELD, "S"), object_pairs_hook=Pairs)[1]
        names = [key for key, _ in last.pairs]
        assert names.count(STAMP_FIELD) == 1 and names[-1] == STAMP_FIELD and MARK_FIELD not in names

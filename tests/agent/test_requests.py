"""What an agent sends, and how it reads what comes back."""

from collections.abc import Callable
from typing import Any

import pytest

from a2c_smcp.agent import requests
from a2c_smcp.agent.bounds import AnswerLimits, build_answer
from a2c_smcp.agent.requests import Deadlines, NotSupportedError, Request
from a2c_smcp.errors import BadRequestError, InvalidDPEURIError, NotFoundError, SMCPError, ToolNotFoundError
from a2c_smcp.smcp import AgentCallData, SessionInfo, SMCPTool
from a2c_smcp.wire import codec

CALL: AgentCallData = {"agent": "ada", "req_id": "r1"}
DEADLINES = Deadlines()
DOCUMENT = "dpe://com.example/report"


def a_tool(**meta: Any) -> SMCPTool:
    return {"name": "t", "description": "", "params_schema": {}, "return_schema": None, "meta": meta}


# --- building


def test_a_tool_call_waits_ten_seconds_longer_than_its_timeout() -> None:
    request = requests.tool_call(CALL, DEADLINES, "laptop", "echo", {"text": "hi"}, 30)
    assert request == Request(
        "client:tool_call",
        {**CALL, "computer": "laptop", "tool_name": "echo", "params": {"text": "hi"}, "timeout": 30},
        40.0,
    )
    assert requests.tool_call(CALL, DEADLINES, "laptop", "echo", None, 1).data["params"] == {}


@pytest.mark.parametrize("timeout", [0, -1, 1.5, True, "soon"])
def test_a_timeout_is_whole_seconds(timeout: Any) -> None:
    with pytest.raises(BadRequestError, match=r"whole seconds from 1 on$"):
        requests.tool_call(CALL, DEADLINES, "laptop", "echo", None, timeout)


@pytest.mark.parametrize("timeout", [99_999_999_999, 10**30, 1e300])
def test_how_long_is_too_long_is_left_to_the_server(timeout: Any) -> None:
    request = requests.tool_call(CALL, DEADLINES, "laptop", "echo", None, timeout)
    assert request.data["timeout"] == 2**31


def test_other_requests_wait_twenty_seconds() -> None:
    assert requests.get_tools(CALL, DEADLINES, "laptop").deadline == 20.0
    assert requests.list_room(CALL, DEADLINES, "lab").deadline == 20.0


def test_absent_filters_and_defaults_are_not_sent() -> None:
    plain = {**CALL, "computer": "laptop"}
    assert requests.get_finder(CALL, DEADLINES, "laptop", None, None, 0, 20).data == plain
    assert requests.get_desktop(CALL, DEADLINES, "laptop", None, None).data == plain
    full = requests.get_finder(CALL, DEADLINES, "laptop", ["a"], "pdf", 5, 50).data
    assert full == {**plain, "keywords": ["a"], "file_type": "pdf", "offset": 5, "limit": 50}
    desktop = requests.get_desktop(CALL, DEADLINES, "laptop", 0, "window://h")
    assert desktop.data == {**plain, "desktop_size": 0, "window": "window://h"}


@pytest.mark.parametrize("odd", ["report", b"report", 5, [5], ["a", None]])
def test_one_text_is_not_a_list_of_texts(odd: Any) -> None:
    with pytest.raises(BadRequestError, match="'keywords': must be a list of texts"):
        requests.get_finder(CALL, DEADLINES, "laptop", odd, None, 0, 20)
    with pytest.raises(BadRequestError, match="'categories': must be a list of texts"):
        requests.page_of(DOCUMENT, 0, "json", odd)


@pytest.mark.parametrize("params", ["abc", "", 5, [], [("text", "hi")]])
def test_the_parameters_of_a_tool_are_a_mapping(params: Any) -> None:
    with pytest.raises(BadRequestError, match="'params': must map"):
        requests.tool_call(CALL, DEADLINES, "laptop", "echo", params, 1)


# --- reading

GET_TOOLS = requests.get_tools(CALL, DEADLINES, "laptop")
TOOL_CALL = requests.tool_call(CALL, DEADLINES, "laptop", "echo", {}, 1)


@pytest.mark.parametrize("args", [(), (None,)])
def test_an_empty_answer_means_that_the_server_does_not_support_it(args: tuple[Any, ...]) -> None:
    with pytest.raises(NotSupportedError, match=r"client:get_tools is not supported by this server"):
        requests.read_reply(GET_TOOLS, args)


def test_an_error_is_raised_as_the_class_of_its_code() -> None:
    with pytest.raises(NotFoundError) as caught:
        requests.read_reply(GET_TOOLS, ({"error": {"code": 404, "message": "no such computer", "details": {"a": 1}}},))
    assert caught.value.details == {"a": 1}


@pytest.mark.parametrize("req_id", [{}, {"req_id": None}, {"req_id": "r1"}])
def test_an_absent_req_id_is_accepted(req_id: dict[str, Any]) -> None:
    assert requests.read_reply(GET_TOOLS, ({"tools": [], **req_id},)) == {"tools": [], "req_id": "r1"}


def test_a_different_req_id_is_an_error() -> None:
    with pytest.raises(BadRequestError, match="belongs to another request"):
        requests.read_reply(GET_TOOLS, ({"tools": [], "req_id": "r2"},))


@pytest.mark.parametrize(
    ("request_", "reply"),
    [
        (GET_TOOLS, {"tools": "none"}),
        (GET_TOOLS, {"tools": [{"name": "only"}]}),
        (GET_TOOLS, ["tools"]),
        (GET_TOOLS, True),
        (requests.get_desktop(CALL, DEADLINES, "laptop", None, None), {}),
        (requests.get_finder(CALL, DEADLINES, "laptop", None, None, 0, 20), {"total_count": 0}),
        (requests.list_room(CALL, DEADLINES, "lab"), {"sessions": [{"name": 1}]}),
    ],
)
def test_a_reply_that_does_not_fit_the_protocol_is_an_error(request_: Request, reply: Any) -> None:
    with pytest.raises(BadRequestError, match=f"reply to {request_.event}"):
        requests.read_reply(request_, (reply,))


def test_a_result_may_spell_meta_either_way() -> None:
    for key in ("meta", "_meta"):
        result = requests.read_result(TOOL_CALL, ({key: {"a": 1}, "content": [], "isError": False, "more": 1},))
        assert result.meta == {"a": 1}


def test_a_routing_error_of_a_tool_call_raises_although_it_reads_like_a_result_too() -> None:
    with pytest.raises(NotFoundError):
        requests.read_result(TOOL_CALL, (NotFoundError("nobody").tool_call_payload(),))


@pytest.mark.parametrize(
    "reply", [{}, {"req_id": TOOL_CALL.req_id}, {"content": None, "isError": None}, {"meta": {"a": 1}}]
)
def test_an_ack_that_is_no_result_is_an_error(reply: Any) -> None:
    with pytest.raises(BadRequestError, match=r"reply to client:tool_call: field 'content': is missing"):
        requests.read_result(TOOL_CALL, (reply,))


def test_an_error_that_stands_flat_in_the_ack_raises_with_its_code() -> None:
    for read in (requests.read_result, requests.read_reply, requests.read_sent):
        with pytest.raises(NotFoundError, match="no such computer"):
            read(TOOL_CALL, ({"code": 404, "message": "no such computer"},))


def test_a_tool_level_error_is_a_result_in_any_form() -> None:
    result = requests.read_result(TOOL_CALL, (SMCPError(4001, "no such tool").payload(),))
    assert result.is_error
    assert result.meta == {"error_code": 4001}


def test_a_missing_tool_may_still_come() -> None:
    def read(**more: Any) -> list[str]:
        return requests.still_starting(requests.read_result(TOOL_CALL, ({"content": [], **more},)))

    assert read(isError=True, meta={"error_code": 4001, "starting": ["demo"]}) == ["demo"]
    assert read(isError=True, meta={"error_code": 4001}) == []
    assert read(isError=True, meta={"error_code": 4001, "starting": "demo"}) == []
    assert read(isError=True, meta={"error_code": 4003, "starting": ["demo"]}) == []
    assert read(meta={"starting": ["demo"]}) == [], "what a tool says of itself"
    starting = ToolNotFoundError("greet", ["demo"])
    assert requests.still_starting(requests.read_result(TOOL_CALL, (starting.payload(),))) == ["demo"]


def _nested(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


_TEXTS: list[Any] = [{"type": "text", "text": "a"}, {"text": "字", "type": "text"}]
_ANSWERS: list[Any] = [
    [{"content": _TEXTS}],
    [{"req_id": "r1", "meta": None, "content": _TEXTS, "structuredContent": None, "isError": True}],
    [{"content": [], "isError": False}],
    [{"content": _TEXTS, "isError": None}],
    [{"content": _TEXTS, "isError": "yes"}],
    [{"content": _TEXTS, "isError": 1}],
    [{"content": _TEXTS, "req_id": "r2"}],
    [{"content": _TEXTS, "req_id": None}],
    [{"content": _TEXTS, "req_id": 7}],
    [{"content": _TEXTS, "meta": {"a": 1}}],
    [{"content": _TEXTS, "_meta": {"a": 1}}],
    [{"content": _TEXTS, "meta": {}}],
    [{"content": _TEXTS, "meta": [1]}],
    [{"content": _TEXTS, "meta": {"error_code": 4004, "a2c_timeout": True}, "isError": True}],
    *([{"content": [], "meta": _nested(levels)}] for levels in (98, 99, 100, 200)),
    [{"content": _TEXTS, "structuredContent": {"a": 1}}],
    [{"content": _TEXTS, "structuredContent": [1]}],
    [{"content": _TEXTS, "structuredContent": "[[" * 100}],
    *([{"content": [], "structuredContent": _nested(levels)}] for levels in (98, 99, 100, 200)),
    [{"content": _TEXTS, "structuredContent": {"rows": list(range(400))}}],
    [{"content": _TEXTS, "structuredContent": {"rows": ["x" * 100] * 1000}}],
    [{"content": _TEXTS, "structuredContent": {"large": 2**70, "text": "字"}}],
    [{"content": _TEXTS, "more": 1}],
    [{"content": _TEXTS, "error": "broken"}],
    [{"content": _TEXTS, "code": 404, "message": "nobody"}],
    [{"content": _TEXTS}, {"content": []}],
    [{"content": [{"type": "text", "text": "a", "annotations": None}]}],
    [{"content": [{"type": "text", "text": "a", "_meta": {"k": 1}}]}],
    [{"content": [{"type": "text", "text": 5}]}],
    [{"content": [{"type": "text"}]}],
    [{"content": [{"text": "a"}]}],
    [{"content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}]}],
    [{"content": [*_TEXTS, {"type": "image", "data": "AA==", "mimeType": "image/png"}]}],
    [{"content": [{"type": "new", "text": "a"}]}],
    [{"content": ["a"]}],
    [{"content": {"type": "text", "text": "a"}}],
    [{"content": "a"}],
    [{"content": None}],
    [{"content": [_TEXTS[0]] * 11}],
    [{"content": [_TEXTS[0]] * 200}],
    [{"content": [{"type": "text", "text": "[{" * 3000}]}],
    [{}],
    [],
    [None],
    {"content": _TEXTS},
]
_ODD_TEXTS = [
    "",
    "[",
    '[{"content":[{"type":"text","text":"\\ud800"}]}]',
    '[{"content":[{"type":"text","text":"\\ud83d\\ude00"}]}]',
    '[{"content":[{"type":"text","text":"a","text":"b"}],"content":[]}]',
    '[{"content":[{"type":"image","type":"text","text":"a"}]}]',
    ' [ { "content" : [ { "type" : "text" , "text" : "a" } ] } ] ',
    '[{"content":[{"type":"text","text":"a"}],"isError":NaN}]',
    '[{"content":[],"structuredContent":{"a":NaN}}]',
    '[{"content":[],"structuredContent":{"a":1e999}}]',
    '[{"content":[],"structuredContent":{"\\ud800":"\\ud800"}}]',
    '[{"content":[],"structuredContent":{"a":1,"a":2}}]',
    f'[{{"content":[],"structuredContent":{"[" * 5000}{"]" * 5000}}}]',
    '[{"content":[{"type":"text","text":"a"}]}] more',
    "[" * 5000,
]


@pytest.mark.parametrize("body", [*map(codec.dumps, _ANSWERS), *_ODD_TEXTS])
@pytest.mark.parametrize("limits", [AnswerLimits(), AnswerLimits(items=10, nested=10, values=1000)])
def test_the_short_way_to_a_result_of_texts_reads_what_the_long_way_reads(body: str, limits: AnswerLimits) -> None:
    def read(how: Callable[[], Any]) -> Any:
        try:
            result = how()
        except SMCPError as error:
            return type(error), error.message, error.details
        return result.model_dump(by_alias=True, exclude_unset=True), repr(result)

    def long() -> Any:
        return requests.read_result(TOOL_CALL, build_answer(TOOL_CALL.event, body, limits))

    assert read(lambda: requests.tool_result(TOOL_CALL, body, limits)) == read(long)


def test_a_call_that_nobody_answered_is_a_timeout() -> None:
    request = requests.tool_call(CALL, DEADLINES, "laptop", "echo", None, 3, approval_timeout=4)
    assert request.deadline == 3 + 4 + DEADLINES.tool_call_grace
    result = requests.timed_out(request)
    assert result.is_error
    assert result.meta == {"error_code": 4004, "a2c_timeout": True}


def test_a_config_may_have_a_placeholder_anywhere() -> None:
    request = requests.get_config(CALL, DEADLINES, "laptop")
    servers: Any = {"s": {"disabled": "${input:off}", "server_parameters": "odd"}}
    assert requests.read_config(request, ({"servers": servers},)) == {"servers": servers, "inputs": None}


@pytest.mark.parametrize("reply", [{}, {"servers": []}, {"servers": {"s": 1}}, {"servers": {}, "inputs": {}}])
def test_a_config_has_an_outline(reply: Any) -> None:
    with pytest.raises(BadRequestError):
        requests.read_config(requests.get_config(CALL, DEADLINES, "laptop"), (reply,))


@pytest.mark.parametrize("args", [(), (None,), ({},)])
def test_an_announcement_is_sent_whatever_its_ack_says(args: tuple[Any, ...]) -> None:
    requests.read_sent(GET_TOOLS, args)


def test_a_refused_announcement_raises() -> None:
    with pytest.raises(NotFoundError):
        requests.read_sent(GET_TOOLS, (NotFoundError("no").payload(),))


def test_the_computers_of_an_office_are_told_from_its_agent() -> None:
    sessions: list[SessionInfo] = [
        {"role": "agent", "name": "a"},
        {"role": "computer", "name": "c"},
        {"role": "computer"},
    ]
    assert requests.computers_in(sessions) == ["c"]


# --- tools


def test_tool_meta_is_decoded() -> None:
    assert requests.tool_meta(a_tool(a2c_tool_meta='{"tags": ["web"], "auto_apply": true}')) == {
        "tags": ["web"],
        "auto_apply": True,
    }
    assert requests.tool_meta(a_tool()) == {}
    tool = a_tool()
    del tool["meta"]
    assert requests.tool_meta(tool) == {}


@pytest.mark.parametrize("raw", ["{", "[]", 3])
def test_tool_meta_that_is_no_object_is_an_error(raw: Any) -> None:
    with pytest.raises(BadRequestError):
        requests.tool_meta(a_tool(a2c_tool_meta=raw))


# --- documents


def test_uris_carry_what_differs_from_the_default() -> None:
    assert requests.document_pages_uri(DOCUMENT, 0, 20) == f"{DOCUMENT}?depth=pages"
    assert requests.document_pages_uri(DOCUMENT, 20, 50) == f"{DOCUMENT}?depth=pages&offset=20&limit=50"
    assert requests.page_of(DOCUMENT, 3, "json", None) == f"{DOCUMENT}/pages/3"
    assert requests.page_of(DOCUMENT, 3, "markdown", ["table", "chart"]) == (
        f"{DOCUMENT}/pages/3?format=markdown&categories=table,chart"
    )
    assert requests.element_of(DOCUMENT, "t/1", "json") == f"{DOCUMENT}/elements/t%2F1"


def test_a_default_replaces_what_the_uri_says() -> None:
    assert requests.page_of(f"{DOCUMENT}?format=text", 0, "json", None) == f"{DOCUMENT}/pages/0?format=json"
    assert requests.document_pages_uri(f"{DOCUMENT}?offset=40", 0, 20) == f"{DOCUMENT}?offset=0&depth=pages"
    assert requests.document_pages_uri(f"{DOCUMENT}?format=text", 0, 20) == f"{DOCUMENT}?format=json&depth=pages"


def test_an_impossible_uri_is_refused_before_it_is_sent() -> None:
    with pytest.raises(InvalidDPEURIError):
        requests.page_of("dpe://com.example", 0, "json", None)
    with pytest.raises(InvalidDPEURIError):
        requests.page_of(DOCUMENT, 0, "pdf", None)


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ({"text": '{"a": 1}', "mimeType": "application/json"}, {"a": 1}),
        ({"text": '{"a": 1}', "mimeType": "application/json; charset=utf-8"}, {"a": 1}),
        ({"text": '{"a": 1}'}, {"a": 1}),
        ({"text": "# title"}, "# title"),
        ({"text": "1", "mimeType": "text/markdown"}, "1"),
    ],
)
def test_json_is_decoded_and_everything_else_is_text(content: Any, value: Any) -> None:
    assert requests.read_document([{"uri": "dpe://h/d", "blob": ""}, content]) == value


@pytest.mark.parametrize("contents", [[], [{"blob": "AA=="}], [{"text": "{", "mimeType": "application/json"}]])
def test_a_document_without_readable_text_is_an_error(contents: Any) -> None:
    with pytest.raises(BadRequestError):
        requests.read_document(contents)


@pytest.mark.parametrize("index", ["text", {}, {"pages": [{"title": "no index"}]}, {"pages": {}}])
def test_an_index_without_pages_is_an_error(index: Any) -> None:
    with pytest.raises(BadRequestError):
        requests.pages_in(index)


def test_an_index_goes_on_until_its_total() -> None:
    pages = [{"page_index": n} for n in range(3)]
    assert requests.next_offset({"pages": pages, "page_total": 7}, 0) == 3
    assert requests.next_offset({"pages": pages, "page_total": 6}, 3) is None
    assert requests.next_offset({"pages": [], "page_total": 6}, 3) is None
    assert requests.next_offset({"pages": pages}, 0) is None

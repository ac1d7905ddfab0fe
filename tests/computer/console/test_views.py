"""What the console shows, as JSON: exact, and with nothing hidden."""

import json
from typing import Any

from a2c_smcp.computer.calls.log import EndedCall, WatchedCall
from a2c_smcp.computer.console.page_json import encoded
from a2c_smcp.computer.console.views import call_view, ended_view, export_view, result_view, table_view


def call(**more: object) -> WatchedCall:
    fields = {"id": "1", "req_id": "r", "agent": "ada", "server": "s", "tool": "t", "name": "s.t", "arguments": {}}
    return WatchedCall(**{**fields, "timeout": 20.0, "started_at": 1.0, **more})  # type: ignore[arg-type]


def test_a_list_shows_the_beginning_of_long_arguments_and_the_whole_is_asked_for() -> None:
    long = call(arguments={"text": "x" * 10_000})
    assert call_view(long)["cut"] and len(call_view(long)["arguments"]) < 1000
    assert json.loads(call_view(long, None)["arguments"]) == long.arguments


def test_images_are_shown_and_nothing_else_becomes_a_url() -> None:
    content = [
        {"type": "image", "mimeType": "image/png", "data": "AAAA"},
        {"type": "image", "mimeType": "text/html", "data": "AAAA"},
        {"type": "audio", "mimeType": "audio/wav", "data": "AAAA"},
        {"type": "resource", "resource": {"uri": "x://y", "text": "inside"}},
        {"type": "resource_link", "uri": "javascript:alert(1)", "name": "n"},
        {"type": "text", "text": "words"},
    ]
    result = {"meta": None, "content": content, "structuredContent": {"n": 10**30}, "isError": False}
    ended = EndedCall(call(), 0.5, result, None)  # type: ignore[arg-type]
    shown = result_view(ended)
    assert [item.get("url") for item in shown["content"]] == ["data:image/png;base64,AAAA", *[None] * 5]
    assert [item["type"] for item in shown["content"]] == ["image", "other", "other", "text", "text", "text"]
    assert str(10**30) in shown["structured"]
    assert "content" not in ended_view(ended) and ended_view(ended)["text"] == "words"


def test_what_is_exported_can_be_read_and_what_nests_too_deeply_is_left_out() -> None:
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    result: Any = {"meta": None, "content": [], "structuredContent": {"n": 10**30}, "isError": False}
    for arguments, kept in (({"big": 10**30}, {"big": 10**30}), ({"x": deep}, "(nested too deeply to be shown)")):
        exported = export_view(EndedCall(call(arguments=arguments), 0.5, result, None))
        read = json.loads(encoded(exported))
        assert read["arguments"] == kept
        assert (read["result"], read["outcome"]) == (result, "succeeded")
        assert read["started_at"] == "1970-01-01T00:00:01+00:00"


def test_the_cells_of_a_table_are_text_and_what_is_no_table_is_none() -> None:
    content = {"headers": ["a", 2], "rows": [[10**30, None, "<b>"], "no row", [[1]]]}
    assert table_view(content) == {"headers": ["a", "2"], "rows": [[str(10**30), "", "<b>"], ["[1]"]], "cut": False}
    assert (
        table_view({"rows": [[1]] * 2000}) is not None and table_view(None) is None and table_view({"rows": 1}) is None
    )

"""What each dialect looks like: decisions only, no sockets."""

import base64
import hashlib
import json
from typing import Any

import pytest

from a2c_smcp.dialects.at_the_server import LARGEST_FOR_04, answer_for, largest_for
from a2c_smcp.dialects.blobs import KeptBlob, blob_error, chunk_of, handle_in, with_handles, without_handle
from a2c_smcp.dialects.bundle_ids import BundleIds, bundle_id_of, check_bundle_id
from a2c_smcp.dialects.call_times import tool_seconds
from a2c_smcp.dialects.empty_answers import empty_answer
from a2c_smcp.dialects.flat_errors import KNOWN_CODES, flat_payload
from a2c_smcp.dialects.handshake import (
    Dialect,
    announces_ours,
    announces_stamps,
    client_query,
    dialect_of_client,
    marked_as_ours,
    max_payload_in,
    refused_version,
)
from a2c_smcp.dialects.marks import MARK, MARK_FIELD, is_marked
from a2c_smcp.dialects.shapes import config_for_04, resource_for_04, tools_for_04
from a2c_smcp.errors import (
    BadRequestError,
    NotFoundError,
    PayloadTooLargeError,
    SMCPError,
    TooManyRequestsError,
    error_from_payload,
)
from a2c_smcp.server.envelopes import read_message
from a2c_smcp.server.own_fields import with_field
from a2c_smcp.wire import Encoded

# --- handshakes


@pytest.mark.parametrize(
    ("query", "dialect"),
    [
        ("", Dialect.OLDER),
        ("EIO=4&transport=websocket", Dialect.OLDER),
        ("a2c_version=0.4.0", Dialect.V0_4),
        ("a2c_version=0.4.9&EIO=4", Dialect.V0_4),
        ("a2c_version=1.0.0", Dialect.V0_4),
        ("a2c_version=0.1.2", Dialect.OLDER),
        ("a2c_version=abc", Dialect.OLDER),
        ("a2c_version=٠.٤.٠", Dialect.OLDER),
        ("a2c_version=0.4.0&a2c_office=1", Dialect.OURS),
        ("a2c_office=1", Dialect.OURS),
        ("a2c_version=0.4.0&a2c_office=0", Dialect.V0_4),
    ],
)
def test_the_query_of_a_client_says_what_it_speaks(query: str, dialect: Dialect) -> None:
    assert dialect_of_client(query) is dialect


def test_our_clients_are_known_by_our_servers() -> None:
    fields = client_query()
    assert dialect_of_client("&".join(f"{key}={value}" for key, value in fields.items())) is Dialect.OURS


def test_a_server_of_ours_says_so_and_nobody_else_does() -> None:
    assert announces_ours(marked_as_ours({"sid": "x"}))
    assert announces_stamps(marked_as_ours({"sid": "x"}))
    assert not any(map(announces_stamps, ({"sid": "x", "a2c_office": 1}, None, [], {"stamps": "true"}, {"stamps": 1})))
    assert not any(map(announces_ours, ({"sid": "x"}, None, [], {"a2c_office": "yes"})))


@pytest.mark.parametrize(
    ("greeting", "most"),
    [
        ('0{"sid":"x","maxPayload":1000000}', 1_000_000),
        ('0{"sid":"x","maxPayload":1000000}\x1e40', 1_000_000),
        ('0{"sid":"x"}', None),
        ('0{"maxPayload":true}', None),
        ('0{"maxPayload":-1}', None),
        ("0{", None),
        ("40", None),
        (None, None),
    ],
)
def test_the_greeting_of_a_server_says_how_much_it_takes(greeting: str | None, most: int | None) -> None:
    assert max_payload_in(greeting) == most


@pytest.mark.parametrize(
    ("body", "version"),
    [
        ('{"code":4008,"server_version":"0.5.0"}', "0.5.0"),
        ('{"code":4008,"server_version":"0.5.0&x=1"}', None),
        ('{"code":4008}', None),
        ('{"code":400,"server_version":"0.5.0"}', None),
        ('"The client is using an unsupported version"', None),
        ("[]", None),
        ("", None),
    ],
)
def test_only_a_refused_version_is_come_back_with(body: str, version: str | None) -> None:
    assert refused_version(body) == version


# --- marks


def test_a_mark_is_the_last_field_of_the_payload_and_the_rest_stays_as_it_was() -> None:
    body = '["client:get_tools", {"agent": "a{}", "req_id":"r","computer":"c"} ]'
    assert read_message(body).body == body
    marked = with_field(body, MARK_FIELD, MARK)
    name, payload = json.loads(marked)
    assert (name, is_marked(payload), list(payload)[-1]) == ("client:get_tools", True, MARK_FIELD)
    assert {key: payload[key] for key in ("agent", "req_id", "computer")} == json.loads(body)[1]
    assert marked.startswith(body[: body.rindex("}")])
    assert not any(map(is_marked, ({}, None, [], {"a2c_dialect": True})))


# --- the ids of servers


def _server(name: str, kind: str = "stdio", **parameters: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "server_parameters": parameters}


@pytest.mark.parametrize(
    ("config", "bundle_id"),
    [
        (_server("img srv!", command="python"), "img_srv"),
        (_server("__a--b__"), "a--b"),
        (_server("My.Server"), "My_Server"),
        (_server("a__b"), "a_b"),
        (_server("é-a"), "a"),
        (_server("中文", command="python"), "bundle_2f60295016d3539d"),
        (
            _server("中文", command="python", args=["-m", "x"], env={"B": "2", "A": "${input:k}"}),
            "bundle_744596a78a45e1f4",
        ),
        (_server("!!", "streamable", url="http://h/mcp", headers={"X": "1"}), "bundle_8e0d6f176c65ceca"),
        ({**_server("x"), "bundle_id": "given-one"}, "given-one"),
        ({**_server("x"), "bundle_id": "a__b"}, "x"),
    ],
)
def test_the_id_of_a_server_is_the_one_that_release_0_4_2_makes(config: dict[str, Any], bundle_id: str) -> None:
    assert bundle_id_of(config) == bundle_id


def test_an_id_that_0_4_peers_refuse_is_refused_here() -> None:
    assert check_bundle_id("a-b_C1") == "a-b_C1"
    for text in ("a__b", "", "a b", "é"):
        with pytest.raises(ValueError, match="must consist of"):
            check_bundle_id(text)


def test_two_servers_with_one_id_stay_apart() -> None:
    ids = BundleIds([_server("a.b"), _server("a_b"), _server("c")])
    assert ids.by_server["a.b"] == "a_b"
    assert ids.by_server["a_b"].startswith("bundle_")
    assert {ids.servers[each] for each in ids.by_server.values()} == {"a.b", "a_b", "c"}


def test_a_tool_is_found_by_the_name_that_was_shown_and_by_its_own() -> None:
    ids, servers = BundleIds([_server("my srv"), _server("b")]), {"echo": "my srv", "x__y": "b"}
    assert ids.shown_name("my srv", "echo") == "my_srv__echo"
    assert ids.own_name("my_srv__echo", servers) == "echo"
    assert ids.own_name("b__x__y", servers) == "x__y"
    assert ids.own_name("echo", servers) == "echo"
    assert ids.own_name("x__y", servers) == "x__y"
    assert ids.own_name("b__echo", servers) == "b__echo", "it is a tool of another server"
    assert ids.own_name("b__forbidden", servers) == "forbidden", "the error is that of the tool, not of the name"
    assert ids.own_name("nobody__echo", servers) == "nobody__echo"


def test_an_id_that_ends_in_an_underscore_is_found() -> None:
    ids = BundleIds([{"name": "a", "bundle_id": "a"}, {"name": "b", "bundle_id": "a_"}])
    assert ids.own_name(ids.shown_name("b", "x"), {"x": "b"}) == "x"
    assert ids.own_name(ids.shown_name("a", "_x"), {"_x": "a", "y": "b"}) == "_x"
    assert ids.own_name("a___y", {}) == "y"


# --- errors


def test_an_error_that_they_know_is_flat_beside_nested() -> None:
    said = flat_payload("client:get_skill", NotFoundError("gone", {"a": 1}))
    assert (said["code"], said["message"], said["details"]) == (404, "gone", {"a": 1})
    assert said["error"]["code"] == 404


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ("client:get_resources", 4015),
        ("client:get_skills", 4017),
        ("client:get_skill", 4017),
        ("client:get_blob", 4018),
        ("client:put_blob", 4019),
    ],
)
def test_an_error_that_they_do_not_know_gets_a_code_that_they_know(event: str, code: int) -> None:
    for error in (BadRequestError("no"), TooManyRequestsError("slow down"), SMCPError(4103, "nowhere")):
        said = flat_payload(event, error)
        assert said["code"] == code
        assert said["code"] in KNOWN_CODES
        assert said["details"]["error_code"] == error.code
        assert (found := error_from_payload(said)) is not None
        assert found.code == error.code, "our own agents read the nested one"


def test_a_failed_call_is_a_result_that_they_show() -> None:
    said = flat_payload("client:tool_call", TooManyRequestsError("slow down"))
    assert (said["isError"], said["content"][0]["text"], said["meta"]) == (True, "slow down", {"error_code": 429})
    assert "code" not in said
    assert flat_payload("client:tool_call", NotFoundError("no such computer"))["code"] == 404


# --- what our server does


def test_an_agent_of_0_4_gets_no_answer_that_ends_its_connection() -> None:
    small, large = Encoded('{"tools":[]}'), Encoded('"' + "x" * LARGEST_FOR_04 + '"')
    assert answer_for(Dialect.V0_4, "client:get_tools", small, None) is small
    with pytest.raises(PayloadTooLargeError, match="this agent"):
        answer_for(Dialect.V0_4, "client:get_tools", large, None)
    assert answer_for(Dialect.OURS, "client:get_tools", large, None) is large
    assert [largest_for(each, 16) for each in Dialect] == [16, 16, 16]
    assert [largest_for(each, 2**30) for each in (Dialect.OURS, Dialect.V0_4)] == [2**30, LARGEST_FOR_04]


def test_a_nested_error_of_a_computer_is_made_flat_once() -> None:
    error = NotFoundError("gone")
    nested = Encoded(json.dumps(error.payload()))
    flat = answer_for(Dialect.V0_4, "client:get_skill", nested, error)
    assert json.loads(flat.text)["code"] == 404
    assert answer_for(Dialect.V0_4, "client:get_skill", flat, error) is flat


def test_only_the_catalogue_has_an_empty_answer() -> None:
    assert empty_answer("client:get_finder", "r") == {"documents": [], "total_count": 0, "req_id": "r"}
    assert empty_answer("client:get_tools", "r") is None


# --- shapes


def test_tools_and_configs_are_found_by_the_id_of_their_server() -> None:
    ids = BundleIds([_server("my srv")])
    tool: Any = {"name": "echo", "description": "", "params_schema": {}, "return_schema": None, "meta": {}}
    [shown] = tools_for_04([tool], ids, {"echo": "my srv"})
    assert (shown["name"], shown["bundle_id"], shown["return_schema"]) == ("my_srv__echo", "my_srv", None)
    assert tool["name"] == "echo"
    config: Any = {
        "inputs": [
            {"id": "i", "type": "pickString", "description": "", "options": ["a", "b"], "labels": {"b": "B"}},
            {"id": "j"},
        ],
        "servers": {"my srv": {"name": "my srv"}},
        "server_info": {"my srv": {"state": "running"}},
    }
    made = config_for_04(config, ids)
    assert made["servers"] == {"my_srv": {"name": "my srv", "bundle_id": "my_srv"}}
    assert made["inputs"][0]["options"] == [{"label": "a", "value": "a"}, {"label": "B", "value": "b"}]
    assert "labels" not in made["inputs"][0]
    assert made["server_info"] == {"my_srv": {"state": "running"}}


def test_a_resource_has_their_spelling_and_nothing_that_is_absent() -> None:
    resource = {"uri": "u", "name": "n", "mimeType": "t", "title": "x", "annotations": {"lastModified": "d"}}
    expected = {"uri": "u", "name": "n", "mime_type": "t", "annotations": {"last_modified": "d"}}
    assert resource_for_04(resource) == expected
    assert resource_for_04({"uri": "u", "name": "n", "annotations": {}, "size": None}) == {"uri": "u", "name": "n"}


@pytest.mark.parametrize(("timeout", "seconds"), [(1, 0.8), (10, 9.5), (3600, 3599.5)])
def test_a_computer_answers_while_a_0_4_server_still_waits(timeout: float, seconds: float) -> None:
    assert tool_seconds(Dialect.V0_4, timeout) == pytest.approx(seconds)
    assert tool_seconds(Dialect.OURS, timeout) == timeout


# --- blobs


def _image(size: int) -> dict[str, Any]:
    return {"type": "image", "mimeType": "image/png", "data": base64.b64encode(b"x" * size).decode()}


def test_binary_content_over_the_limit_gets_a_handle_and_nothing_else_does() -> None:
    kept: list[KeptBlob] = []

    def keep(blob: KeptBlob) -> str:
        kept.append(blob)
        return f"h{len(kept)}"

    resource = {"type": "resource", "resource": {"uri": "u", "mimeType": "a/b", "blob": _image(40_000)["data"]}}
    text = {"type": "text", "text": "x" * 100_000}
    odd = {"type": "image", "mimeType": "image/png", "data": "not base64 " * 10_000}
    items = [_image(32_768), {**_image(32_769), "_meta": {"k": 1}}, resource, text, odd]
    made = with_handles({"content": items, "isError": False, "meta": None, "structuredContent": None}, keep)["content"]
    assert made[0] == items[0]
    digest = hashlib.sha256(b"x" * 32_769).hexdigest()
    assert made[1]["data"] == ""
    assert made[1]["_meta"] == {"k": 1, "a2c_blob_handle": "h1", "a2c_total_size": 32_769, "a2c_sha256": digest}
    assert (made[2]["resource"]["blob"], made[2]["_meta"]["a2c_blob_handle"]) == ("", "h2")
    assert [made[3], made[4]] == [text, odd]
    assert [len(blob.data) for blob in kept] == [32_769, 40_000]
    handle = handle_in(made[1]["_meta"])
    assert handle is not None
    assert (handle.handle, handle.total_size) == ("h1", 32_769)
    assert without_handle(made[1]["_meta"]) == {"k": 1}


@pytest.mark.parametrize(
    "meta", [None, {}, {"a2c_blob_handle": "h"}, {"a2c_blob_handle": "h", "a2c_total_size": 1e9, "a2c_sha256": "x"}]
)
def test_a_handle_that_cannot_be_fetched_is_none(meta: Any) -> None:
    assert handle_in(meta) is None


def test_a_chunk_is_clamped_and_its_end_is_said() -> None:
    blob = KeptBlob(bytes(300_000), "image/png", "digest")

    def asked(**fields: int) -> Any:
        return {"agent": "a", "req_id": "r", "computer": "c", "blob_handle": "h", **fields}

    first = chunk_of(asked(), blob)
    assert (len(base64.b64decode(first["blob"])), first["eof"]) == (262_144, False)
    last = chunk_of(asked(chunk_offset=262_144, max_chunk_bytes=10**9), blob)
    assert (len(base64.b64decode(last["blob"])), last["eof"]) == (300_000 - 262_144, True)
    assert chunk_of(asked(chunk_offset=300_000), blob)["eof"] is True
    for offset in (300_001, -1):
        with pytest.raises(SMCPError) as caught:
            chunk_of(asked(chunk_offset=offset), blob)
        assert (caught.value.code, caught.value.details) == (4018, blob_error("range").details)

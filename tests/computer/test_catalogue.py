"""Everything under *Tools* in the contract: names, clashes, merged meta, and the shape that agents see."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import Tool

from a2c_smcp.computer.mcp_clients.catalogue import Catalogue, ToolListing, merge_meta, with_server_names
from a2c_smcp.computer.mcp_clients.model import MCPServerConfig, parse_server
from a2c_smcp.errors import SMCPError, ToolNameDuplicatedError
from a2c_smcp.smcp import GET_TOOLS_EVENT, SMCPTool
from a2c_smcp.wire import codec, parse_response


def config(name: str, **fields: Any) -> MCPServerConfig:
    return parse_server({"name": name, "type": "stdio", "server_parameters": {"command": "x"}, **fields})


def tool(name: str, **fields: Any) -> Tool:
    return Tool.model_validate({"name": name, "inputSchema": {"type": "object"}, **fields})


def listing(server: str, *names: str, **fields: Any) -> ToolListing:
    return ToolListing(config(server, **fields), tuple(map(tool, names)))


def boot(listings: Iterable[ToolListing]) -> tuple[Catalogue, dict[str, ToolNameDuplicatedError]]:
    """Servers that start together, taken in as the manager does it."""
    catalogue, failed = Catalogue(), {}
    for found in listings:
        try:
            catalogue = catalogue.update(found)
        except ToolNameDuplicatedError as error:
            failed[found.server] = error
    return catalogue, failed


def started(*listings: ToolListing) -> Catalogue:
    catalogue, failed = boot(listings)
    assert failed == {}
    return catalogue


def names(catalogue: Catalogue) -> list[str]:
    return [shown["name"] for shown in catalogue.tools]


def owners(catalogue: Catalogue) -> dict[str, str]:
    return {name: shown.server for name, shown in catalogue.shown.items()}


def code_of(catalogue: Catalogue, name: str) -> int:
    with pytest.raises(SMCPError) as caught:
        catalogue.resolve(name)
    return caught.value.code


def clash(error: SMCPError) -> tuple[str, list[str]]:
    assert isinstance(error, ToolNameDuplicatedError)
    assert "ToolMeta.alias" in error.message
    assert "tool_prefix" in error.message
    return str(error.tool_name), error.servers


def described(mcp_tool: Tool, **fields: Any) -> SMCPTool:
    """The tool as agents see it."""
    [shown] = started(ToolListing(config("a", **fields), (mcp_tool,))).tools
    return shown


# --- names


def test_a_tool_is_shown_under_its_own_name() -> None:
    shown = started(listing("a", "read")).resolve("read")
    assert (shown.server, shown.original, shown.meta) == ("a", "read", None)


def test_an_alias_replaces_the_name() -> None:
    catalogue = started(listing("a", "read", tool_meta={"read": {"alias": "fetch"}}))
    assert names(catalogue) == ["fetch"]
    assert catalogue.resolve("fetch").original == "read"


def test_a_call_may_use_the_shown_name_only() -> None:
    assert code_of(started(listing("a", "read", tool_meta={"read": {"alias": "fetch"}})), "read") == 4001


def test_a_prefix_stands_before_every_name_that_is_no_alias() -> None:
    catalogue = started(listing("a", "read", "rm", tool_prefix="a_", tool_meta={"rm": {"alias": "clean"}}))
    assert names(catalogue) == ["a_read", "clean"]
    assert catalogue.resolve("a_read").original == "read"
    assert code_of(catalogue, "read") == 4001


def test_forbidden_tools_and_tool_meta_know_a_prefixed_tool_by_its_own_name() -> None:
    fields: dict[str, Any] = {"tool_prefix": "a_", "forbidden_tools": ["rm"], "tool_meta": {"read": {"tags": ["t"]}}}
    catalogue = started(listing("a", "read", "rm", **fields))
    assert names(catalogue) == ["a_read"]
    assert code_of(catalogue, "a_rm") == 4002
    meta = catalogue.resolve("a_read").meta
    assert meta is not None
    assert meta.tags == ["t"]


def test_an_empty_alias_is_no_alias() -> None:
    assert names(started(listing("a", "read", tool_meta={"read": {"alias": ""}}))) == ["read"]


def test_tools_come_in_config_order_and_then_in_list_order() -> None:
    assert names(started(listing("z", "b", "a"), listing("a", "d", "c"))) == ["b", "a", "d", "c"]


def test_an_unknown_tool_is_4001() -> None:
    assert code_of(Catalogue(), "read") == 4001


def test_a_name_as_long_as_a_message_is_not_repeated_whole() -> None:
    with pytest.raises(SMCPError) as caught:
        Catalogue().resolve("x" * 100_000)
    assert len(caught.value.message) < 300


# --- forbidden tools


def test_a_forbidden_tool_is_not_listed_and_calling_it_is_4002() -> None:
    catalogue = started(listing("a", "read", "rm", forbidden_tools=["rm"]))
    assert names(catalogue) == ["read"]
    assert code_of(catalogue, "rm") == 4002


@pytest.mark.parametrize("banned", ["rm", "clean"])
def test_forbidden_tools_match_alias_or_original_name(banned: str) -> None:
    catalogue = started(listing("a", "rm", tool_meta={"rm": {"alias": "clean"}}, forbidden_tools=[banned]))
    assert names(catalogue) == []
    assert code_of(catalogue, "clean") == 4002


def test_a_name_that_is_forbidden_is_4002_also_when_the_tool_is_aliased() -> None:
    catalogue = started(listing("a", "rm", tool_meta={"rm": {"alias": "clean"}}, forbidden_tools=["rm"]))
    assert code_of(catalogue, "rm") == 4002


def test_forbidden_tools_never_clash() -> None:
    catalogue = started(listing("a", "rm", forbidden_tools=["rm"]), listing("b", "rm"))
    assert owners(catalogue) == {"rm": "b"}


# --- clashes at boot


def test_at_boot_the_later_server_fails_as_a_whole_and_the_others_work() -> None:
    catalogue, failed = boot([listing("a", "read"), listing("b", "write", "read"), listing("c", "count")])
    assert owners(catalogue) == {"read": "a", "count": "c"}
    assert {server: clash(error) for server, error in failed.items()} == {"b": ("read", ["a", "b"])}


def test_a_server_that_lost_takes_no_name_away() -> None:
    catalogue, failed = boot([listing("a", "x"), listing("b", "x", "y"), listing("c", "y")])
    assert owners(catalogue) == {"x": "a", "y": "c"}
    assert list(failed) == ["b"]


def test_two_alike_inside_one_server_are_the_same_error() -> None:
    catalogue, failed = boot([listing("a", "x", "y", tool_meta={"y": {"alias": "x"}}), listing("b", "z")])
    assert owners(catalogue) == {"z": "b"}
    assert clash(failed["a"]) == ("x", ["a", "a"])


def test_a_clash_names_every_name_and_every_server() -> None:
    _, failed = boot([listing("a", "read", "write"), listing("b", "stat"), listing("c", "write", "x", "stat", "read")])
    error = failed["c"]
    assert error.tool_names == ["write", "stat", "read"]
    assert error.servers == ["a", "b", "c"]
    assert all(word in error.message for word in ("write", "stat", "read", "'a'", "'b'", "'c'"))


def test_a_prefix_solves_a_clash() -> None:
    catalogue = started(listing("a", "read", "write"), listing("b", "read", "write", tool_prefix="b_"))
    assert owners(catalogue) == {"read": "a", "write": "a", "b_read": "b", "b_write": "b"}


def test_an_alias_solves_a_clash() -> None:
    catalogue = started(listing("a", "read"), listing("b", "read", tool_meta={"read": {"alias": "read_b"}}))
    assert owners(catalogue) == {"read": "a", "read_b": "b"}


def test_an_alias_can_clash_too() -> None:
    _, failed = boot([listing("a", "read"), listing("b", "get", default_tool_meta={"alias": "read"})])
    assert clash(failed["b"]) == ("read", ["a", "b"])


# --- clashes by update


def test_an_update_that_clashes_raises_and_the_old_catalogue_stays() -> None:
    before = started(listing("a", "read"), listing("b", "write"))
    with pytest.raises(ToolNameDuplicatedError) as caught:
        before.update(listing("b", "write", tool_meta={"write": {"alias": "read"}}))
    assert clash(caught.value) == ("read", ["a", "b"])
    assert owners(before) == {"read": "a", "write": "b"}


def test_an_update_that_is_alike_inside_raises() -> None:
    with pytest.raises(ToolNameDuplicatedError) as caught:
        Catalogue().update(listing("a", "x", "x"))
    assert clash(caught.value) == ("x", ["a", "a"])


def test_a_server_does_not_clash_with_what_it_was_before() -> None:
    after = started(listing("a", "read", "write")).update(listing("a", "read", forbidden_tools=["write"]))
    assert names(after) == ["read"]


def test_an_updated_server_keeps_its_place_and_a_new_one_goes_last() -> None:
    catalogue = started(listing("a", "x"), listing("b", "y")).update(listing("c", "z")).update(listing("a", "w"))
    assert names(catalogue) == ["w", "y", "z"]


def test_a_server_that_joins_late_takes_its_place_in_config_order() -> None:
    catalogue = started(listing("b", "y")).update(listing("a", "x"), order=["a", "b"])
    assert names(catalogue) == ["x", "y"]


# --- clashes by list_changed


def test_a_clash_by_list_changed_hides_only_the_new_tool_and_is_reported() -> None:
    before = started(listing("a", "read"), listing("b", "write"))
    after, clashes = before.refresh("b", [tool("write"), tool("read"), tool("count")])
    assert owners(after) == {"read": "a", "write": "b", "count": "b"}
    assert [clash(error) for error in clashes] == [("read", ["a", "b"])]


def test_all_names_that_clash_by_one_list_changed_are_one_error() -> None:
    before = started(listing("a", "read", "write"), listing("b", "x"))
    _, [error] = before.refresh("b", [tool("x"), tool("read"), tool("write")])
    assert (error.tool_names, error.servers) == (["read", "write"], ["a", "b"])


def test_the_earlier_server_does_not_take_a_name_away_by_list_changed() -> None:
    after, clashes = started(listing("a", "x"), listing("b", "read")).refresh("a", [tool("x"), tool("read")])
    assert owners(after) == {"x": "a", "read": "b"}
    assert [clash(error) for error in clashes] == [("read", ["b", "a"])]


def test_a_clash_that_is_known_is_not_reported_again() -> None:
    tools = [tool("read"), tool("write")]
    once, _ = started(listing("a", "read"), listing("b", "write")).refresh("b", tools)
    _, clashes = once.refresh("b", [tool("read"), tool("write")])
    assert clashes == ()


def test_two_alike_inside_a_changed_list_hide_the_new_one() -> None:
    before = started(listing("a", "y", tool_meta={"x": {"alias": "y"}}))
    after, clashes = before.refresh("a", [tool("x"), tool("y")])
    assert after.resolve("y").original == "y"
    assert [clash(error) for error in clashes] == [("y", ["a", "a"])]


def test_a_hidden_tool_appears_when_its_name_is_free() -> None:
    hidden, _ = started(listing("a", "read"), listing("b", "write")).refresh("b", [tool("read")])
    assert owners(hidden.remove("a")) == {"read": "b"}
    assert owners(hidden.stop("a")) == {"read": "b"}
    assert owners(hidden.refresh("a", [])[0]) == {"read": "b"}


def test_an_update_keeps_its_names_from_a_hidden_tool_that_comes_earlier() -> None:
    hidden, _ = started(listing("a", "x"), listing("b", "read")).refresh("a", [tool("read")])
    assert owners(hidden.update(listing("b", "read", "more"))) == {"read": "b", "more": "b"}


def test_tools_that_vanish_from_a_list_are_gone_and_new_ones_callable() -> None:
    after, clashes = started(listing("a", "old")).refresh("a", [tool("new")])
    assert after.resolve("new").server == "a"
    assert code_of(after, "old") == 4001
    assert clashes == ()


# --- servers that come and go


def test_the_tools_of_a_stopped_server_are_not_listed_and_calling_them_is_4003() -> None:
    after = started(listing("a", "read"), listing("b", "write")).stop("a")
    assert names(after) == ["write"]
    assert code_of(after, "read") == 4003


def test_the_tools_of_a_removed_server_are_4001() -> None:
    assert code_of(started(listing("a", "read")).remove("a"), "read") == 4001


def test_a_server_that_comes_back_shows_its_tools_in_their_old_place() -> None:
    before = started(listing("a", "x"), listing("b", "y"))
    after, clashes = before.stop("a").refresh("a", [tool("x")])
    assert after.tools == before.tools
    assert clashes == ()


def test_a_server_that_comes_back_does_not_take_a_name_that_was_given_away() -> None:
    given = started(listing("a", "x")).stop("a").update(listing("b", "x"))
    after, clashes = given.refresh("a", [tool("x"), tool("y")])
    assert owners(after) == {"x": "b", "y": "a"}
    assert [clash(error) for error in clashes] == [("x", ["b", "a"])]


def test_stopping_or_removing_what_is_not_there_changes_nothing() -> None:
    catalogue = started(listing("a", "x"))
    assert catalogue.stop("b") == catalogue == catalogue.remove("b")


# --- merged meta


def test_the_meta_of_a_tool_goes_over_the_default_shallowly() -> None:
    merged = merge_meta(
        config(
            "a",
            default_tool_meta={"auto_apply": False, "tags": ["x"], "ret_object_mapper": {"a": 1}},
            tool_meta={"read": {"auto_apply": True, "ret_object_mapper": {"b": 2}}},
        ),
        "read",
    )
    assert merged is not None
    assert (merged.auto_apply, merged.tags, merged.ret_object_mapper) == (True, ["x"], {"b": 2})


def test_none_never_overrides() -> None:
    default, own = {"auto_apply": True, "own": 1}, {"auto_apply": None, "own": None}
    shown = started(listing("a", "read", default_tool_meta=default, tool_meta={"read": own})).resolve("read")
    assert shown.meta_object == {
        "auto_apply": True,
        "alias": None,
        "tags": None,
        "ret_object_mapper": None,
        "own": 1,
    }


def test_unknown_keys_are_kept_also_when_they_are_null() -> None:
    meta = {"own": {"deep": [1]}, "nil": None}
    shown = started(listing("a", "read", tool_meta={"read": meta})).resolve("read")
    assert shown.meta_object is not None
    assert meta.items() <= shown.meta_object.items()


def test_meta_is_looked_up_by_the_original_name() -> None:
    meta = {"read": {"alias": "fetch", "tags": ["r"]}, "fetch": {"tags": ["f"]}}
    shown = started(listing("a", "read", tool_meta=meta)).resolve("fetch")
    assert shown.meta is not None
    assert shown.meta.tags == ["r"]


def test_without_configured_meta_there_is_none() -> None:
    assert merge_meta(config("a", tool_meta={"other": {"tags": []}}), "read") is None


# --- the shape that agents see


def test_a_bare_tool_has_every_key() -> None:
    assert described(tool("read")) == {
        "name": "read",
        "description": "",
        "params_schema": {"type": "object"},
        "return_schema": None,
        "meta": {},
    }


def test_the_schemas_are_verbatim() -> None:
    schema = {"type": "object", "properties": {"snake_case": {"default": None}}, "$defs": {"X": {}}}
    shown = described(tool("read", description="Reads.", inputSchema=schema, outputSchema=schema))
    assert shown["description"] == "Reads."
    assert shown["params_schema"] == shown["return_schema"] == schema


def test_configured_meta_is_a_json_string_with_every_key() -> None:
    meta = described(tool("read"), default_tool_meta={"tags": ["browser"], "auto_apply": True})["meta"]
    assert meta == {
        "a2c_tool_meta": '{"auto_apply": true, "alias": null, "tags": ["browser"], "ret_object_mapper": null}'
    }


def test_annotations_are_a_json_string_by_alias() -> None:
    meta = described(tool("read", annotations={"readOnlyHint": True, "title": "读"}))["meta"]
    assert meta == {"MCP_TOOL_ANNOTATION": '{"title": "读", "readOnlyHint": true}'}


def test_the_title_is_plain_text_beside_the_title_in_the_annotations() -> None:
    meta = described(tool("read", title="读取", annotations={"title": "old"}))["meta"]
    assert meta == {"MCP_TOOL_TITLE": "读取", "MCP_TOOL_ANNOTATION": '{"title": "old"}'}


@pytest.mark.parametrize("value", ["x", True, 7, 1.5, None, [], ["a", "b"], [True], [1, 2], [1.5]])
def test_plain_values_and_lists_of_one_plain_type_stay_as_they_are(value: Any) -> None:
    meta = described(tool("read", _meta={"own": value}))["meta"]
    assert meta == {"own": value, "MCP_TOOL_META": json.dumps({"own": value})}


@pytest.mark.parametrize("value", [{}, {"a": 1}, [1, "a"], [1, True], [1, 1.5], [None], [[1]], [{}]])
def test_anything_else_is_a_json_string(value: Any) -> None:
    meta = described(tool("read", _meta={"own": value}))["meta"]
    assert meta is not None
    assert isinstance(meta["own"], str)
    assert json.loads(meta["own"]) == value


def test_the_reserved_keys_of_the_server_are_dropped() -> None:
    reserved = (
        "a2c_tool_meta",
        "MCP_TOOL_ANNOTATION",
        "MCP_TOOL_TITLE",
        "MCP_TOOL_ICONS",
        "MCP_TOOL_META",
        "MCP_SERVER_NAME",
    )
    own = {**dict.fromkeys(reserved, "spoofed"), "tags": ["own"]}
    assert described(tool("read", _meta=own))["meta"] == {"tags": ["own"], "MCP_TOOL_META": json.dumps(own)}


def test_the_name_of_the_server_stands_only_where_it_was_asked_for() -> None:
    tools = started(listing("a", "read"), listing("b", "write")).tools
    assert [shown["meta"] for shown in tools] == [{}, {}]
    named = with_server_names(tools, {"read": "a", "write": "b"})
    assert [shown["meta"] for shown in named] == [{"MCP_SERVER_NAME": "a"}, {"MCP_SERVER_NAME": "b"}]
    assert [shown["meta"] for shown in tools] == [{}, {}]
    # A server may go between the two looks: its tool costs the others nothing.
    assert [shown["meta"] for shown in with_server_names(tools, {"write": "b"})] == [{}, {"MCP_SERVER_NAME": "b"}]


def test_icons_and_meta_that_are_too_large_are_left_out() -> None:
    meta = described(tool("read", _meta={"own": "x" * 70_000}, icons=[{"src": "data:" + "x" * 70_000}]))["meta"]
    assert meta == {"own": "x" * 70_000}


def test_the_three_parts_of_meta_are_independent() -> None:
    shown = described(tool("read", _meta={"tags": ["own"]}, annotations={}), default_tool_meta={"tags": ["ours"]})
    assert shown["meta"] is not None
    assert sorted(shown["meta"]) == ["MCP_TOOL_ANNOTATION", "MCP_TOOL_META", "a2c_tool_meta", "tags"]


def test_the_tool_list_is_built_once_per_value() -> None:
    catalogue = started(listing("a", "read"))
    assert catalogue.tools is catalogue.tools


def test_the_same_list_read_again_changes_nothing_that_agents_see() -> None:
    before = started(listing("a", "read"))
    assert before.refresh("a", [tool("read")])[0].tools == before.tools
    assert before.refresh("a", [tool("read", description="new")])[0].tools != before.tools


def test_the_tool_list_passes_the_validation_of_the_wire() -> None:
    catalogue = started(listing("a", "read", default_tool_meta={"tags": ["x"]}))
    reply = {"tools": catalogue.tools, "req_id": "1"}
    assert parse_response(GET_TOOLS_EVENT, codec.loads(codec.dumps(reply))) == reply


# --- laws

servers = st.sampled_from("abc")
lists = st.lists(st.sampled_from("xyz"), max_size=3, unique=True)
steps = st.lists(st.tuples(st.sampled_from(["update", "refresh", "stop", "remove"]), servers, lists), max_size=12)


def _offered(catalogue: Catalogue) -> Iterable[str]:
    return {tool.name for listing in catalogue.listings.values() if listing.active for tool in listing.tools}


@given(steps)
def test_whatever_happens_every_offered_name_is_shown_once_by_a_server_that_offers_it(
    history: list[tuple[str, str, list[str]]],
) -> None:
    catalogue = Catalogue()
    for step, server, offers in history:
        before = owners(catalogue)
        try:
            if step == "update":
                catalogue = catalogue.update(listing(server, *offers))
            elif step == "stop":
                catalogue = catalogue.stop(server)
            elif step == "remove":
                catalogue = catalogue.remove(server)
            elif server in catalogue.listings:
                catalogue, _ = catalogue.refresh(server, map(tool, offers))
        except ToolNameDuplicatedError:
            assert owners(catalogue) == before
        assert set(catalogue.shown) == _offered(catalogue)
        for name, owner in owners(catalogue).items():
            assert name in {tool.name for tool in catalogue.listings[owner].tools}
            # Nobody else's change takes a name away from its holder.
            assert before.get(name, owner) in (owner, server)

"""The names of prompts, and which `_meta` and instructions reach a host."""

import json
from typing import Any

import mcp_types as types
import pytest

from a2c_smcp.agent.for_models.addresses import Addresses
from a2c_smcp.agent.for_models.meta import own_result_meta, tool_meta
from a2c_smcp.office_mcp.instructions import own_words, with_instructions
from a2c_smcp.office_mcp.listed_resources import listed_resources, listed_template
from a2c_smcp.office_mcp.prompts import OfficePrompt, completions, named_prompts
from a2c_smcp.office_mcp.shared_lists import ResourceLists, SharedPrompt, SharedResource

OFFICE, PC = Addresses(), Addresses("pc")


def prompt(computer: str, server: str, name: str, **more: Any) -> OfficePrompt:
    return OfficePrompt(computer, SharedPrompt(server, types.Prompt(name=name, **more)))


# --- prompts


def test_every_prompt_has_a_name_of_its_own() -> None:
    prompts = [
        prompt("pc", "a", "review"),
        prompt("my pc", "a", "review"),
        prompt("pc", "a", "two words"),
        prompt("pc", "a", "same"),
        prompt("pc", "b", "same"),
        prompt("pc", "c", "x" * 300),
    ]
    named = named_prompts(prompts, {"my pc": "mine"}, plain=False)
    assert len(named) == len(prompts)
    assert named["pc__review"] is prompts[0]
    assert named["mine__review"] is prompts[1]
    assert all(len(name) <= 45 for name in named)
    assert {name.rpartition("-")[0] for name, each in named.items() if each.shared.prompt.name == "same"} == {
        "pc__a_same",
        "pc__b_same",
    }


def test_the_prompts_of_an_only_computer_keep_their_names() -> None:
    prompts = [prompt("pc", "a", "two words"), prompt("pc", "a", "same"), prompt("pc", "b", "same")]
    named = named_prompts(prompts, None, plain=True)
    assert named["two words"] is prompts[0]
    assert len(named) == 3
    assert "same" not in named  # it would mean one of two


def test_a_prompt_says_whose_it_is_unless_there_is_one_computer() -> None:
    asked = [types.PromptArgument(name="x", required=True)]
    each = prompt("pc", "a", "review", title="Review\x07", description="Says", arguments=asked, _meta={"p": 1})
    shown = each.as_mcp("pc__review", plain=False)
    assert (shown.name, shown.description) == ("pc__review", "On pc: Says")
    assert shown.title is not None
    assert shown.title.endswith("(pc)") and "\x07" not in shown.title
    assert (shown.arguments, shown.meta) == (asked, {"p": 1})
    assert each.as_mcp("review", plain=True) == each.shared.prompt


def test_completions_are_bounded() -> None:
    found = completions({"values": [str(n) for n in range(150)], "total": "many"})
    assert (len(found.values), found.more, found.total) == (100, True, None)
    assert completions({"values": ["a"], "total": 3, "hasMore": False}).total == 3


# --- resources


def test_a_window_and_a_document_keep_what_their_server_lists_and_others_follow() -> None:
    icon = types.Icon(src="https://example.com/i.png")
    listed = {
        "window://a/b": types.Resource(uri="window://a/b", name="b", title="The log", icons=[icon]),
        "test://x": types.Resource(uri="test://x", name="x", size=3, _meta={"r": 1}),
    }
    shared = ResourceLists({uri: SharedResource("s", each) for uri, each in listed.items()})
    desktop, window, old, other = listed_resources("pc", OFFICE, ["window://a/b", "window://a/old"], [], shared)
    assert desktop.uri == "a2c://pc/desktop"
    assert (window.uri, window.title, window.icons) == ("a2c://pc/window/a/b", "The log (pc)", [icon])
    assert (old.uri, old.name) == ("a2c://pc/window/a/old", "window://a/old (pc)")
    assert (other.uri, other.title, other.size, other.meta) == ("a2c://pc/test/x", "x (pc)", 3, {"r": 1})
    _, *local = listed_resources("pc", PC, ["window://a/b"], [], shared)
    assert local == list(listed.values())


def test_a_template_stays_a_template() -> None:
    template = types.ResourceTemplate(name="data", uri_template="test://t/{id}/data")
    assert listed_template(template, "pc", OFFICE).uri_template == "a2c://pc/test/t/{id}/data"
    assert listed_template(template, "pc", PC) == template


# --- `_meta`


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        (None, None),
        ({}, None),
        ({"x": 1, "state": "mine"}, {"x": 1, "state": "mine"}),
        ({"error_code": 4003, "state": "failed", "reason": "r", "x": 1}, {"x": 1}),
        ({"a2c_timeout": True}, None),
        ({"io.modelcontextprotocol/serverInfo": {}, "com.example/x": {}}, {"com.example/x": {}}),
    ],
)
def test_the_meta_of_a_result_is_its_servers(meta: dict[str, Any] | None, expected: dict[str, Any] | None) -> None:
    assert own_result_meta(meta) == expected


def test_the_user_interface_of_a_tool_is_that_of_its_computer() -> None:
    meta = {
        "ui": {"resourceUri": "ui://shop/app.html", "visibility": ["app"]},
        "ui/resourceUri": "ui://shop/old",
        "x": 1,
    }
    assert tool_meta(json.dumps(meta), "pc", PC, 1000) == meta
    shown = tool_meta(json.dumps(meta), "my pc", OFFICE, 1000)
    assert shown == {
        "ui": {"resourceUri": "ui://a2c/my%20pc/shop/app.html", "visibility": ["app"]},
        "ui/resourceUri": "ui://a2c/my%20pc/shop/old",
        "x": 1,
    }


@pytest.mark.parametrize("text", [None, 3, "", "{", "[]", "{}", "[" * 5000, json.dumps({"x": "y" * 2000})])
def test_a_meta_that_is_none_or_too_long_is_left_out(text: Any) -> None:
    assert tool_meta(text, "pc", OFFICE, 1000) is None


# --- instructions


def test_instructions_name_their_server_and_are_bounded() -> None:
    text = with_instructions("Own words.", [("pc", "mail", "Ask first."), ("pc", "big\x07", "x" * 5000)])
    assert text.startswith("Own words. What MCP servers say follows.")
    assert "\n\nThe MCP server mail on pc says:\n> Ask first.\n\nThe MCP server big" in text
    assert with_instructions("Own words.", []) == "Own words."
    assert "\x07" not in text
    many = with_instructions(own_words(None), [("pc", f"s{n}", "x" * 5000) for n in range(100)])
    assert len(many) < 12_000

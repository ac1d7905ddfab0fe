"""The tools of an office at one moment, also of computers that have far too many."""

import logging
from typing import Any

import pytest

from a2c_smcp.agent.for_models.tool_directory import MOST_TOOLS, SchemaNews, ToolDirectory


def a_tool(name: str, description: str = "Reads", schema: Any = None, output: Any = None) -> Any:
    arguments = {"type": "object"} if schema is None else schema
    return {"name": name, "description": description, "params_schema": arguments, "return_schema": output}


def test_of_a_computer_with_far_too_many_tools_some_are_taken_and_others_lose_none() -> None:
    many = [a_tool(f"tool {number}") for number in range(MOST_TOOLS * 2)]
    directory = ToolDirectory({"evil": many, "laptop": [a_tool("echo"), a_tool("read")]})
    assert len(directory) == MOST_TOOLS + 2
    assert [found.name for found in directory.search("read", "laptop")][:1] == ["laptop__read"]
    assert directory.find("evil", "tool 0") is not None


def test_a_tool_that_is_described_by_its_name_is_found_by_it() -> None:
    directory = ToolDirectory({"pc": [a_tool("a", "send the mail"), a_tool("mail", "mail")]})
    assert [found.tool["name"] for found in directory.search("mail")] == ["mail", "a"]


def test_what_is_left_out_of_schemas_is_kept_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    odd = a_tool("odd", schema={"type": "object", "properties": {"a": {"type": "int"}}}, output={"type": "array"})
    news = SchemaNews()
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            directory = ToolDirectory({"pc": [a_tool("plain"), odd]}, news=news)
            assert [tool.name for tool in directory.listing] == ["pc__plain", "pc__odd"]
    assert directory.left_out == {
        "pc": {"odd": ("type with a value that hosts refuse", "an output schema (a type that is not object)")}
    }
    [record] = [record for record in caplog.records if "cannot read" in record.message]
    assert "odd on pc" in record.getMessage()
    listed = directory.listing[1]
    assert listed.input_schema == {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert listed.output_schema is None
    # What is shown is not what is checked.
    assert directory.by_name["pc__odd"].tool["params_schema"]["properties"]["a"] == {"type": "int"}


def test_a_computer_that_fills_the_list_gets_outlines_and_others_lose_nothing() -> None:
    about = {f"a{n}": {"type": "string", "description": "x" * 500} for n in range(50)}
    large = [a_tool(f"t{n}", "y" * 20_000, {"type": "object", "properties": about}) for n in range(39)]
    honest = [a_tool("echo", "Echo " * 100, {"type": "object", "properties": about})]
    directory = ToolDirectory({"evil": large, "pc": honest})
    shown = {tool.name: tool.model_dump_json() for tool in directory.listing}
    assert len(shown) == 40
    assert sum(len(text) for name, text in shown.items() if name.startswith("evil")) < 350_000
    assert "a49" in directory.listing[-1].input_schema["properties"]
    assert "x" * 500 in shown["pc__echo"] and directory.listing[-1].description == f"On pc: {'Echo ' * 100}"


def test_the_names_of_the_server_and_of_the_computer_are_searched() -> None:
    server: Any = {**a_tool("get_it"), "meta": {"MCP_SERVER_NAME": "notion-work"}}
    directory = ToolDirectory({"study": [a_tool("read"), server], "kitchen": [a_tool("look")]})
    assert directory.search("notion")[0].name == "study__get_it"
    assert [found.computer for found in directory.search("kitchen")] == ["kitchen"]


def test_a_weak_search_also_names_what_comes_after_the_best() -> None:
    directory = ToolDirectory({"pc": [a_tool(f"create_{n}") for n in range(60)] + [a_tool("create_branch")]})
    weak = directory.find_by_words("create walrus zyzzyva")
    assert (len(weak.best), len(weak.near)) == (10, 30)
    strong = directory.find_by_words("create branch")
    assert strong.best[0].tool["name"] == "create_branch"
    assert strong.near == []

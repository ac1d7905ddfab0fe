"""The tools of an office at one moment, also of computers that have far too many."""

import json
import logging
from typing import Any

import pytest

from a2c_smcp.agent.for_models.tool_directory import MOST_TOOLS, SchemaNews, ToolDirectory, described


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


def test_a_tool_under_a_second_name_comes_last() -> None:
    tools = [a_tool(name, "Sums it up") for name in ("summary", "wiki_summary", "summary_of_all")]
    found = ToolDirectory({"pc": tools, "mac": tools[:1]}).search("wiki summary")
    names = [(entry.computer, entry.tool["name"]) for entry in found]
    assert names[0] == ("pc", "wiki_summary")
    assert set(names[1:-1]) == {("mac", "summary"), ("pc", "summary_of_all")}
    assert names[-1] == ("pc", "summary")


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


def test_a_mistyped_name_means_first_what_is_spelled_alike() -> None:
    tools = [a_tool("create_pull_request"), a_tool("list_issues"), a_tool("create_issue"), a_tool("create_page")]
    near = ToolDirectory({"pc": tools, "other": [a_tool("create_isue")]}).near("create_isue", "pc", 3)
    assert near[0] == "create_issue"
    assert "create_isue" not in near


def test_of_ten_found_tools_two_have_their_schemas_and_all_fit_into_few_bytes() -> None:
    schema = {"type": "object", "properties": {"文": {"type": "string", "description": "x" * 200}}}
    tools = [a_tool(f"send_{n}", "Sends the mail.\n" * 40, schema) for n in range(10)]
    found = ToolDirectory({"pc": tools}).search("send mail")
    lines = described(found).split("\n")
    assert [json.loads(line)["tool"] for line in lines] == [entry.tool["name"] for entry in found]
    assert ["arguments" in json.loads(line) for line in lines] == [True, True] + [False] * 8
    assert len(described(found).encode()) <= 3600
    assert "x" * 200 in described(found, schemas=10, most=20_000).splitlines()[9]


def test_a_long_schema_costs_no_other_tool_its_line() -> None:
    long = {"type": "object", "properties": {f"a{n}": {"description": "中" * 50} for n in range(100)}}
    tools = [a_tool("send_all", "Sends the mail.", long), *(a_tool(f"send_{n}", "Sends.") for n in range(9))]
    found = ToolDirectory({"pc": tools}).search("send mail")
    lines = [json.loads(line) for line in described(found).split("\n")]
    assert len(lines) == 10
    assert lines[0]["argument_names"][:2] == ["a0", "a1"]

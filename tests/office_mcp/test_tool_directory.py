"""The tools of an office at one moment, also of computers that have far too many."""

from typing import Any

from a2c_smcp.office_mcp.tool_directory import MOST_TOOLS, ToolDirectory


def a_tool(name: str, description: str = "Reads") -> Any:
    return {"name": name, "description": description, "params_schema": {"type": "object"}, "return_schema": None}


def test_of_a_computer_with_far_too_many_tools_some_are_taken_and_others_lose_none() -> None:
    many = [a_tool(f"tool {number}") for number in range(MOST_TOOLS * 2)]
    directory = ToolDirectory({"evil": many, "laptop": [a_tool("echo"), a_tool("read")]})
    assert len(directory) == MOST_TOOLS + 2
    assert [found.name for found in directory.search("read", "laptop")][:1] == ["laptop__read"]
    assert directory.find("evil", "tool 0") is not None


def test_a_tool_that_is_described_by_its_name_is_found_by_it() -> None:
    directory = ToolDirectory({"pc": [a_tool("a", "send the mail"), a_tool("mail", "mail")]})
    assert [found.tool["name"] for found in directory.search("mail")] == ["mail", "a"]

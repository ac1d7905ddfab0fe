"""Answers to `tools/list` without the tools whose definition is invalid. Pure: it is given what a server said.

If one definition breaks mcp's schema, mcp refuses the whole list. Then the server would have no tools, although its
other tools work.
"""

from collections.abc import Mapping
from typing import Any

from mcp_types.methods import parse_server_result
from pydantic import ValidationError

from a2c_smcp.computer.config.problems import field_path

__all__ = ["without_invalid_tools"]


def without_invalid_tools(
    result: Mapping[str, Any], version: str | None
) -> tuple[Mapping[str, Any], tuple[tuple[str, str], ...]]:
    """The result without the tools that this version of MCP does not allow, and what is wrong with each of these
    tools.

    A result without tools, or with other mistakes, comes back as it is.
    """
    tools = result.get("tools")
    if not isinstance(tools, list) or version is None or _problem(result, version) is None:
        return result, ()
    problems = [_problem({**result, "tools": [tool]}, version) for tool in tools]
    kept = {**result, "tools": [tool for tool, problem in zip(tools, problems, strict=True) if problem is None]}
    if _problem(kept, version) is not None:
        return result, ()
    left_out = zip(enumerate(tools, 1), problems, strict=True)
    return kept, tuple((_name(tool, number), problem) for (number, tool), problem in left_out if problem is not None)


def _problem(result: Mapping[str, Any], version: str) -> str | None:
    try:
        parse_server_result("tools/list", version, result)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = field_path(part for part in first["loc"] if part not in ("tools", 0))
        return f"{place}: {first['msg']}" if place else first["msg"]
    except (KeyError, ValueError):  # a version that mcp does not know: let mcp decide
        return None
    return None


def _name(tool: object, number: int) -> str:
    name = tool.get("name") if isinstance(tool, Mapping) else None
    return name[:200] if isinstance(name, str) and name else f"number {number}"

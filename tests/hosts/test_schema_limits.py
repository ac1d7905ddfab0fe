"""The table of docs/hosts.md about schemas: each row is true of the host, and what `a2c mcp` shows keeps within it."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from pydantic import ValidationError

from a2c_smcp.agent.for_models.tool_directory import ToolDirectory
from a2c_smcp.utils.json_sizes import is_deeper
from a2c_smcp.utils.schema_references import follow
from tests.hosts.conftest import DEADLINE, NODE_HOSTS, ROOT
from tests.hosts.poison_mcp import deep, tools

_PAGE = (ROOT / "docs" / "hosts.md").read_text("utf-8")
_CHECK = Path(__file__).parent / "peers" / "typescript_schemas.mjs"
#: What the TypeScript SDK can list as it is. The others cost it the whole list.
_HARMLESS_THERE = {
    "bad_schema",
    "required_flag",
    "type_int",
    "recursive",
    "recursive_root",
    "dangling",
    "remote",
    "any_of",
    "bare_array",
    "odd_names",
    "proto",
    "levels",
    "doubling",
    "large",
    "out_recursive",
}


def shown() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The tools for hosts of the older era, and for those of 2026-07-28."""
    given: Any = [
        {
            "name": tool["name"],
            "description": "",
            "params_schema": tool["inputSchema"],
            "return_schema": tool.get("outputSchema"),
        }
        for tool in tools()
    ]
    directory = ToolDirectory({"evil": given}, only="evil")
    return [_plain(tool) for tool in directory.listing], [_plain(tool) for tool in directory.whole_listing]


def _plain(tool: types.Tool) -> dict[str, Any]:
    return tool.model_dump(mode="json", by_alias=True, exclude_none=True)


SHOWN, SHOWN_SINCE_2026 = shown()


def refused_by_typescript(listed: list[dict[str, Any]]) -> set[str]:
    done = subprocess.run(
        ["node", str(_CHECK)],
        input=json.dumps(listed),
        env={"NODE_HOSTS": str(NODE_HOSTS), "PATH": str(Path(shutil.which("node") or "").parent)},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=True,
    )
    return set(json.loads(done.stdout))


@pytest.mark.skipif(shutil.which("npm") is None, reason="the TypeScript SDK needs Node.js with npm")
def test_the_typescript_sdk_refuses_half_of_the_poison_and_nothing_of_what_is_shown() -> None:
    names = {tool["name"] for tool in tools()}
    assert names - refused_by_typescript(tools()) == _HARMLESS_THERE
    assert refused_by_typescript([*SHOWN, *SHOWN_SINCE_2026]) == set()


def test_clients_of_mcp_refuse_200_levels_and_nothing_shown_has_half_as_many() -> None:
    with pytest.raises(ValidationError, match="recursion limit"):
        types.ListToolsResult.model_validate_json(json.dumps({"tools": [{"name": "a", "inputSchema": deep(100)}]}))
    types.ListToolsResult.model_validate_json(json.dumps({"tools": [*SHOWN, *SHOWN_SINCE_2026]}))
    assert not any(is_deeper(tool, 100) for tool in [*SHOWN, *SHOWN_SINCE_2026])


def test_nothing_that_is_shown_grows_when_references_are_followed() -> None:
    for tool in [*SHOWN, *SHOWN_SINCE_2026]:
        followed = follow(tool["inputSchema"])
        assert (followed.circles, followed.parts <= 20_000, followed.levels <= 33) == ([], True, True), tool["name"]


def test_no_schema_and_no_list_of_a_computer_is_large() -> None:
    for listed in (SHOWN, SHOWN_SINCE_2026):
        assert max(len(json.dumps(tool)) for tool in listed) < 60_000
        assert len(json.dumps(listed)) < 300_000


def test_the_top_of_a_schema_is_one_object_without_alternatives() -> None:
    for tool in SHOWN:
        schema = tool["inputSchema"]
        assert schema["type"] == "object"
        assert not {"anyOf", "oneOf", "allOf", "not", "enum", "$ref"} & schema.keys(), tool["name"]


def test_since_2026_conditions_at_the_top_of_the_only_computers_tools_stay() -> None:
    changed = [tool["name"] for tool, whole in zip(SHOWN, SHOWN_SINCE_2026, strict=True) if tool != whole]
    assert changed == ["any_of"]


def test_arguments_have_plain_names_and_arrays_have_items() -> None:
    for tool in [*SHOWN, *SHOWN_SINCE_2026]:
        properties = tool["inputSchema"].get("properties", {})
        assert all(re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name) for name in properties), tool["name"]
        assert all("items" in each for each in properties.values() if each.get("type") == "array")


def test_every_row_of_the_table_names_its_test() -> None:
    table = _PAGE.partition("| what a host refuses |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`(test_\w+)`", table))
    rows = [line for line in table.splitlines()[2:] if line.startswith("|")]
    source = Path(__file__).read_text("utf-8") + Path(__file__).with_name("test_hosts.py").read_text("utf-8")
    assert len(rows) >= 8
    assert all("`test_" in row for row in rows)
    assert all(f"def {name}(" in source for name in named), named

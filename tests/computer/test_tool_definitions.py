"""What a person is shown of a tool, and the digest that stands for it."""

from typing import Any

import pytest
from mcp_types import Tool

from a2c_smcp.computer.decisions.tool_definitions import definition_of
from a2c_smcp.computer.mcp_clients.catalogue import ShownTool
from a2c_smcp.computer.mcp_clients.model import ToolMeta


def shown(meta: ToolMeta | None = None, **more: Any) -> ShownTool:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    tool = {"name": "remove", "description": "Removes a file.", "inputSchema": schema, **more}
    return ShownTool("files_remove", "files", Tool.model_validate(tool), meta)


@pytest.mark.parametrize(
    "changed",
    [
        {"description": "Removes all files."},
        {"title": "Remove"},
        {"inputSchema": {"type": "object"}},
        {"annotations": {"destructiveHint": False}},
    ],
)
def test_every_change_that_a_person_could_see_has_another_digest(changed: dict[str, Any]) -> None:
    assert definition_of(shown()).digest == definition_of(shown()).digest
    assert definition_of(shown(**changed)).digest != definition_of(shown()).digest


def test_hints_have_mcps_names_and_a_tool_is_dangerous_by_its_hint_or_by_the_persons_tag() -> None:
    hints = {"destructiveHint": True, "readOnlyHint": False}
    assert definition_of(shown(annotations=hints)).annotations == hints
    assert definition_of(shown(annotations=hints)).is_dangerous
    assert not definition_of(shown(annotations={"destructiveHint": False})).is_dangerous
    assert not definition_of(shown()).is_dangerous
    assert definition_of(shown(ToolMeta(tags=["dangerous"]))).is_dangerous
    assert not definition_of(shown(ToolMeta(tags=["mail"]))).is_dangerous

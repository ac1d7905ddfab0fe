"""What a person is shown of a tool before one of its calls runs, and what stands for it afterwards. Pure."""

from typing import Final

from a2c_smcp.computer.calls.log import digest_of
from a2c_smcp.computer.decisions.book import ToolDefinition
from a2c_smcp.computer.mcp_clients.catalogue import ShownTool

__all__ = ["DANGEROUS", "definition_of"]

#: The tag in a tool's meta with which the person marks it: its calls are shown with a warning.
DANGEROUS: Final = "dangerous"


def definition_of(tool: ShownTool) -> ToolDefinition:
    """The tool as its server describes it now; another description, schema or hint has another digest."""
    said = tool.tool
    hints = (
        {} if said.annotations is None else said.annotations.model_dump(mode="json", by_alias=True, exclude_none=True)
    )
    schema_digest = digest_of(said.input_schema)
    tags = (tool.meta.tags if tool.meta is not None else None) or ()
    return ToolDefinition(
        title=said.title,
        description=said.description or "",
        annotations=hints,
        schema_digest=schema_digest,
        digest=digest_of([said.title, said.description, hints, schema_digest]),
        is_dangerous=hints.get("destructiveHint") is True or DANGEROUS in tags,
    )

"""Makes the description of a tool that a person sees before a call runs, and its digest. Pure."""

from typing import Final

from a2c_smcp.computer.calls.log import digest_of
from a2c_smcp.computer.decisions.book import ToolDefinition
from a2c_smcp.computer.mcp_clients.catalogue import ShownTool

__all__ = ["DANGEROUS", "definition_of"]

#: With this tag in a tool's meta, the person is shown a warning beside its calls.
DANGEROUS: Final = "dangerous"


def definition_of(tool: ShownTool) -> ToolDefinition:
    """The tool as its server describes it now. If the description, the schema or a hint changes, so does the digest."""
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

"""The parts of a tool's description as texts, to show what changed. Pure."""

import json

from a2c_smcp.computer.decisions.book import ToolDefinition

__all__ = ["part_text"]


def part_text(definition: ToolDefinition, part: str) -> str:
    """One of the parts that `ToolDefinition.changes_since` names. No secret is in it."""
    match part:
        case "title":
            return definition.title or ""
        case "description":
            return definition.description
        case "hints":
            return ", ".join(f"{hint}: {value}" for hint, value in definition.annotations.items())
        case "arguments":
            return json.dumps(definition.schema, ensure_ascii=False, sort_keys=True, indent=1, default=str)
        case "server":
            return definition.server
    return definition.source

"""The Computer's own records, which are never sent."""

from typing import Any

# On Python 3.11 pydantic needs this `TypedDict`, not the one in `typing`. The protocol's structures use it, too.
from typing_extensions import TypedDict

from a2c_smcp.types import SERVER_NAME, TOOL_NAME

__all__ = ["ToolCallRecord"]


class ToolCallRecord(TypedDict):
    """A call that reached an MCP server, and whether it succeeded."""

    timestamp: str
    req_id: str
    server: SERVER_NAME
    tool: TOOL_NAME
    parameters: dict[str, Any]
    timeout: float | None
    success: bool
    error: str | None

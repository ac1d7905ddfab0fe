"""The Computer's own records: what it keeps for itself and never puts on the wire."""

from typing import Any

# pydantic validates with this one on Python 3.11; the protocol's structures use it too.
from typing_extensions import TypedDict

from a2c_smcp.types import SERVER_NAME, TOOL_NAME

__all__ = ["ToolCallRecord"]


class ToolCallRecord(TypedDict):
    """One call that reached an MCP server, successful or not."""

    timestamp: str
    req_id: str
    server: SERVER_NAME
    tool: TOOL_NAME
    parameters: dict[str, Any]
    timeout: float | None
    success: bool
    error: str | None

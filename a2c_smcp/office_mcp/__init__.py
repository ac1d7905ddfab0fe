"""The office as an MCP server. Names are imported when they are used."""

from typing import TYPE_CHECKING

from a2c_smcp.utils.lazy_names import lazy_names

if TYPE_CHECKING:
    from a2c_smcp.agent.for_models.office_agent import OfficeAgent
    from a2c_smcp.office_mcp.server import office_server

__all__ = ["OfficeAgent", "office_server"]

__getattr__ = lazy_names(
    __name__,
    {"OfficeAgent": "agent.for_models.office_agent", "office_server": "office_mcp.server"},
)

"""An office in the words of a model's API. It imports no SDK. Names are imported when they are used.

`office_tools` gives the tools of all computers in the shape that an SDK takes, and `run_tool_calls` runs what a model
asked for. `office_context` says what is going on, for a system prompt.
"""

from typing import TYPE_CHECKING

from a2c_smcp.utils.lazy_names import lazy_names

if TYPE_CHECKING:
    from a2c_smcp.agent.llm.api import office_context, office_tools, run_tool_calls
    from a2c_smcp.agent.llm.context import OfficeContext
    from a2c_smcp.agent.llm.running import CallEvents
    from a2c_smcp.agent.llm.styles import Style, ToolRequest

__all__ = [
    "CallEvents",
    "OfficeContext",
    "Style",
    "ToolRequest",
    "office_context",
    "office_tools",
    "run_tool_calls",
]

__getattr__ = lazy_names(
    __name__,
    {
        "CallEvents": "agent.llm.running",
        "OfficeContext": "agent.llm.context",
        "Style": "agent.llm.styles",
        "ToolRequest": "agent.llm.styles",
        "office_context": "agent.llm.api",
        "office_tools": "agent.llm.api",
        "run_tool_calls": "agent.llm.api",
    },
)

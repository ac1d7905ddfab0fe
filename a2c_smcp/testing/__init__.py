"""An office inside a test: server, computers and agent in the test's own process, with our real code and without ports.

    async with office(mcp_servers=[add]) as lab:
        result = await lab.agent.call_tool("pc", "add", {"a": 1, "b": 2})

Names are imported when they are used: the plugin for pytest imports this package in every project that has it.
"""

from typing import TYPE_CHECKING

from a2c_smcp.utils.lazy_names import lazy_names

if TYPE_CHECKING:
    from a2c_smcp.testing.blocking import BlockingLab, blocking_office
    from a2c_smcp.testing.lab import Lab, LabComputer, office
    from a2c_smcp.testing.mcp_in_process import InProcess, McpInProcess, in_process
    from a2c_smcp.testing.person import NO_ANSWER, ScriptEndedError

__all__ = [
    "NO_ANSWER",
    "BlockingLab",
    "InProcess",
    "Lab",
    "LabComputer",
    "McpInProcess",
    "ScriptEndedError",
    "blocking_office",
    "in_process",
    "office",
]

_ROOMS = {
    "blocking": ("BlockingLab", "blocking_office"),
    "lab": ("Lab", "LabComputer", "office"),
    "mcp_in_process": ("InProcess", "McpInProcess", "in_process"),
    "person": ("NO_ANSWER", "ScriptEndedError"),
}
__getattr__ = lazy_names(__name__, {name: f"testing.{room}" for room, names in _ROOMS.items() for name in names})

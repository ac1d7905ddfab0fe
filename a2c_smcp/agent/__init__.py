"""The Agent: one client in two colours. Names are imported when they are used, so that `a2c --help` stays quick."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from a2c_smcp.agent.bounds import AnswerLimits
    from a2c_smcp.agent.client import AsyncSMCPAgentClient
    from a2c_smcp.agent.requests import Deadlines, NotSupportedError
    from a2c_smcp.agent.seat.place import NotSharedError
    from a2c_smcp.agent.seat.seat_link import shared_seat
    from a2c_smcp.agent.sync_client import SMCPAgentClient
    from a2c_smcp.agent.types import AgentHandler, Change, ComputerView, Part
    from a2c_smcp.link.interface import LinkOptions
    from a2c_smcp.results import text_of

__all__ = [
    "AgentHandler",
    "AnswerLimits",
    "AsyncSMCPAgentClient",
    "Change",
    "ComputerView",
    "Deadlines",
    "LinkOptions",
    "NotSharedError",
    "NotSupportedError",
    "Part",
    "SMCPAgentClient",
    "shared_seat",
    "text_of",
]

_ROOMS = {
    "AgentHandler": "a2c_smcp.agent.types",
    "AnswerLimits": "a2c_smcp.agent.bounds",
    "AsyncSMCPAgentClient": "a2c_smcp.agent.client",
    "Change": "a2c_smcp.agent.types",
    "ComputerView": "a2c_smcp.agent.types",
    "Deadlines": "a2c_smcp.agent.requests",
    "LinkOptions": "a2c_smcp.link.interface",
    "NotSharedError": "a2c_smcp.agent.seat.place",
    "NotSupportedError": "a2c_smcp.agent.requests",
    "Part": "a2c_smcp.agent.types",
    "SMCPAgentClient": "a2c_smcp.agent.sync_client",
    "shared_seat": "a2c_smcp.agent.seat.seat_link",
    "text_of": "a2c_smcp.results",
}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ROOMS[name]), name)

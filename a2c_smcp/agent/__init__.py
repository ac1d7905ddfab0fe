"""The Agent: one client in two colours. Names are imported when they are used, so that `a2c --help` stays quick."""

from typing import TYPE_CHECKING

from a2c_smcp.utils.lazy_names import lazy_names

if TYPE_CHECKING:
    from a2c_smcp.agent.bounds import AnswerLimits
    from a2c_smcp.agent.client import AsyncSMCPAgentClient
    from a2c_smcp.agent.questions import QuestionAnswer, QuestionCallback
    from a2c_smcp.agent.requests import Deadlines, DocumentPicture, NotSupportedError
    from a2c_smcp.agent.seat.place import NotSharedError
    from a2c_smcp.agent.seat.seat_link import shared_seat
    from a2c_smcp.agent.skill_requests import SkillFile
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
    "DocumentPicture",
    "LinkOptions",
    "NotSharedError",
    "NotSupportedError",
    "Part",
    "QuestionAnswer",
    "QuestionCallback",
    "SMCPAgentClient",
    "SkillFile",
    "shared_seat",
    "text_of",
]

__getattr__ = lazy_names(
    __name__,
    {
        "AgentHandler": "agent.types",
        "AnswerLimits": "agent.bounds",
        "AsyncSMCPAgentClient": "agent.client",
        "Change": "agent.types",
        "ComputerView": "agent.types",
        "Deadlines": "agent.requests",
        "DocumentPicture": "agent.requests",
        "LinkOptions": "link.interface",
        "NotSharedError": "agent.seat.place",
        "NotSupportedError": "agent.requests",
        "Part": "agent.types",
        "QuestionAnswer": "agent.questions",
        "QuestionCallback": "agent.questions",
        "SMCPAgentClient": "agent.sync_client",
        "SkillFile": "agent.skill_requests",
        "shared_seat": "agent.seat.seat_link",
        "text_of": "results",
    },
    old={
        "AgentEventHandler": "agent.types.AgentHandler",
        "AsyncAgentEventHandler": "agent.types.AgentHandler",
        "SMCPProtocolError": "errors.SMCPError",
    },
)

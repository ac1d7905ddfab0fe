"""What the code of an agent builder meets: handlers for the events of an office, and their structures."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias

from a2c_smcp.agent.view import ComputerView, Part
from a2c_smcp.errors import SMCPError
from a2c_smcp.link.interface import Connected, Disconnected, Joined, Left, LinkEvent, RejoinFailed
from a2c_smcp.smcp import (
    EVENTS,
    MOVING_NOTIFICATION,
    TOOL_PROGRESS_NOTIFICATION,
    AgentCallData,
    DPEDocumentSummary,
    DPEElementDetail,
    DPEPageSummary,
    EnterOfficeNotification,
    GetFinderReq,
    GetFinderRet,
    Kind,
    LeaveOfficeNotification,
    ResourceUpdatedNotification,
    ToolQuestion,
    UpdateComputerConfigReq,
    UpdateMCPConfigNotification,
    UpdateToolListNotification,
)

__all__ = [
    "HAPPENINGS",
    "AgentHandler",
    "Callback",
    "Change",
    "ComputerView",
    "Connected",
    "DPEDocumentSummary",
    "DPEElementDetail",
    "DPEPageSummary",
    "Disconnected",
    "GetFinderReq",
    "GetFinderRet",
    "Joined",
    "Left",
    "LinkEvent",
    "Part",
    "ProgressCallback",
    "RejoinFailed",
    "happening",
]

Callback: TypeAlias = Callable[[Any], Awaitable[None] | None]

#: The type of `on_progress` of `call_tool`: called with `(progress, total, message)`; `def` or `async def`. A callback
#: that is not async runs in a worker thread.
ProgressCallback: TypeAlias = Callable[[float, float | None, str | None], Awaitable[None] | None]


@dataclass(frozen=True, slots=True)
class Change:
    """A part of a computer was fetched and is new in the live view, or could not be fetched."""

    computer: str
    part: Part
    error: SMCPError | None = None
    """Why the part could not be fetched; `None` if it was."""


class AgentHandler(Protocol):
    """The events that an agent tells your code. Subclass it and override the methods that you want.

    Each method may be `def` or `async def`. They run one at a time, in the order of the events. When a method raises,
    the error is logged and the next method runs. `SystemExit` and `KeyboardInterrupt` end the program; in the worker
    threads of `SMCPAgentClient` they are only logged. When a computer repeats an announcement while the first one still
    waits for its handler, the handler is called once.
    """

    def on_enter_office(self, data: EnterOfficeNotification) -> Awaitable[None] | None:
        """A computer entered the office: `data["computer"]`."""
        return None

    def on_leave_office(self, data: LeaveOfficeNotification) -> Awaitable[None] | None:
        """A computer left the office, or lost its connection: `data["computer"]`."""
        return None

    def on_update_config(self, data: UpdateMCPConfigNotification) -> Awaitable[None] | None:
        """The configuration of a computer changed; `get_config` has the new one."""
        return None

    def on_update_tool_list(self, data: UpdateToolListNotification) -> Awaitable[None] | None:
        """The tools of a computer changed; `get_tools` lists the new ones."""
        return None

    def on_update_desktop(self, data: UpdateComputerConfigReq) -> Awaitable[None] | None:
        """The windows of a computer changed; `get_desktop` shows the new ones."""
        return None

    def on_update_finder(self, data: UpdateComputerConfigReq) -> Awaitable[None] | None:
        """The documents of a computer changed; `get_finder` lists the new ones."""
        return None

    def on_update_resources(self, data: UpdateComputerConfigReq) -> Awaitable[None] | None:
        """The resources that a computer shares changed; `get_resources` lists the new ones."""
        return None

    def on_update_prompts(self, data: UpdateComputerConfigReq) -> Awaitable[None] | None:
        """The prompts that a computer shares changed; `get_prompts` lists the new ones."""
        return None

    def on_update_skills(self, data: UpdateComputerConfigReq) -> Awaitable[None] | None:
        """The skills of a computer changed; `get_skills` lists the new ones."""
        return None

    def on_resource_updated(self, data: ResourceUpdatedNotification) -> Awaitable[None] | None:
        """A resource that this agent subscribed to changed: `data["uri"]` of `data["computer"]`."""
        return None

    def on_question(self, data: ToolQuestion) -> Awaitable[None] | None:
        """A tool asks a question about a call of this agent, or does not need its answer any more
        (`data["withdrawn"]`).
        """
        return None

    def on_tool_call_cancel(self, data: AgentCallData) -> Awaitable[None] | None:
        """The tool call with `data["req_id"]` was cancelled."""
        return None

    def on_change(self, change: Change) -> Awaitable[None] | None:
        """A part of the live view is new, or could not be fetched (`change.error`)."""
        return None

    def on_connection(self, event: LinkEvent) -> Awaitable[None] | None:
        """The connection or the office was lost, or is back: `Connected`, `Disconnected`, `Joined`, `Left` or
        `RejoinFailed` of `a2c_smcp.agent.types`.
        """
        return None


_NOTIFICATION = "notify:"
#: The names that `@agent.on(…)` takes, each with the method of `AgentHandler` for it.
HAPPENINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        name: f"on_{name}"
        for name in (
            *(
                event.name.removeprefix(_NOTIFICATION)
                for event in EVENTS.values()
                # Progress goes only to the call that asked for it. The link itself moves.
                if event.kind is Kind.NOTIFICATION
                and event.name not in (TOOL_PROGRESS_NOTIFICATION, MOVING_NOTIFICATION)
            ),
            "change",
            "connection",
        )
    }
)


def happening(name: str) -> str:
    """The short name of an event that can be listened to. Raises `ValueError`, which lists all of them."""
    short = name.removeprefix(_NOTIFICATION)
    if short not in HAPPENINGS:
        raise ValueError(f"no event is called {name!r}; the events are {', '.join(HAPPENINGS)}")
    return short

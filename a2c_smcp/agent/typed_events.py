"""`agent.on(…)` with the names of all events and the types of their payloads, so that editors and type checkers know
them. The client decides when a registered function is called.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol, TypeVar, overload

from a2c_smcp.agent.types import Callback, Change, happening
from a2c_smcp.link.interface import LinkEvent
from a2c_smcp.smcp import (
    AgentCallData,
    EnterOfficeNotification,
    LeaveOfficeNotification,
    ResourceUpdatedNotification,
    ToolQuestion,
    UpdateComputerConfigReq,
    UpdateMCPConfigNotification,
    UpdateToolListNotification,
)

__all__ = ["Registrar", "TypedEvents"]

_PayloadT = TypeVar("_PayloadT")
_OutcomeT = TypeVar("_OutcomeT", bound=Awaitable[None] | None)


class Registrar(Protocol[_PayloadT]):
    """Registers a function, `def` or `async def`, that takes the payload of an event. Returns the function."""

    def __call__(self, callback: Callable[[_PayloadT], _OutcomeT], /) -> Callable[[_PayloadT], _OutcomeT]: ...


class TypedEvents:
    """The method `on` of an agent. The client says what registering means: `_register`."""

    @overload
    def on(self, name: Literal["enter_office", "notify:enter_office"]) -> Registrar[EnterOfficeNotification]: ...
    @overload
    def on(self, name: Literal["leave_office", "notify:leave_office"]) -> Registrar[LeaveOfficeNotification]: ...
    @overload
    def on(self, name: Literal["update_config", "notify:update_config"]) -> Registrar[UpdateMCPConfigNotification]: ...
    @overload
    def on(
        self, name: Literal["update_tool_list", "notify:update_tool_list"]
    ) -> Registrar[UpdateToolListNotification]: ...
    @overload
    def on(self, name: Literal["update_desktop", "notify:update_desktop"]) -> Registrar[UpdateComputerConfigReq]: ...
    @overload
    def on(self, name: Literal["update_finder", "notify:update_finder"]) -> Registrar[UpdateComputerConfigReq]: ...
    @overload
    def on(
        self, name: Literal["update_resources", "notify:update_resources"]
    ) -> Registrar[UpdateComputerConfigReq]: ...
    @overload
    def on(self, name: Literal["update_prompts", "notify:update_prompts"]) -> Registrar[UpdateComputerConfigReq]: ...
    @overload
    def on(self, name: Literal["update_skills", "notify:update_skills"]) -> Registrar[UpdateComputerConfigReq]: ...
    @overload
    def on(
        self, name: Literal["resource_updated", "notify:resource_updated"]
    ) -> Registrar[ResourceUpdatedNotification]: ...
    @overload
    def on(self, name: Literal["question", "notify:question"]) -> Registrar[ToolQuestion]: ...
    @overload
    def on(self, name: Literal["tool_call_cancel", "notify:tool_call_cancel"]) -> Registrar[AgentCallData]: ...
    @overload
    def on(self, name: Literal["change"]) -> Registrar[Change]: ...
    @overload
    def on(self, name: Literal["connection"]) -> Registrar[LinkEvent]: ...
    @overload
    def on(self, name: str) -> Registrar[Any]: ...
    def on(self, name: str) -> Registrar[Any]:
        """Register a function, `def` or `async def`, with `@agent.on("enter_office")`.

        Valid names are those of the notifications, with or without `notify:`, and `change` and `connection`. Another
        name raises `ValueError`. The function gets the same argument as the method of `AgentHandler` with that name. A
        function of `SMCPAgentClient` runs in a worker thread.
        """
        short = happening(name)

        def register(callback: Callable[[Any], _OutcomeT], /) -> Callable[[Any], _OutcomeT]:
            self._register(short, callback)
            return callback

        return register

    def _register(self, name: str, callback: Callback) -> None:
        raise NotImplementedError

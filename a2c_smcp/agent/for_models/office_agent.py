"""The methods of an agent that this room and `office_mcp/` use. `AsyncSMCPAgentClient` has them. In a process
that shares the place of another one, the agent is of another class.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from a2c_smcp.agent.questions import QuestionCallback
from a2c_smcp.agent.types import ProgressCallback
from a2c_smcp.agent.view import ComputerView
from a2c_smcp.smcp import (
    GetComputerConfigRet,
    GetFinderRet,
    GetPromptRet,
    GetPromptsRet,
    GetResourcesRet,
    ReadResourceRet,
)
from a2c_smcp.types import Desktop

if TYPE_CHECKING:
    from mcp_types import CallToolResult

__all__ = ["OfficeAgent"]


class OfficeAgent(Protocol):
    """An agent in its office, with its live view. The methods are those of `AsyncSMCPAgentClient`."""

    @property
    def office_id(self) -> str | None:
        """The office that it is in, or tries to be in."""
        ...

    @property
    def problem(self) -> str | None:
        """Why the office cannot be used right now, in a sentence; `None` if it can."""
        ...

    @property
    def is_entering(self) -> bool:
        """Whether the agent is on its way into the office, and nothing has failed so far."""
        ...

    @property
    def computers(self) -> Mapping[str, ComputerView]:
        """The computers in the office, with what is known of them."""
        ...

    async def settled(self, timeout: float = 20.0) -> None:
        """Wait until the view is complete; `RequestTimeoutError` after this many seconds."""
        ...

    async def call_tool(
        self,
        computer: str,
        tool_name: str,
        params: Mapping[str, Any] | None = None,
        timeout: int = 60,
        *,
        approval_timeout: int | None = None,
        req_id: str | None = None,
        on_progress: ProgressCallback | None = None,
        on_question: QuestionCallback | None = None,
        questions: Sequence[str] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> "CallToolResult":
        """Run a tool. Cancelling the task that waits cancels the call at the computer."""
        ...

    async def get_config(self, computer: str) -> GetComputerConfigRet:
        """The config of a computer, with the states of its MCP servers."""
        ...

    async def get_desktop(self, computer: str, *, size: int | None = None, window: str | None = None) -> list[Desktop]:
        """The windows of a computer as texts, each with its URI in the first line."""
        ...

    async def get_finder(
        self,
        computer: str,
        keywords: Sequence[str] | None = None,
        file_type: str | None = None,
        offset: int = 0,
        limit: int = 20,
    ) -> GetFinderRet:
        """A part of a computer's documents, and the number of all."""
        ...

    async def read_resource(self, computer: str, uri: str) -> list[dict[str, Any]]:
        """The contents at a URI, in MCP's form."""
        ...

    async def read_resource_result(
        self, computer: str, uri: str, *, meta: Mapping[str, Any] | None = None
    ) -> ReadResourceRet:
        """The contents at a URI with the `meta` of the result."""
        ...

    async def read_large_resource(self, computer: str, uri: str) -> list[dict[str, Any]]:
        """The contents at a URI, in parts if they do not fit into one message."""
        ...

    async def get_resources(self, computer: str) -> GetResourcesRet:
        """The resources and templates that a computer shares."""
        ...

    async def subscribe_resource(self, computer: str, uri: str) -> None:
        """Be told when a resource changes."""
        ...

    async def unsubscribe_resource(self, computer: str, uri: str) -> None:
        """End a subscription."""
        ...

    async def get_prompts(self, computer: str) -> GetPromptsRet:
        """The prompts that a computer shares."""
        ...

    async def get_prompt(
        self,
        computer: str,
        mcp_server: str,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        questions: Sequence[str] = (),
        input_responses: Mapping[str, Any] | None = None,
        request_state: str | None = None,
    ) -> GetPromptRet:
        """The messages of a prompt."""
        ...

    async def complete(
        self,
        computer: str,
        mcp_server: str,
        ref: Mapping[str, Any],
        argument: Mapping[str, Any],
        context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """What an argument of a prompt or a template could be."""
        ...

    def on(self, name: str) -> Callable[[Any], Any]:
        """Register a function for an event: `change`, `connection`, `enter_office` and so on."""
        ...

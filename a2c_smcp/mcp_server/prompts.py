"""What a table of prompts offers to the server."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import mcp_types as types
from mcp.server.context import ServerRequestContext

from a2c_smcp.errors import NotFoundError
from a2c_smcp.mcp_server.resources import Completions

__all__ = ["AskingPromptTable", "PromptTable", "UnknownPromptError"]


class UnknownPromptError(NotFoundError):
    """No prompt has this name. A `PromptTable` raises it; the client gets MCP's error for it."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Unknown prompt: {name[:200]}")


class _Prompts(Protocol):
    async def list_prompts(self, context: ServerRequestContext[Any, Any]) -> Sequence[types.Prompt]:
        """The prompts for this client. `context` is mcp's own context of the request."""
        ...

    async def complete(self, name: str, argument: str, typed: str, known: Mapping[str, str]) -> Completions:
        """Values for an argument of a prompt that begin with the typed text. `known` has the other arguments."""
        ...


class PromptTable(_Prompts, Protocol):
    """The prompts of a server. Give one to `ContextServer(prompts=…)`. When its list has changed, call
    `server.changes.prompts_changed()`.
    """

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> types.GetPromptResult:
        """The messages of a prompt. Raise `UnknownPromptError`, or another `SMCPError`, if there are none."""
        ...


@runtime_checkable
class AskingPromptTable(_Prompts, Protocol):
    """A `PromptTable` whose prompts may ask something first, since MCP 2026-07-28."""

    async def answer_prompt(
        self, context: ServerRequestContext[Any, Any], params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        """The messages of a prompt, or its questions. `params` has the client's answers and the state of the last
        questions. Raises as `PromptTable.get_prompt`.
        """
        ...

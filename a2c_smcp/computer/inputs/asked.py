"""The last layer of the inputs: it asks a person, through the Computer's decisions."""

from collections.abc import Callable
from functools import partial
from typing import Any

from a2c_smcp.computer.decisions.book import Outcome
from a2c_smcp.computer.decisions.store import DecisionStore
from a2c_smcp.computer.inputs.base import BaseInputResolver, InputFailedError, check_value
from a2c_smcp.computer.mcp_clients.model import CommandInput, MCPServerInput
from a2c_smcp.errors import InputNotFoundError
from a2c_smcp.types import SERVER_NAME

__all__ = ["AskedInputResolver"]


class AskedInputResolver(BaseInputResolver):
    """Asks the people who are there for each missing input. If nobody is there or answers, the input has no value.

    `servers_of` says which servers need an input: the person is shown their names.
    """

    def __init__(self, decisions: DecisionStore, servers_of: Callable[[str], tuple[SERVER_NAME, ...]]) -> None:
        self._decisions = decisions
        self._servers_of = servers_of

    async def resolve(self, definition: MCPServerInput) -> Any:
        if isinstance(definition, CommandInput):
            raise InputNotFoundError(definition.id)
        servers = self._servers_of(definition.id)
        resolution = await self._decisions.ask_input(definition, servers, check=partial(check_value, definition))
        match resolution.outcome:
            case Outcome.ACCEPTED:
                return resolution.value
            case Outcome.UNANSWERED:
                raise InputNotFoundError(definition.id)
            case Outcome.FAILED if resolution.error is not None:
                raise resolution.error
            case _:
                raise InputFailedError(definition.id, "it was asked for, and not given")

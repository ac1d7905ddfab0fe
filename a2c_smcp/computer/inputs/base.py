"""What a layer that gives values to inputs must offer, and how it fails. Knows no particular layer.

InputNotFoundError         this layer has no value: the next one is asked (in `a2c_smcp.errors`)
InputFailedError           this layer should have had a value and failed: no other layer is asked
"""

from abc import ABC, abstractmethod
from typing import Any

from a2c_smcp.computer.mcp_clients.model import MCPServerInput
from a2c_smcp.errors import BadRequestError

__all__ = ["BaseInputResolver", "InputFailedError", "check_value"]


class InputFailedError(BadRequestError):
    """An input has no usable value: its command failed, its value is not allowed, or the person refused."""

    title = "Input Failed"

    def __init__(self, input_id: str, problem: str) -> None:
        super().__init__(f"Input {input_id}: {problem}", {"input_id": input_id})

    @property
    def input_id(self) -> str | None:
        """The id in `${input:id}`."""
        return self.details.get("input_id")


class BaseInputResolver(ABC):
    """One way to get the value of an input. Subclass it to ask a person: `Computer(input_resolver=…)`.

    Such a layer is asked after the environment, the known values and the commands, and before defaults count.
    """

    @abstractmethod
    async def resolve(self, definition: MCPServerInput) -> Any:
        """The input's value; `InputNotFoundError` if this layer has none and the next one should be asked."""

    def remember(self, definition: MCPServerInput, value: Any) -> None:  # noqa: B027  # only a cache cares
        """Called with the value that a later layer gave."""


def check_value(definition: MCPServerInput, value: Any) -> None:
    """Raise `InputFailedError` if the definition does not allow this value. The message does not show the value."""
    if (problem := definition.problem_with(value)) is not None:
        raise InputFailedError(definition.id, problem)

"""Values of inputs from the environment: `A2C_INPUT_<ID>`."""

import os
import re
from collections.abc import Mapping
from typing import Final

from a2c_smcp.computer.inputs.base import BaseInputResolver
from a2c_smcp.computer.mcp_clients.model import MCPServerInput
from a2c_smcp.errors import InputNotFoundError

__all__ = ["PREFIX", "EnvInputResolver", "variable_of"]

PREFIX: Final = "A2C_INPUT_"


def variable_of(input_id: str) -> str:
    """The environment variable that answers this input: `api-key` is `A2C_INPUT_API_KEY`."""
    return PREFIX + re.sub(r"[^A-Z0-9]", "_", input_id.upper())


class EnvInputResolver(BaseInputResolver):
    """Answers from the environment as it is when the input is needed."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ

    async def resolve(self, definition: MCPServerInput) -> str:
        try:
            return self._environ[variable_of(definition.id)]
        except KeyError:
            raise InputNotFoundError(definition.id) from None

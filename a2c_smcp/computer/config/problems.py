"""What is wrong with a configuration, and where. It names places and never values: a value may be a secret."""

from collections.abc import Iterable
from typing import Any

from a2c_smcp.errors import InvalidConfigError, Problem

__all__ = ["InvalidConfigError", "Problem", "field_path"]


def field_path(parts: Iterable[Any]) -> str:
    """A place inside a config as people write it: `server_parameters.args[0]`."""
    path = ""
    for part in parts:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    return path

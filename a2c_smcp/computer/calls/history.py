"""The last tool calls, and the order of servers that follows from them. Pure: no clock, and nothing is kept here."""

from collections.abc import Iterable, Sequence
from typing import Final

from a2c_smcp.computer.types import ToolCallRecord
from a2c_smcp.types import SERVER_NAME

__all__ = ["HISTORY_SIZE", "KEPT_OF_PARAMETERS", "order_servers", "remember", "used_servers"]

HISTORY_SIZE: Final = 10
#: About how many bytes of the parameters of one call are kept.
KEPT_OF_PARAMETERS: Final = 1024 * 1024


def remember(history: Sequence[ToolCallRecord], record: ToolCallRecord) -> tuple[ToolCallRecord, ...]:
    """The history after one more call, oldest first."""
    return (*history, record)[-HISTORY_SIZE:]


def used_servers(history: Iterable[ToolCallRecord]) -> list[SERVER_NAME]:
    """The servers of those calls, oldest first, as `organize_finder` and `order_servers` take them."""
    return [record["server"] for record in history]


def order_servers(used: Sequence[SERVER_NAME], servers: Iterable[SERVER_NAME]) -> list[SERVER_NAME]:
    """Each of `servers` once: the most recently used first, then those never used, by name."""
    rank = {name: position for position, name in enumerate(dict.fromkeys(reversed(used)))}
    return sorted(set(servers), key=lambda name: (rank.get(name, len(rank)), name))

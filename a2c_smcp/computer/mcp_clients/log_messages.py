"""The log messages that an MCP server sends as notifications, as lines like those of its stderr. Pure."""

from collections.abc import Iterator
from typing import Final

from mcp_types import LoggingMessageNotificationParams

from a2c_smcp.utils.text import cut
from a2c_smcp.wire import codec

__all__ = ["MAX_LOG_LINE", "log_lines"]

#: How many characters of a line are kept, as of one of stderr.
MAX_LOG_LINE: Final = 4096
#: How many lines a message may have, and how much of it is looked at.
_MOST_LINES: Final = 20


def log_lines(message: LoggingMessageNotificationParams) -> Iterator[str]:
    """`[warning] name: text`, and each further line of the text on one of its own."""
    data = message.data if isinstance(message.data, str) else codec.dumps(message.data)
    named = f"{message.logger}: " if message.logger else ""
    lines = cut(f"[{message.level}] {named}{data}", _MOST_LINES * MAX_LOG_LINE).splitlines()
    yield from lines[:_MOST_LINES]
    if len(lines) > _MOST_LINES:
        yield "…"

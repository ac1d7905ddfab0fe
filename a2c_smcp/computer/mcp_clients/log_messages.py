"""The log messages that an MCP server sends as notifications, as lines like those of its stderr. Pure."""

from collections.abc import Iterator
from typing import Final

from mcp_types import LoggingMessageNotificationParams

from a2c_smcp.utils.text import cut
from a2c_smcp.wire import codec

__all__ = ["MAX_LOG_LINE", "log_lines"]

#: How many characters of a line are kept, from stderr or from a log message.
MAX_LOG_LINE: Final = 4096


def log_lines(message: LoggingMessageNotificationParams) -> Iterator[str]:
    """`[warning] name: text`, and the further lines of the text; after 20 lines it is cut."""
    data = message.data if isinstance(message.data, str) else codec.dumps(message.data)
    named = f"{message.logger}: " if message.logger else ""
    lines = cut(f"[{message.level}] {named}{data}", 20 * MAX_LOG_LINE).splitlines()
    yield from lines[:20]
    if len(lines) > 20:
        yield "…"

"""What the tools of this room say about themselves: whether they only look, or do something."""

from collections.abc import Mapping
from typing import Final

import mcp_types as types

__all__ = ["ACTS", "BROWSER_TOOLS", "READS", "TERMINAL_TOOLS"]

#: Types, clicks or runs something: a person should be asked.
ACTS: Final = types.ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True)
#: Looks only.
READS: Final = types.ToolAnnotations(read_only_hint=True, destructive_hint=False, open_world_hint=False)

TERMINAL_TOOLS: Final[Mapping[str, types.ToolAnnotations]] = {
    "terminal_open": ACTS,
    "terminal_type": ACTS,
    "terminal_wait": READS,
    "terminal_read": READS,
    "terminal_resize": ACTS,
    "terminal_close": ACTS,
}
BROWSER_TOOLS: Final[Mapping[str, types.ToolAnnotations]] = {
    "browser_open": ACTS,
    "browser_click": ACTS,
    "browser_fill": ACTS,
    "browser_press": ACTS,
    "browser_back": ACTS,
    "browser_dialog": ACTS,
    "browser_close": ACTS,
    "browser_screenshot": READS,
    "browser_read": READS,
}

"""How large an answer of an MCP server may be, and how many items and levels it may have before models are made of
them. Pure.

A model refuses each wrong item with several errors, 27 µs an item: four megabytes of `[]` in a tool's `content` would
stop the computer for 36 s. A model of more than 255 levels cannot be written again.
"""

from collections.abc import Mapping
from typing import Any, Final

from a2c_smcp.utils.json_sizes import is_deeper

__all__ = ["MAX_ITEMS", "MAX_LEVELS", "largest_answer", "too_much"]

#: Parts of a tool's result, contents of a resource, tools on a page of a list.
MAX_ITEMS: Final = 10_000
#: Of lists and objects in one another, in a tool's result or the contents of a resource.
MAX_LEVELS: Final = 250
_LISTS: Final = ("content", "contents", "tools")
_NESTING: Final = ("content", "contents", "structuredContent")


def largest_answer(max_message: int) -> int:
    """The bytes of an answer: a quarter more than a message, because the same JSON can be written longer than we do."""
    return max_message + max_message // 4


def too_much(result: object) -> str | None:
    """What is wrong with an answer that has more items or levels than a caller could use, or `None`."""
    if isinstance(result, Mapping):
        for key in _LISTS:
            items: Any = result.get(key)
            if isinstance(items, list) and len(items) > MAX_ITEMS:
                return f"the server's answer has {len(items)} items in {key!r}, and may have {MAX_ITEMS}"
        if any(key in result for key in _NESTING) and is_deeper(result, MAX_LEVELS):
            return f"the server's answer is nested deeper than {MAX_LEVELS} levels"
    return None

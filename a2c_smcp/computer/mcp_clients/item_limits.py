"""How large an answer of an MCP server may be, and how many items it may have before models are made of them. Pure.

A model refuses each wrong item with several errors, 27 µs an item: four megabytes of `[]` in a tool's `content` would
stop the computer for 36 s.
"""

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["MAX_ITEMS", "largest_answer", "too_many_items"]

#: Parts of a tool's result, contents of a resource, tools on a page of a list.
MAX_ITEMS: Final = 10_000
_LISTS: Final = ("content", "contents", "tools")


def largest_answer(max_message: int) -> int:
    """The bytes of an answer: a quarter more than a message, because the same JSON can be written longer than we do."""
    return max_message + max_message // 4


def too_many_items(result: object) -> str | None:
    """What is wrong with an answer that has more items than a caller could use, or `None`."""
    if isinstance(result, Mapping):
        for key in _LISTS:
            items: Any = result.get(key)
            if isinstance(items, list) and len(items) > MAX_ITEMS:
                return f"the server's answer has {len(items)} items in {key!r}, and may have {MAX_ITEMS}"
    return None

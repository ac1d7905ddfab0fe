"""How large an answer of an MCP server may be, and how many items and levels it may have. Pure.

It is checked before models are made of an answer. A model refuses each wrong item with several errors, 27 µs an item:
four megabytes of `[]` in a tool's `content` would stop the computer for 36 s. A model of more than 255 levels cannot be
written as JSON again.
"""

from typing import Final

from a2c_smcp.utils.json_sizes import is_deeper

__all__ = ["MAX_ITEMS", "MAX_LEVELS", "largest_answer", "too_much"]

#: How many items an answer may have: in a tool's result, in the contents of a resource, in one page of tools, or in the
#: messages of a prompt.
MAX_ITEMS: Final = 10_000
#: How deep lists and objects may be nested in a tool's result, a resource, a prompt or a completion.
MAX_LEVELS: Final = 250
_LISTS: Final = frozenset({"content", "contents", "tools", "messages"})
_NESTING: Final = frozenset({"content", "contents", "structuredContent", "messages", "completion"})


def largest_answer(max_message: int) -> int:
    """How many bytes an answer may have: a quarter more than a message, because we may write the same JSON shorter."""
    return max_message + max_message // 4


def too_much(result: object) -> str | None:
    """What is wrong with an answer that has too many items or levels; `None` if nothing is."""
    if not isinstance(result, dict):
        return None
    nests = False
    for key, items in result.items():
        if key in _LISTS and isinstance(items, list) and len(items) > MAX_ITEMS:
            return f"the server's answer has {len(items)} items in {key!r}; at most {MAX_ITEMS} are allowed"
        nests = nests or key in _NESTING
    if nests and is_deeper(result, MAX_LEVELS):
        return f"the server's answer is nested deeper than {MAX_LEVELS} levels"
    return None

"""What the tools of an office are called by MCP hosts. Pure.

A name is made of its computer and its tool alone, whoever else is in the office: it means the same tool tomorrow. What
had to be changed in a name is told by a short hash of what it was, so that two names never become one.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Final

__all__ = ["MAX_NAME", "OWN_TOOLS", "checked_labels", "computer_label", "is_label", "tool_names"]

#: The names of the tools that are the office's own.
OWN_TOOLS: Final = frozenset(
    {"list_computers", "search_tools", "call_tool", "see_desktop", "find_documents", "read_document"}
)
#: Hosts add prefixes of their own, and cut or refuse names at 60 or 64 characters.
MAX_NAME: Final = 45
_SEPARATOR: Final = "__"
_HASH: Final = 6
#: How much of a computer's name stays when it cannot stay as it is.
_READABLE: Final = 14
_OTHERS = re.compile(r"[^A-Za-z0-9_-]+")
# Neither the separator inside nor half of it at the end: the first separator of a name ends the computer's part.
_LABEL = re.compile(r"(?!.*__)(?=.*[A-Za-z])[A-Za-z0-9_-]{0,23}[A-Za-z0-9-]")
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")


def is_label(text: str) -> bool:
    """Whether this can stand for a computer in the names of its tools, as it is."""
    return _LABEL.fullmatch(text) is not None


def checked_labels(labels: Mapping[str, str]) -> Mapping[str, str]:
    """Labels that people chose for computers, or `ValueError` for some that cannot be."""
    if wrong := [label for label in labels.values() if not is_label(label)]:
        raise ValueError(f"a short name has up to 24 letters, digits, - and single _, not {wrong[0]!r}")
    if len(set(labels.values())) < len(labels):
        raise ValueError("two computers cannot have one short name")
    return labels


def computer_label(computer: str) -> str:
    """What stands for a computer in the names of its tools; `pc-<hash>` where there is no letter to read."""
    if is_label(computer):
        return computer
    readable = re.sub(r"__+", "_", _OTHERS.sub("_", computer)).strip("_")
    if not re.search("[A-Za-z]", readable):
        return f"pc-{_hash(computer)}"
    return f"{readable[:_READABLE].rstrip('_')}-{_hash(computer)}"


def tool_names(
    tools: Iterable[tuple[str, str]], short: Mapping[str, str] | None = None, *, plain: bool = False
) -> dict[tuple[str, str], str]:
    """The name of every tool, given as its computer and its own name. No two are alike.

    `short` has labels for computers, instead of `computer_label`. `plain` leaves the computer out: there is only one.
    """
    wanted = {pair: _name(*pair, short or {}, plain) for pair in dict.fromkeys(tools)}
    names: dict[tuple[str, str], str] = {}
    taken: set[str] = set()
    # Those that are as they were come first; two alike are a matter of chance among hashes, and chance has an order.
    for pair in sorted(wanted, key=lambda pair: (wanted[pair][1] is not None, pair)):
        stem, hashed = wanted[pair]
        name = stem if hashed is None else f"{stem}-{hashed[:_HASH]}"
        size = _HASH
        while name in taken:
            size += 2
            full = hashed or _hash("\0".join(pair), 32)
            name = f"{stem[: MAX_NAME - size - 1]}-{full[:size]}"
        taken.add(name)
        names[pair] = name
    return names


def _name(computer: str, tool: str, short: Mapping[str, str], plain: bool) -> tuple[str, str | None]:
    """The readable part of a name, and the hash that goes with it where it does not say everything."""
    start = "" if plain else (short.get(computer) or computer_label(computer)) + _SEPARATOR
    if _PLAIN.fullmatch(tool):
        if len(start + tool) <= MAX_NAME and start + tool not in OWN_TOOLS:
            return start + tool, None
        readable = tool
    else:
        readable = _OTHERS.sub("_", tool).strip("_") or "tool"
    return (start + readable)[: MAX_NAME - _HASH - 1], _hash(f"{computer}\0{tool}", 32)


def _hash(text: str, size: int = _HASH) -> str:
    return hashlib.blake2s(text.encode("utf-8", "surrogatepass")).hexdigest()[:size]

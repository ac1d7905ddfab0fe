"""The names of an office's tools for MCP hosts and for the APIs of models. Pure.

A name depends only on its computer and its tool, not on the other members: it means the same tool tomorrow. If a name
had to be changed, it ends with a short hash of the original, so that two names never become one.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

__all__ = ["MAX_TOOL_NAME", "OWN_TOOLS", "checked_labels", "computer_label", "is_label", "tool_names"]

#: The names of the office's own tools.
OWN_TOOLS: Final = frozenset(
    {"list_computers", "search_tools", "call_tool", "see_desktop", "find_documents", "read_document"}
)
#: Hosts add prefixes of their own, and cut or refuse names at 60 or 64 characters.
MAX_TOOL_NAME: Final = 45
_SEPARATOR: Final = "__"
_HASH: Final = 6
_OTHERS = re.compile(r"[^A-Za-z0-9_-]+")
# A label contains no separator and does not end with half of one: the first separator in a name ends the label.
# Gemini's API refuses names that begin with a digit or a dash.
_LABEL = re.compile(r"(?!.*__)(?=.*[A-Za-z])(?=[A-Za-z_])[A-Za-z0-9_-]{0,23}[A-Za-z0-9-]")
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
# A computer whose real name looks like a hashed label is hashed, too: otherwise the two could be confused.
_LOOKS_HASHED = re.compile(rf".*-[0-9a-f]{{{_HASH}}}")


def is_label(text: str) -> bool:
    """Whether this text can be a label as it is."""
    return _LABEL.fullmatch(text) is not None


def checked_labels(labels: Mapping[str, str]) -> Mapping[str, str]:
    """The labels that people chose for computers. Raises `ValueError` for invalid ones."""
    if wrong := [label for label in labels.values() if not is_label(label)]:
        raise ValueError(
            f"a short name begins with a letter or _ and has up to 24 letters, digits, - and single _, not {wrong[0]!r}"
        )
    if len(set(labels.values())) < len(labels):
        raise ValueError("two computers cannot have one short name")
    return labels


def computer_label(computer: str, short: Mapping[str, str] | None = None) -> str:
    """The label of a computer in the names of its tools; `pc-<hash>` if its name has no letter to show.

    `short` has the labels that people chose. No other computer gets one of those, whatever it is called.
    """
    if short and computer in short:
        return short[computer]
    label = computer
    if not is_label(computer) or _LOOKS_HASHED.fullmatch(computer):
        label = _hashed_label(computer, _HASH)
    return _hashed_label(computer, _HASH + 2) if short and label in short.values() else label


def _hashed_label(computer: str, size: int) -> str:
    readable = re.sub(r"__+", "_", _OTHERS.sub("_", computer)).strip("_")
    if not re.search("[A-Za-z]", readable):
        return f"pc-{_hash(computer, size)}"
    if not readable[0].isalpha():
        readable = f"pc-{readable}"
    # How much of a computer's name stays when the name must be changed.
    return f"{readable[:14].rstrip('_')}-{_hash(computer, size)}"


def tool_names(
    tools: Iterable[tuple[str, str]], short: Mapping[str, str] | None = None, *, plain: bool = False
) -> dict[tuple[str, str], str]:
    """The name of every tool, given as its computer and its own name. No two names are alike.

    `short` has labels for computers, as in `computer_label`. `plain` leaves the computer out: there is only one.
    """
    wanted = {pair: _name(*pair, short or {}, plain) for pair in dict.fromkeys(tools)}
    names = {pair: stem if hashed is None else f"{stem}-{hashed[:_HASH]}" for pair, (stem, hashed) in wanted.items()}
    size = _HASH
    # Two names are alike by chance or by intent. Neither tool keeps the short name: it would change its meaning when
    # the other tool appears.
    while len(used := Counter(names.values())) < len(names):
        size += 2
        for pair in [pair for pair, name in names.items() if used[name] > 1]:
            stem, hashed = wanted[pair]
            full = hashed or _hash("\0".join(pair), 32)
            names[pair] = f"{stem[: MAX_TOOL_NAME - size - 1]}-{full[:size]}"
    return names


def _name(computer: str, tool: str, short: Mapping[str, str], plain: bool) -> tuple[str, str | None]:
    """The readable part of a name, and its hash if the readable part is not the whole name."""
    start = "" if plain else computer_label(computer, short) + _SEPARATOR
    if _PLAIN.fullmatch(tool):
        if len(start + tool) <= MAX_TOOL_NAME and start + tool not in OWN_TOOLS:
            return start + tool, None
        readable = tool
    else:
        readable = _OTHERS.sub("_", tool).strip("_") or "tool"
    return (start + readable)[: MAX_TOOL_NAME - _HASH - 1], _hash(f"{computer}\0{tool}", 32)


def _hash(text: str, size: int = _HASH) -> str:
    return hashlib.blake2s(text.encode("utf-8", "surrogatepass")).hexdigest()[:size]

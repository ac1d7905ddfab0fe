"""Suggests the names that a person or a model probably meant. Pure."""

import difflib
from collections.abc import Iterable

__all__ = ["did_you_mean", "near_names"]


def near_names(typed: str, known: Iterable[str], most: int = 1) -> list[str]:
    """The names that differ least from what was typed, the nearest first. Case does not matter."""
    by_folded = {name.casefold(): name for name in known}
    return [by_folded[near] for near in difflib.get_close_matches(typed[:100].casefold(), by_folded, n=most)]


def did_you_mean(typed: str, known: Iterable[str]) -> str:
    """`; did you mean 'greet'?`, to be added to an error text; empty if no name is near."""
    near = near_names(typed, known)
    return f"; did you mean {near[0]!r}?" if near else ""

"""Suggests the name that a person probably meant. Pure."""

import difflib
from collections.abc import Iterable

__all__ = ["did_you_mean"]


def did_you_mean(typed: str, known: Iterable[str]) -> str:
    """`; did you mean 'greet'?`, to be added to an error text; empty if no name is near. Case does not matter."""
    by_folded = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(typed[:100].casefold(), by_folded, n=1)
    return f"; did you mean {by_folded[near[0]]!r}?" if near else ""

"""What changed between two texts, word by word. Pure."""

import difflib
import re
from typing import Final, Literal, TypeAlias

__all__ = ["TextChange", "word_changes"]

WordKind: TypeAlias = Literal["same", "gone", "new"]
#: A part of a text, and whether it is in both texts, only in the old one, or only in the new one.
TextChange: TypeAlias = tuple[WordKind, str]

#: Comparing takes the product of both lengths at worst.
_MOST_WORDS: Final = 2000
_WORD: Final = re.compile(r"\s+|\w+|[^\w\s]")


def word_changes(before: str, after: str) -> list[TextChange]:
    """Both texts as one list of parts. Texts that are too long to compare are shown whole, one after the other."""
    if before == after:
        return [("same", after)] if after else []
    old, new = _WORD.findall(before), _WORD.findall(after)
    if len(old) + len(new) > _MOST_WORDS:
        return [("gone", before), ("new", after)]
    changes: list[TextChange] = []
    for tag, i, i_end, j, j_end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            changes.append(("same", "".join(new[j:j_end])))
            continue
        if i < i_end:
            changes.append(("gone", "".join(old[i:i_end])))
        if j < j_end:
            changes.append(("new", "".join(new[j:j_end])))
    return changes

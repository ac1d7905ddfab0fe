"""Words, 5-grams and recall, as the docstring of this package defines them. Pure."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

__all__ = ["LEAST_GRAMS", "Grams", "agreed", "grams", "recall", "words"]

Grams: TypeAlias = frozenset[int]
"""The hashes of 5-grams: texts of some files have millions."""

LEAST_GRAMS: Final = 30
_LENGTH: Final = 5
_CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_DIVIDED: Final = re.compile("(?<=[^\\W\\d_])[-\u2010\u2011\u00ad\u0002\ufffe]\\s*(?=[^\\W\\d_])")
_ADDRESS: Final = re.compile(r"""\(<?(?:[a-z]+:|/|\#|\.{1,2}/)[^\s)]*(?:\s"[^"]*")?\)|\b[a-z]+://\S+""", re.IGNORECASE)
#: What a reader says about the text, in the form in which each of them says it.
_MARK: Final = re.compile(
    r"""!\[[^\]]*\]\([^)]*\)                         # a picture in Markdown
    | ----\w[^\n]*?----                            # a picture or a note of docx2python
    | ^<!--\ Slide\ number:\ \d+\ -->$ | ^\#{3}\ Notes:$ | ^\#{3}\ Chart:?  # markitdown
    | \[图片(?::[^\]]*)?\] | \[图表:? | \[(?:annotation|header|footer|separator)\b  # ours
    """,
    re.VERBOSE | re.MULTILINE,
)
_ITEM_NUMBER: Final = re.compile(
    r"^[ \t]*(?:[-*+>#|•][ \t]+)*\(?(?:\d+(?:\.\d+)*|[a-z]|[ivxlc]+)[.)][ \t]+", re.IGNORECASE | re.MULTILINE
)
_MOMENT: Final = re.compile(
    r"\d{4}-\d\d-\d\d(?:[ t]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?|\b\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?", re.IGNORECASE
)
_WORD: Final = re.compile(rf"\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?(?:e[-+]\d+)?|[{_CJK}]|[^\W\d_{_CJK}]+")
_NOTHING: Final = 1e-6
"""A smaller number is 0 where it is shown."""


def words(text: str) -> Iterator[str]:
    marked = _ITEM_NUMBER.sub("", _MARK.sub(" ", unicodedata.normalize("NFKC", text)))
    without = _MOMENT.sub(" moment ", _ADDRESS.sub(" ", marked))
    for word in _WORD.findall(_DIVIDED.sub("", without).lower()):
        if not word[0].isdecimal():  # unlike isdigit(), false for ❶, which is no number in itself
            yield word
        elif (value := float(word.replace(",", ""))) > _NOTHING:
            yield f"{value:.2e}".partition("e")[0].rstrip("0.")


def grams(text: str) -> Grams:
    found = list(words(text))
    return frozenset(hash(tuple(found[at : at + _LENGTH])) for at in range(len(found) - _LENGTH + 1))


def agreed(votes: Iterable[Iterable[Grams]]) -> Grams:
    """The 5-grams that count: those that two families of readers have found. Each item is what a family found."""
    counts = Counter(gram for family in votes for gram in frozenset[int]().union(*family))
    return frozenset(gram for gram, count in counts.items() if count > 1)


def recall(found: Grams, counted: Grams) -> float | None:
    """The share of what counts that was found; `None` if too little counts to say anything."""
    return len(found & counted) / len(counted) if len(counted) >= LEAST_GRAMS else None


def families(readings: Mapping[str, Grams], made_of: Mapping[str, str]) -> dict[str, list[Grams]]:
    """What was found, by family."""
    found: dict[str, list[Grams]] = {}
    for reader, gram in readings.items():
        found.setdefault(made_of.get(reader, reader), []).append(gram)
    return found

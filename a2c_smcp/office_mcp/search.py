"""Finding a few of many things by words: BM25. Chinese, Japanese and Korean become pairs of characters. Pure."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

__all__ = ["SearchIndex", "is_mostly_cjk", "words"]

_CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
#: Splits names such as URLs, HTMLParser, readFile and read_file into words as a person reads them.
_WORD = re.compile(
    rf"[{_CJK}]+|[A-Z]{{2,}}(?=s?(?![a-z]))|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\W\d_A-Za-z{_CJK}]+", re.UNICODE
)
_SILENT_WORDS: Final = """
a an and are as at be by can do does for from has have how i if in into is it its me my of on or our so some that the
then there these this those to was we what when where which who will with you your
"""
_SILENT: Final = frozenset(_SILENT_WORDS.split())
#: Groups of words with a similar meaning. Another word of the group counts less than the word itself.
_ALIKE: Final = (
    "create add new make open put insert",
    "delete remove drop erase",
    "send post write",
    "get read show fetch retrieve",
    "run execute start",
    "stop end kill terminate cancel",
    "image picture photo screenshot",
    "event meeting appointment",
)
_OTHERS: Final = {word: set(line.split()) - {word} for line in _ALIKE for word in line.split()}
_LESS: Final = 0.4
_K, _B = 1.2, 0.6


def words(text: str) -> Iterator[str]:
    """The words of a text in the form in which they are compared: lower case, without plurals, CJK as pairs."""
    for word in _WORD.findall(text):
        if "\u3040" <= word[0] <= "\ud7af" or "\uf900" <= word[0] <= "\ufaff":
            yield from (word[at : at + 2] for at in range(max(1, len(word) - 1)))
        elif (low := word.lower()) not in _SILENT and len(low) > 1:
            yield _singular(low)


def is_mostly_cjk(text: str) -> bool:
    """Whether a text is mostly Chinese, Japanese or Korean."""
    return len(re.findall(f"[{_CJK}]", text)) * 2 > len(re.findall(r"[A-Za-z]", text))


class SearchIndex:
    """Finds the best of `documents`, each given as its texts with their weights."""

    def __init__(self, documents: Sequence[Mapping[str, float]]) -> None:
        counts = [_count(texts) for texts in documents]
        sizes = [count.total() for count in counts]
        average = (sum(sizes) / len(sizes) if sizes else 0) or 1
        rarity = {
            word: math.log(1 + (len(counts) - found + 0.5) / (found + 0.5))
            for word, found in Counter(word for count in counts for word in count).items()
        }
        self._scores: dict[str, list[tuple[int, float]]] = {}
        for number, count in enumerate(counts):
            base = _K * (1 - _B + _B * sizes[number] / average)
            for word, weight in count.items():
                score = rarity[word] * weight * (_K + 1) / (weight + base)
                self._scores.setdefault(word, []).append((number, score))

    def best(self, query: str, most: int) -> list[int]:
        """The indexes of the documents that contain words of the query, best match first."""
        asked = dict.fromkeys(words(query), 1.0)
        for other in [other for word in asked for other in _OTHERS.get(word, ())]:
            asked.setdefault(other, _LESS)
        total: dict[int, float] = {}
        for word, factor in asked.items():
            for number, score in self._scores.get(word, ()):
                total[number] = total.get(number, 0.0) + factor * score
        return sorted(total, key=lambda number: (-total[number], number))[:most]


def _count(texts: Mapping[str, float]) -> "Counter[str]":
    count: Counter[str] = Counter()
    for text, weight in texts.items():
        for word in words(text):
            count[word] += weight  # type: ignore[assignment] # a weight need not be whole
    return count


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3 else word

"""Finding a few of many things by words: BM25 over stems. Chinese, Japanese and Korean become pairs of characters, and
common Chinese words are looked for in English, too. Pure.
"""

import heapq
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from a2c_smcp.office_mcp.search_words import ALIKE, CHINESE, SILENT

__all__ = ["SearchIndex", "is_mostly_cjk", "words"]

_CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
#: Splits names such as URLs, HTMLParser, readFile and read_file into words as a person reads them.
_WORD = re.compile(
    rf"[{_CJK}]+|[A-Z]{{2,}}(?=s?(?![a-z]))|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\W\d_A-Za-z{_CJK}]+", re.UNICODE
)
#: How much another word of the same meaning counts, and the second English word of a Chinese one.
_LESS: Final = 0.45
_SECOND: Final = 0.8
_K, _B = 2.0, 0.3


def words(text: str) -> Iterator[str]:
    """The words of a text in the form in which they are compared: lower case, without plurals, CJK as pairs."""
    for word in _WORD.findall(text):
        if "\u3040" <= word[0] <= "\ud7af" or "\uf900" <= word[0] <= "\ufaff":
            yield from (word[at : at + 2] for at in range(max(1, len(word) - 1)))
        elif (low := word.lower()) not in SILENT and len(low) > 1:
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
        return [number for number, _ in self.ranked(query, most)]

    def ranked(self, query: str, most: int, among: Callable[[int], bool] | None = None) -> list[tuple[int, float]]:
        """The best documents that contain words of the query, each with the share of the query's words that it has,
        between 0 and 1. `among` says by its index whether a document counts.
        """
        asked = _meanings(query)
        total: dict[int, float] = {}
        shares: dict[int, float] = {}
        for meaning in asked:
            best: dict[int, float] = {}
            for word, factor in meaning.items():
                for number, score in self._scores.get(word, ()):
                    if factor * score > best.get(number, 0.0):
                        best[number] = factor * score
            for number, score in best.items():
                total[number] = total.get(number, 0.0) + score
                shares[number] = shares.get(number, 0.0) + 1 / len(asked)
        # Of two documents, the one that has more of the words is meant more often.
        found = [(-score * (1 + shares[number]), number) for number, score in total.items()]
        if among is not None:
            found = [(score, number) for score, number in found if among(number)]
        return [(number, shares[number]) for _, number in heapq.nsmallest(most, found)]


def _meanings(query: str) -> list[dict[str, float]]:
    """What each word of a query may be called, and how much each name counts."""
    meanings: dict[str, dict[str, float]] = {}
    for word in words(query):
        meanings.setdefault(_stem(word), _with_others({_stem(word): 1.0}))
    for chinese in _chinese_words(query):
        first, *others = (_stem(word) for word in CHINESE[chinese])
        english = _with_others({first: 1.0, **dict.fromkeys(others, _SECOND)})
        meanings[chinese] = {**meanings.get(chinese, {}), **english}
    return list(meanings.values())


def _with_others(names: dict[str, float]) -> dict[str, float]:
    others = {other for name in names for other in _OTHERS.get(name, ())}
    return {**dict.fromkeys(others, _LESS), **names}


def _chinese_words(query: str) -> list[str]:
    """The words of the table that a query has, the longest first at each place."""
    found = []
    for run in re.findall(f"[{_CJK}]+", query):
        at = 0
        while at < len(run):
            sizes = (size for size in range(_LONGEST, 0, -1) if run[at : at + size] in CHINESE)
            size = next(sizes, 0)
            if size:
                found.append(run[at : at + size])
            at += size or 1
    return found


def _count(texts: Mapping[str, float]) -> "Counter[str]":
    count: Counter[str] = Counter()
    for text, weight in texts.items():
        for word in words(text):
            count[_stem(word)] += weight  # type: ignore[assignment] # a weight need not be whole
    return count


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3 else word


def _stem(word: str) -> str:
    """The word without the endings of its grammatical forms: created, creating, creation and creates are one."""
    if not word.isascii():
        return word
    for ending, left in (("ing", 3), ("tion", 4), ("ed", 3)):
        base = word[: len(word) - len(ending)]
        if word.endswith(ending) and len(base) >= left and re.search("[aeiouy]", base):
            word = base + "t" if ending == "tion" else base
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    if word.endswith("y") and len(word) > 3:
        word = word[:-1] + "i"
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


_OTHERS: Final[dict[str, set[str]]] = {}
for _line in ALIKE:
    _group = {_stem(word) for word in _line.split()}
    for _word in _group:
        _OTHERS[_word] = _OTHERS.get(_word, set()) | _group - {_word}
_LONGEST: Final = max(map(len, CHINESE))

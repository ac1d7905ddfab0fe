"""Words without any model: frequent terms, summaries, and text as the index and its queries have it. Pure.

Chinese is written without blanks, so it is taken by pairs of characters: 年度报告 is 年度, 度报, 报告. Here
"Chinese" means every script that is written so: Han, Kana, Hangul.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

__all__ = [
    "as_indexed",
    "best_text",
    "frequent_terms",
    "has_phrase",
    "is_common",
    "is_one_edit_away",
    "name_words",
    "phrase_expression",
    "query_term",
    "runs_of",
    "shortened",
    "snippet",
    "spelled_words",
    "terms_of",
]

_CJK = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
_RUN = re.compile(rf"[{_CJK}]+|[^\W{_CJK}]+")
_IS_CJK = re.compile(rf"[{_CJK}]")
_CJK_RUN = re.compile(rf"[{_CJK}]+")
_ACCENTS = re.compile("[\u0300-\u036f]+")
_HAS_LETTER = re.compile(r"[^\W\d_]")
#: How many terms a document is described by.
_MOST_TERMS = 8
#: How many characters of a text are shown where a search finds something.
_SNIPPET_LENGTH = 160

_COMMON_ENGLISH = frozenset(
    re.findall(
        r"\w+",
        """about above after again against all also although always among and any are around because been before being
        below between both but can cannot could did does doing done down during each either else even ever every few for
        from further get gets given had has have having her here hers him his how however http https into its itself
        just let like made make many may might more most much must near need neither never next none nor not now off
        often once one only onto other others our out over own per put quite rather same see seen several shall she
        should since some still such take than that the their them then there therefore these they this those through
        thus too toward two under until upon use used uses using very was way well were what when where whether which
        while who whole whom whose why will with within without would www yes yet you your""",
    )
)
_SHORT_ENGLISH = frozenset(
    re.findall(r"\w+", "a am an as at be by do go he i if in is it me my no of on or so to up us we")
)
_COMMON_CHINESE = frozenset("的一是了在和与及或等有为对以这那我你他她它们不也就都而被把从到上下中")


def terms_of(text: str) -> Iterable[str]:
    """The words of a text in lower case, Chinese by pairs; a single Chinese character stands for itself."""
    for match in _RUN.finditer(text):
        run = match[0]
        if not _IS_CJK.match(run):
            yield run.lower()
        elif len(run) == 1:
            yield run
        else:
            yield from (run[at : at + 2] for at in range(len(run) - 1))


def frequent_terms(text: str) -> list[str]:
    """What a text speaks of most often, without the words that every text has."""
    counts = Counter(term for term in terms_of(text) if _says_something(term))
    best = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    # One mention is no frequency; but a short text has nothing else.
    often = [term for term, count in best if count > 1] or [term for term, _ in best]
    return often[:_MOST_TERMS]


def _says_something(term: str) -> bool:
    if _IS_CJK.match(term):
        return len(term) == 2 and not _COMMON_CHINESE.intersection(term)
    return 3 <= len(term) <= 40 and term not in _COMMON_ENGLISH and _HAS_LETTER.search(term) is not None


def shortened(text: str, most: int = 200) -> str:
    """The beginning of a text in one line."""
    line = " ".join(text[: most * 4].split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


# --- the index

#: A word with a hyphen is found without it too: plug-in as plugin. Each row of letters is looked at once.
_HYPHENATED: Final = re.compile(rf"(?<![^\W\d_])[^\W\d_{_CJK}]++(?:[-\u2010\u2011][^\W\d_{_CJK}]++)+")
#: Where a name in one piece has a new word: AnnualReport, report2024.
_INSIDE_NAME: Final = re.compile(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[0-9])(?=[A-Za-z])")


def runs_of(text: str) -> list[str]:
    """The words of a text as they stand there; a row of Chinese characters is one."""
    return _RUN.findall(text)


def is_common(word: str) -> bool:
    """Whether nearly every English text has this word, so that it says nothing about what is looked for."""
    return word in _COMMON_ENGLISH or word in _SHORT_ENGLISH


def as_indexed(text: str) -> str:
    """A text as it goes into the index.

    Chinese is written as pairs, and the last character of a run once more, so that one character is found as well.
    Words with hyphens follow at the end, without their hyphens.
    """
    pairs = _CJK_RUN.sub(lambda match: _pairs(match[0]), text)
    joined = {re.sub(r"\W", "", word) for word in _HYPHENATED.findall(text)}
    return f"{pairs} {' '.join(sorted(joined))}" if joined else pairs


def _pairs(run: str) -> str:
    return f" {' '.join([*(run[at : at + 2] for at in range(len(run) - 1)), run[-1]])} "


def name_words(path: str) -> str:
    """The words of a path: its folders and the name, in pieces and whole."""
    pieces = re.sub(r"[\W_]+", " ", path)
    split = _INSIDE_NAME.sub(" ", pieces)
    return pieces if split == pieces else f"{pieces} {split}"


def query_term(run: str) -> str:
    """A word as FTS5 looks for it. Chinese is a phrase of pairs; one character is the beginning of a pair."""
    if not _IS_CJK.match(run):
        return f'"{run}"'
    if len(run) == 1:
        return f'"{run}" *'
    return f'"{" ".join(run[at : at + 2] for at in range(len(run) - 1))}"'


def phrase_expression(phrase: str) -> str:
    """The words of a phrase as FTS5 looks for them: in a row, unless Chinese is among them, whose pairs overlap."""
    runs = _RUN.findall(phrase)
    if any(_IS_CJK.match(run) for run in runs):
        return " AND ".join(map(query_term, runs))
    return f'"{" ".join(runs)}"'


def spelled_words(text: str) -> set[str]:
    """The words that a typo may have been meant for: of letters, not Chinese, without accents, in lower case."""
    words = set(_RUN.findall(_folded(text).replace("_", " ")))
    return {word for word in words if 3 <= len(word) <= 30 and word.isalpha() and not _IS_CJK.match(word)}


def is_one_edit_away(one: str, other: str) -> bool:
    """Whether one letter more, less or different, or two that changed places, make one word the other."""
    if len(one) > len(other):
        one, other = other, one
    if len(other) - len(one) > 1 or one == other:
        return False
    at = next((number for number, letter in enumerate(one) if letter != other[number]), len(one))
    if len(one) < len(other):
        return one[at:] == other[at + 1 :]
    return one[at + 1 :] == other[at + 1 :] or (
        one[at : at + 2] == other[at : at + 2][::-1] and one[at + 2 :] == other[at + 2 :]
    )


def _folded(text: str) -> str:
    """In lower case and without accents, as the index compares words."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text))).lower()


def has_phrase(text: str, phrase: str) -> bool:
    """Whether the words of a phrase stand in a text in this order, with no other word between them."""
    return _in_a_row(phrase) in _in_a_row(text)


def _in_a_row(text: str) -> str:
    words = (" ".join(run) if _IS_CJK.match(run) else run for run in _RUN.findall(_folded(text)))
    return f" {' '.join(words)} "


def best_text(texts: Sequence[str], words: Sequence[str], phrases: Sequence[str]) -> int:
    """The number of the text that has most of what is looked for; 0 if none has any."""

    def score(text: str) -> tuple[int, int]:
        folded = _folded(text)
        return sum(has_phrase(text, phrase) for phrase in phrases), sum(_root(word) in folded for word in words)

    return max(range(len(texts)), key=lambda number: (*score(texts[number]), -number), default=0)


def _root(word: str) -> str:
    """The beginning that the forms of a word have in common, roughly: good enough to choose what is shown."""
    folded = _folded(word)
    return folded if len(folded) < 6 or _IS_CJK.match(folded) else folded[: max(4, len(folded) - 3)]


def snippet(text: str, words: Sequence[str]) -> str:
    """The part of a text where the words stand first, in one line."""
    line = " ".join(text.split())
    lower = line.lower()
    places = [at for word in words if (at := lower.find(_root(word))) >= 0]
    start = max(0, min(places, default=0) - _SNIPPET_LENGTH // 3)
    end = min(len(line), start + _SNIPPET_LENGTH)
    return f"{'…' if start else ''}{line[start:end].strip()}{'…' if end < len(line) else ''}"

"""Words without any model: frequent terms, summaries, and text as the index and its queries have it. Pure.

Chinese is written without blanks, so it is taken by pairs of characters: 年度报告 is 年度, 度报, 报告. Here
"Chinese" means every script that is written so: Han, Kana, Hangul.
"""

import re
from collections import Counter
from collections.abc import Iterable

__all__ = ["as_indexed", "as_query", "frequent_terms", "shortened", "snippet", "terms_of"]

_CJK = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
_RUN = re.compile(rf"[{_CJK}]+|[^\W{_CJK}]+")
_IS_CJK = re.compile(rf"[{_CJK}]")
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


def as_indexed(text: str) -> str:
    """A text as it goes into the index: Chinese as pairs, and the last character of a run once more, so that one
    character finds it as well.
    """
    return _RUN.sub(lambda match: _pairs(match[0]) if _IS_CJK.match(match[0]) else match[0], text)


def _pairs(run: str) -> str:
    return f" {' '.join([*(run[at : at + 2] for at in range(len(run) - 1)), run[-1]])} "


def as_query(text: str, *, any_term: bool = False) -> str:
    """What a person typed, as a query of the index: all terms, or any of them. Empty for a text without any."""
    return (" OR " if any_term else " ").join(map(_query_term, _RUN.findall(text)))


def _query_term(run: str) -> str:
    if not _IS_CJK.match(run):
        return f'"{run}"'
    if len(run) == 1:
        return f'"{run}" *'
    return f'"{" ".join(run[at : at + 2] for at in range(len(run) - 1))}"'


def snippet(text: str, query: str) -> str:
    """The part of a text where a query's terms stand first, in one line."""
    line = " ".join(text.split())
    lower = line.lower()
    places = [at for run in _RUN.findall(query.lower()) if (at := lower.find(run)) >= 0]
    start = max(0, min(places, default=0) - _SNIPPET_LENGTH // 3)
    end = min(len(line), start + _SNIPPET_LENGTH)
    return f"{'…' if start else ''}{line[start:end].strip()}{'…' if end < len(line) else ''}"

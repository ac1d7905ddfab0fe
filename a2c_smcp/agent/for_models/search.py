"""Finding a few of many things by words: BM25 over stems, and how much of a thing's name a request has. Pure."""

import heapq
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from a2c_smcp.agent.for_models.search_text import OF_CONTENT, all_stems, is_question, is_to_see, meanings, stem, words

__all__ = ["SearchIndex"]

#: BM25's k1 (how soon the repetitions of a word stop counting) and b (how much less a long text counts).
_K, _B = 1.2, 0.3
#: How much more a document counts whose whole name is in the request.
_NAMED: Final = 1.0
#: A thing has several names, and a rare one must not count more than a common one. This share of the rarity of a name
#: is the rarity of the thing: how few documents have any of its names.
_OF_THE_THING: Final = 0.75
#: How much the words of `answering` count for a question.
_ANSWERS: Final = 0.4
#: How much a document counts that changes or deletes something although the request does not ask for that.
_UNASKED: Final = 0.5


class SearchIndex:
    """Finds the best of `documents`, each given as its texts with their weights. The heaviest text is its name. For a
    question, documents with a word of `answering` come earlier. For a question and for an order to see something, those
    with a word of `changing` in their name come later, unless it has a word of `answering` too. Those with a word of
    `deleting` in their name come later for each request that has no such word.
    """

    def __init__(
        self,
        documents: Sequence[Mapping[str, float]],
        answering: Sequence[str] = (),
        changing: Sequence[str] = (),
        deleting: Sequence[str] = (),
    ) -> None:
        weights = [_weights(texts) for texts in documents]
        sizes = [sum(found.values()) for found in weights]
        average = (sum(sizes) / len(sizes) if sizes else 0) or 1
        self._documents = len(weights)
        self._scores: dict[str, list[tuple[int, float]]] = {}
        """The documents that have a word, each with how much it is about that word."""
        self._names: dict[str, list[tuple[int, float]]] = {}
        """The documents that have a word in their name, each with the share that it has in the name."""
        for number, (texts, found) in enumerate(zip(documents, weights, strict=True)):
            base = _K * (1 - _B + _B * sizes[number] / average)
            for word, weight in found.items():
                self._scores.setdefault(word, []).append((number, weight * (_K + 1) / (weight + base)))
            name = [stem(word) for word in words(max(texts, key=texts.__getitem__, default=""))]
            for word in set(name):
                self._names.setdefault(word, []).append((number, 1 / len(name)))
        self._answers = self._about({stem(word): _ANSWERS for word in answering}, 1.0)
        stems, numbers = self._that_do(changing)
        self._changing = stems, numbers - self._that_do(answering)[1]
        self._deleting = self._that_do(deleting)

    def best(self, query: str, most: int) -> list[int]:
        """The indexes of the documents that contain words of the query, best match first."""
        return [number for number, _ in self.ranked(query, most)]

    def ranked(self, query: str, most: int, among: Callable[[int], bool] | None = None) -> list[tuple[int, float]]:
        """The best documents that contain words of the query, each with the share of the query's words that it has,
        between 0 and 1. `among` says by its index whether a document counts.
        """
        asked = meanings(query, self._scores.__contains__)
        total: dict[int, float] = {}
        shares: dict[int, float] = {}
        named: dict[int, float] = {}
        weights = [max(meaning.values()) for meaning in asked]
        whole = sum(weights)
        for meaning, weight in zip(asked, weights, strict=True):
            share = weight / whole
            for number, score in self._about(meaning, weight).items():
                total[number] = total.get(number, 0.0) + score
                shares[number] = shares.get(number, 0.0) + share
            for word, factor in meaning.items():
                for number, part in self._names.get(word, ()):
                    named[number] = named.get(number, 0.0) + part * factor
        self._weigh_what_they_do(total, query, asked)
        found = [
            (-score * (1 + _NAMED * min(1.0, named.get(number, 0.0))), number)
            for number, score in total.items()
            if among is None or among(number)
        ]
        return [(number, shares[number]) for _, number in heapq.nsmallest(most, found)]

    def _weigh_what_they_do(self, total: dict[int, float], query: str, asked: Sequence[Mapping[str, float]]) -> None:
        """Let the documents count more that answer a question, and those less that change or delete unasked."""
        unasked = []
        asking = is_question(query)
        asked = [meaning for meaning in asked if max(meaning.values()) > OF_CONTENT]
        if {word for meaning in asked for word in meaning}.isdisjoint(self._deleting[0]):
            unasked.append(self._deleting[1])
        if asking:
            for number in total:
                total[number] += self._answers.get(number, 0.0)
        # A question has many words that may mean a change: "say" may mean to post. So only its own words count.
        own = {max(meaning, key=meaning.__getitem__) for meaning in asked}
        if (asking or is_to_see(query)) and own.isdisjoint(self._changing[0]):
            unasked.append(self._changing[1])
        for numbers in unasked:
            for number in numbers & total.keys():
                total[number] *= _UNASKED

    def _that_do(self, verbs: Sequence[str]) -> tuple[frozenset[str], frozenset[int]]:
        """The stems of some verbs, and the documents that have one in their name."""
        stems = frozenset(map(stem, verbs))
        return stems, frozenset(number for word in stems for number, _ in self._names.get(word, ()))

    def _about(self, meaning: Mapping[str, float], own: float) -> dict[int, float]:
        """The documents that have one of these names of one thing, each with the score of its best name. The word of
        the query itself counts `own`, and its rarity is its own; for the other names see `_OF_THE_THING`.
        """
        found = {word: scores for word in meaning if (scores := self._scores.get(word))}
        if not found:
            return {}
        any_name = self._rarity(len({number for scores in found.values() for number, _ in scores}))
        best: dict[int, float] = {}
        for word, scores in found.items():
            factor, rarity = meaning[word], self._rarity(len(scores))
            factor *= rarity if factor == own else rarity + (any_name - rarity) * _OF_THE_THING
            for number, score in scores:
                if factor * score > best.get(number, 0.0):
                    best[number] = factor * score
        return best

    def _rarity(self, found: int) -> float:
        return math.log(1 + (self._documents - found + 0.5) / (found + 0.5))


def _weights(texts: Mapping[str, float]) -> Mapping[str, float]:
    """The stems of the texts, each with the sum of the weights of its places."""
    count: defaultdict[str, float] = defaultdict(float)
    for text, weight in texts.items():
        for word in all_stems(text):
            count[word] += weight
    return count

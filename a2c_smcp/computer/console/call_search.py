"""Finds calls in the history. Pure: the calls are handed in."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, get_args

from a2c_smcp.computer.calls.log import CallOutcome, EndedCall
from a2c_smcp.computer.console.limits import CONSOLE_LIMITS
from a2c_smcp.computer.decisions.book import CALLBACK
from a2c_smcp.errors import BadRequestError

__all__ = ["CallQuery", "call_query", "matching"]


@dataclass(frozen=True, slots=True)
class CallQuery:
    """What a call must have to be found. An empty field sets no condition."""

    words: tuple[str, ...] = ()
    """All of these words, anywhere, in upper or lower case."""
    outcome: str = ""
    by_person: bool = False
    """Only calls that a person decided on, and not a callback."""
    req_id: str = ""
    since: float | None = None
    """Not before this time, in seconds since 1970."""
    until: float | None = None
    reads: bool = False
    """What agents have read, as the record has it, and no calls."""

    def matches(self, ended: EndedCall) -> bool:
        """Whether this call fits the query."""
        if self.outcome and ended.outcome != self.outcome:
            return False
        if self.by_person and (ended.verdict is None or ended.decided_by == CALLBACK):
            return False
        ended_at = ended.call.started_at + ended.duration
        if (self.since is not None and ended_at < self.since) or (self.until is not None and ended_at >= self.until):
            return False
        if self.req_id and ended.call.req_id != self.req_id:
            return False
        if not self.words:
            return True
        text = "\n".join(_texts(ended)).casefold()
        return all(word.casefold() in text for word in self.words)


def call_query(given: Mapping[str, str]) -> CallQuery:
    """The query of a URL, or `BadRequestError`."""
    search, outcome, person = given.get("q", ""), given.get("outcome", ""), given.get("person", "")
    if len(search) > CONSOLE_LIMITS.search_characters:
        raise BadRequestError(f"'q' has at most {CONSOLE_LIMITS.search_characters} characters", {"field": "q"})
    if outcome and outcome not in get_args(CallOutcome):
        raise BadRequestError(f"'outcome' must be one of {', '.join(get_args(CallOutcome))}", {"field": "outcome"})
    if person not in ("", "1"):
        raise BadRequestError("'person' must be 1, or left out", {"field": "person"})
    if (reads := given.get("reads", "")) not in ("", "1"):
        raise BadRequestError("'reads' must be 1, or left out", {"field": "reads"})
    since, until = (_time(given, name) for name in ("since", "until"))
    words, req_id = tuple(search.split()), given.get("req_id", "")
    return CallQuery(words, outcome, bool(person), req_id, since, until, reads == "1")


def _time(given: Mapping[str, str], name: str) -> float | None:
    if not (text := given.get(name, "")):
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= 1e11:
        raise BadRequestError(f"'{name}' must be a time in seconds since 1970", {"field": name})
    return seconds


def matching(calls: Iterator[EndedCall], query: CallQuery, most: int) -> list[EndedCall]:
    """The next calls that match, at most `most`; empty if there are no more."""
    return list(islice(filter(query.matches, calls), most))


def _texts(ended: EndedCall) -> Iterator[str]:
    """Everything of a call that a person may have seen."""
    call = ended.call
    yield from filter(None, (call.name, call.tool, call.server, call.agent, ended.decided_by))
    yield from _leaves(call.arguments)
    for item in ended.result.get("content") or ():
        for part in (item, item.get("resource")):
            if isinstance(part, Mapping):
                yield from (part[key] for key in ("text", "uri", "name", "title") if isinstance(part.get(key), str))
    yield from _leaves(ended.result.get("structuredContent") or {})


def _leaves(value: Any) -> Iterator[str]:
    """The names and values in a JSON value, as texts in order. Not recursive: the value may be nested deeply."""
    waiting: list[Iterator[Any]] = [iter((value,))]
    while waiting:
        for item in waiting[-1]:
            if isinstance(item, str):
                yield item
            elif isinstance(item, Mapping):
                waiting.append(iter([part for pair in item.items() for part in pair]))
                break
            elif isinstance(item, list | tuple):
                waiting.append(iter(item))
                break
            else:
                yield json.dumps(item, default=str)
        else:
            waiting.pop()

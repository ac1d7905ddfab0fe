"""Which calls are found: by words, by what became of them, by who decided."""

from typing import Any

import pytest

from a2c_smcp.computer.calls.log import EndedCall, WatchedCall
from a2c_smcp.computer.console.call_search import CallQuery, call_query, matching
from a2c_smcp.computer.console.limits import CONSOLE_LIMITS
from a2c_smcp.errors import BadRequestError


def ended(by: str | None = None, stopped: Any = None, *, structured: Any = None, **arguments: Any) -> EndedCall:
    content = [
        {"type": "text", "text": "The Result"},
        {"type": "image", "mimeType": "image/png", "data": "SECRETDATA"},
        {"type": "resource", "resource": {"uri": "file:///notes", "text": "Inside"}},
        {"type": "resource_link", "uri": "https://example.test/", "name": "elsewhere"},
    ]
    result: Any = {"meta": None, "content": content, "structuredContent": structured, "isError": False}
    call = WatchedCall("1", "r-1", "Ada", "files", "read", "files.read", arguments, 20.0, 1.0)
    return EndedCall(call, 0.5, result, by, stopped)


@pytest.mark.parametrize(
    "words",
    [
        "",
        "  ",
        "ada",
        "FILES.read",
        "result the",
        "inside notes",
        "elsewhere example.test",
        "terminal",
        'say "hi"',
        "Straße",
        "STRASSE",
        "deep true 1.5 null",
        "total 42",
    ],
)
def test_words_are_found_wherever_they_stand(words: str) -> None:
    deep: Any = "deep"
    for _ in range(5000):
        deep = [deep]
    call = ended(
        "terminal", None, structured={"total": 42}, text='say "hi"', in_="Straße", list=[True, 1.5, None], deep=deep
    )
    assert call_query({"q": words}).matches(call)


@pytest.mark.parametrize("words", ["nothing", "ada grace", "SECRETDATA", "resource_link"])
def test_what_a_person_has_not_seen_is_not_found(words: str) -> None:
    assert not call_query({"q": words}).matches(ended(text="x"))


def test_by_what_became_of_it_and_by_whom() -> None:
    calls = [
        ended(),
        ended("terminal"),
        ended("terminal", "refused"),
        ended(None, "unanswered"),
        ended("callback", "refused"),
    ]
    found = [call_query({"outcome": "refused"}).matches(call) for call in calls]
    assert found == [False, False, True, False, True]
    assert [call_query({"person": "1"}).matches(call) for call in calls] == [False, True, True, False, False]
    assert call_query({"req_id": "r-1"}).matches(calls[0]) and not call_query({"req_id": "r"}).matches(calls[0])


@pytest.mark.parametrize(
    "given", [{"q": "x" * (CONSOLE_LIMITS.search_characters + 1)}, {"outcome": "great"}, {"person": "me"}]
)
def test_what_is_no_query_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(BadRequestError):
        call_query(given)


def test_the_next_ones_come_when_they_are_asked_for() -> None:
    calls = iter([ended(n=number) for number in range(5)])
    sizes = [len(matching(calls, CallQuery(), 2)) for _ in range(4)]
    assert sizes == [2, 2, 1, 0]

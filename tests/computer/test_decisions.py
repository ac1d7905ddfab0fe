"""A decision is made once; who comes later is told by whom, and how; and no value shows."""

from dataclasses import replace

import pytest

from a2c_smcp.computer.calls.log import WatchedCall
from a2c_smcp.computer.decisions.book import (
    Accepted,
    AlreadyDecidedError,
    Confirmation,
    DecisionBook,
    DecisionChangedError,
    Declined,
    Dismissed,
    MissingInput,
    Outcome,
    Question,
    Resolution,
    check_answer,
    resolution_by,
    weight_of_decision,
)
from a2c_smcp.computer.mcp_clients.model import parse_input
from a2c_smcp.errors import BadRequestError, NotFoundError

CALL = WatchedCall(
    "c-1", "r", "max", "files", "delete", "files.delete", {"path": "a", "deep": {"x": 1, "y": 2}}, 30, 0.0
)
CONFIRMATION = Confirmation("d-1", 0.0, None, CALL)
FORM = {"type": "object", "properties": {"name": {"type": "string"}}}
QUESTION = Question("d-2", 0.0, None, "files", "Which one?", FORM, None, None, (CALL,))
INPUT = MissingInput(
    "d-3",
    0.0,
    None,
    parse_input({"id": "key", "type": "promptString", "password": True, "default": "hunter2hunter2"}),
    ("files",),
)


def test_the_first_counts_and_the_second_is_told() -> None:
    book = DecisionBook[Confirmation]()
    book.open("d-1", CONFIRMATION)
    book.settle("d-1", resolution_by("browser", Declined()))
    with pytest.raises(AlreadyDecidedError, match="declined by browser") as error:
        book.settle("d-1", resolution_by("terminal", Accepted()))
    assert (error.value.decision_id, error.value.outcome, error.value.by) == ("d-1", "declined", "browser")
    assert book.resolution("d-1") == Resolution(Outcome.DECLINED, "browser")
    assert book.pending == ()


def test_an_id_that_nobody_gave_is_not_found() -> None:
    with pytest.raises(NotFoundError):
        DecisionBook[Confirmation]().find("d-9")


def test_what_is_remembered_has_a_bound_and_no_value() -> None:
    book = DecisionBook[str](remembered=2)
    for number in range(3):
        book.open(f"d-{number}", "entry")
        book.settle(f"d-{number}", resolution_by("terminal", Accepted("a secret")))
    assert book.resolution("d-0") is None
    assert book.resolution("d-2") == Resolution(Outcome.ACCEPTED, "terminal", value=None)
    with pytest.raises(NotFoundError):
        book.find("d-0")


@pytest.mark.parametrize(
    ("resolution", "text"),
    [
        (Resolution(Outcome.UNANSWERED), "nobody answered in time"),
        (Resolution(Outcome.WITHDRAWN), "it is not needed any more"),
        (Resolution(Outcome.ACCEPTED, "browser", always=True), "accepted always by browser"),
    ],
)
def test_an_outcome_in_words(resolution: Resolution, text: str) -> None:
    assert str(resolution) == text


def test_an_answer_for_something_else_decides_nothing() -> None:
    other = Confirmation(
        "d-1", 0.0, None, WatchedCall("c-1", "r", "max", "files", "delete", "d", {"path": "b"}, 30, 0.0)
    )
    check_answer(CONFIRMATION, Accepted(), CONFIRMATION.digest)
    with pytest.raises(DecisionChangedError):
        check_answer(CONFIRMATION, Accepted(), other.digest)


def test_the_digest_is_that_of_the_exact_call() -> None:
    def digest(**changes: object) -> str:
        fields = {"server": "s", "tool": "t", "arguments": {"a": 1, "b": [2**70]}, **changes}
        return WatchedCall("id", "r", None, name="n", timeout=None, started_at=0.0, **fields).digest  # type: ignore[arg-type]

    assert digest() == digest(arguments={"b": [2**70], "a": 1})
    assert len({digest(), digest(server="x"), digest(tool="x"), digest(arguments={"a": 1, "b": ["2"]})}) == 4


@pytest.mark.parametrize("decision", [QUESTION, INPUT])
def test_always_is_for_confirmations(decision: Question | MissingInput) -> None:
    with pytest.raises(BadRequestError):
        check_answer(decision, Accepted("x", always=True))


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [(Accepted(), Outcome.ACCEPTED), (Declined(), Outcome.DECLINED), (Dismissed(), Outcome.DISMISSED)],
)
def test_an_answer_and_its_outcome(answer: Accepted | Declined | Dismissed, outcome: Outcome) -> None:
    assert resolution_by("terminal", answer) == Resolution(outcome, "terminal")


def test_no_value_and_no_secret_default_shows() -> None:
    secret = "hunter2hunter2"
    shown = [repr(Accepted(secret)), repr(resolution_by("x", Accepted(secret))), repr(INPUT), repr(INPUT.view)]
    assert not any(secret in text for text in shown)
    assert INPUT.definition.fallback == secret


def test_a_decision_weighs_what_others_have_put_into_it() -> None:
    large = replace(CALL, arguments={"text": "x" * 100_000})
    assert weight_of_decision(Confirmation("d-1", 0.0, None, large), 10**9) > 100_000
    assert weight_of_decision(replace(QUESTION, calls=(CALL, large)), 10**9) > 100_000
    assert weight_of_decision(replace(QUESTION, message="x" * 10_000), 10**9) > 10_000
    assert weight_of_decision(replace(QUESTION, schema={"title": "x" * 100_000}), 10**9) > 100_000
    assert weight_of_decision(INPUT, 10**9) < 1_000

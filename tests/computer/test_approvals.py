"""Run, ask or refuse."""

import pytest

from a2c_smcp.computer.calls.log import HowDecided
from a2c_smcp.computer.decisions.approvals import (
    AskPerson,
    Refuse,
    Run,
    approve,
    approve_resolution,
    decided_at,
)
from a2c_smcp.computer.decisions.book import Declined, Outcome, Resolution, resolution_by
from a2c_smcp.computer.mcp_clients.model import ToolMeta
from a2c_smcp.computer.rules.deciding import RuleVerdict
from a2c_smcp.computer.rules.rule import Rule
from a2c_smcp.results import error_result, from_wire, text_of, to_wire


@pytest.mark.parametrize("can_ask", [True, False])
def test_auto_apply_runs_without_asking(can_ask: bool) -> None:
    assert approve(ToolMeta(auto_apply=True), can_ask=can_ask) == Run()


@pytest.mark.parametrize("meta", [None, ToolMeta(), ToolMeta(auto_apply=False)])
def test_anything_else_asks_the_callback(meta: ToolMeta | None) -> None:
    assert approve(meta, can_ask=True) == AskPerson()


@pytest.mark.parametrize("meta", [None, ToolMeta(), ToolMeta(auto_apply=False)])
def test_without_a_callback_it_is_refused_with_4005(meta: ToolMeta | None) -> None:
    approval = approve(meta, can_ask=False)
    assert isinstance(approval, Refuse)
    error = approval.error("delete")
    assert error.code == 4005
    assert "delete" in error.message


def test_what_was_allowed_before_runs() -> None:
    assert approve(ToolMeta(), can_ask=False, is_allowed=True) == Run()


def test_a_yes_runs() -> None:
    assert approve_resolution(Resolution(Outcome.ACCEPTED, "terminal")) == Run()


@pytest.mark.parametrize("outcome", sorted(set(Outcome) - {Outcome.ACCEPTED}))
def test_whatever_is_not_a_yes_refuses(outcome: Outcome) -> None:
    assert isinstance(approve_resolution(Resolution(outcome)), Refuse)


def test_silence_is_not_called_a_refusal() -> None:
    silence, refusal = (approve_resolution(Resolution(outcome)) for outcome in (Outcome.UNANSWERED, Outcome.DECLINED))
    assert silence == Refuse("unanswered", "nobody answered in time")
    assert refusal == Refuse("refused", "the person refused")


def test_the_agent_reads_who_or_what_refused_and_the_words_of_the_person() -> None:
    refused = approve_resolution(resolution_by("terminal", Declined("wrong folder")))
    nobody = approve(None, can_ask=False)
    assert isinstance(refused, Refuse) and isinstance(nobody, Refuse)
    result = error_result(refused.error("delete"))
    assert result.meta == {"error_code": 4005, "outcome": "refused", "reason": "wrong folder"}
    assert from_wire(to_wire(result)).meta == result.meta
    assert text_of(result) == "Tool delete requires confirmation: the person refused: wrong folder"
    assert error_result(nobody.error("delete")).meta == {"error_code": 4005, "outcome": "nobody"}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("  two\r\nlines\n", "two\nlines"),
        ("bell\x07 tab\there \x1b[31m", r"bell\u0007 tab here \u001b[31m"),
        ("\ud800", r"\ud800"),
        ("x" * 5_000, "x" * 999 + "…"),
        ("x" * 999, "x" * 999),
    ],
)
def test_a_reason_has_no_control_characters_but_line_breaks_and_is_short(given: str, kept: str) -> None:
    assert resolution_by("terminal", Declined(given)).reason == kept


DENY, ALLOW, ASK = (
    RuleVerdict(effect, Rule(effect, f"{effect}-1", reason="why")) for effect in ("deny", "allow", "ask")
)


@pytest.mark.parametrize(
    ("meta", "confirmed_by", "verdict", "how"),
    [
        (ToolMeta(auto_apply=True), "terminal", None, HowDecided("config")),
        (None, "terminal", None, HowDecided("person", "terminal")),
        (None, None, None, HowDecided("yes")),
        (ToolMeta(auto_apply=True), None, ALLOW, HowDecided("rule", rule="allow-1")),
        (ToolMeta(auto_apply=True), None, DENY, HowDecided("rule", rule="deny-1")),
    ],
)
def test_a_call_that_needs_no_question_says_what_decided_it(
    meta: ToolMeta | None, confirmed_by: str | None, verdict: RuleVerdict | None, how: HowDecided
) -> None:
    approval = approve(meta, can_ask=False, is_allowed=True, verdict=verdict, confirmed_by=confirmed_by)
    assert not isinstance(approval, AskPerson) and approval.how == how


@pytest.mark.parametrize("meta", [None, ToolMeta(auto_apply=True)])
@pytest.mark.parametrize("is_allowed", [True, False])
def test_a_rule_comes_before_the_config_and_before_a_yes_for_everything(
    meta: ToolMeta | None, is_allowed: bool
) -> None:
    assert approve(meta, can_ask=True, is_allowed=is_allowed, verdict=ALLOW) == Run()
    assert approve(meta, can_ask=True, is_allowed=is_allowed, verdict=ASK) == AskPerson()
    refusal = approve(meta, can_ask=True, is_allowed=is_allowed, verdict=DENY)
    assert isinstance(refusal, Refuse)
    result = error_result(refusal.error("delete"))
    assert result.meta == {"error_code": 4005, "outcome": "rule", "reason": "why"}
    assert text_of(result) == "Tool delete requires confirmation: a rule of this computer denies it: why"


def test_an_answer_says_where_it_was_given() -> None:
    places = "browser of Ada", "callback", None
    assert [decided_at(place).by for place in places] == ["person", "program", "nobody"]
    assert decided_at("browser of Ada").place == "browser of Ada"

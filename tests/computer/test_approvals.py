"""Run, ask or refuse."""

import pytest

from a2c_smcp.computer.approvals import Ask, Refuse, Run, approve, approve_resolution
from a2c_smcp.computer.decisions import Outcome, Resolution
from a2c_smcp.computer.mcp_clients.model import ToolMeta


@pytest.mark.parametrize("can_ask", [True, False])
def test_auto_apply_runs_without_asking(can_ask: bool) -> None:
    assert approve(ToolMeta(auto_apply=True), can_ask=can_ask) == Run()


@pytest.mark.parametrize("meta", [None, ToolMeta(), ToolMeta(auto_apply=False)])
def test_anything_else_asks_the_callback(meta: ToolMeta | None) -> None:
    assert approve(meta, can_ask=True) == Ask()


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
    assert silence == Refuse("nobody answered in time")
    assert refusal == Refuse("the person refused")

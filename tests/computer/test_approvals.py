"""Run, ask or refuse."""

import pytest

from a2c_smcp.computer.approvals import Ask, Refuse, Run, approve, approve_answer
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


def test_a_yes_runs() -> None:
    assert approve_answer(True) == Run()


@pytest.mark.parametrize("answer", [False, None, 0, 1, "", "no", "yes"])
def test_whatever_is_not_true_refuses(answer: object) -> None:
    assert isinstance(approve_answer(answer), Refuse)

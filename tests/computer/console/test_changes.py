"""Events gathered into one message."""

from typing import Any

from a2c_smcp.computer.calls.log import EndedCall, ProgressReport, WatchedCall
from a2c_smcp.computer.console.changes import PageChanges
from a2c_smcp.computer.console.limits import CONSOLE_LIMITS
from a2c_smcp.computer.decisions.book import Confirmation, Outcome
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.computer.watching.events import (
    AnswerersChanged,
    CallEnded,
    CallProgressed,
    CallStarted,
    DecisionAsked,
    DecisionDecided,
    OfficeStatus,
    ServerStatus,
    ToolInvalid,
)


def call(call_id: str) -> WatchedCall:
    return WatchedCall(call_id, "r", "ada", "s", "t", "s.t", {"x": 1}, 20.0, 1.0)


def ended(call_id: str) -> CallEnded:
    return CallEnded(EndedCall(call(call_id), 0.5, {"meta": None, "content": [], "isError": False}, None))


def told(*events: Any) -> dict[str, Any]:
    changes = PageChanges(1)
    for event in events:
        changes.add(event)
    return changes.message(9, 2.0)


def test_nothing_is_left_out_but_what_is_empty() -> None:
    assert told() == {"kind": "changes", "since": 1, "number": 9, "now": 2.0}
    assert told(AnswerersChanged(()))["answerers"] == []


def test_a_call_that_is_over_is_told_once_with_its_end() -> None:
    message = told(CallStarted(call("a")), CallProgressed("a", ProgressReport(1.0)), ended("a"), CallStarted(call("b")))
    assert [each["id"] for each in message["ended"]] == ["a"]
    assert [each["id"] for each in message["started"]] == ["b"] and "progress" not in message


def test_of_the_progress_of_a_call_the_last_counts_and_of_many_ends_the_last_ones() -> None:
    reports = [CallProgressed("a", ProgressReport(float(step), 10.0, f"step {step}")) for step in range(5)]
    assert told(*reports)["progress"] == {"a": {"progress": 4.0, "total": 10.0, "message": "step 4"}}
    message = told(*(ended(str(number)) for number in range(CONSOLE_LIMITS.listed_calls + 10)))
    assert [each["id"] for each in message["ended"]] == [
        str(number) for number in range(10, CONSOLE_LIMITS.listed_calls + 10)
    ]


def test_a_decision_is_told_whole_and_its_end_without_a_value() -> None:
    asked = Confirmation("d", 1.0, 5.0, call("a"))
    message = told(
        DecisionAsked(asked), DecisionDecided("d", "confirmation", Outcome.DECLINED, "terminal", False, "why")
    )
    assert message["asked"][0]["digest"] == asked.digest and message["asked"][0]["deadline"] == 5.0
    assert message["decided"] == [
        {"id": "d", "outcome": "declined", "by": "terminal", "always": False, "reason": "why", "rule": None}
    ]


def test_of_the_states_of_a_connection_the_last_counts() -> None:
    message = told(OfficeStatus("1", "connected", "u"), OfficeStatus("1", "joined", "u", "lab", "pc"))
    assert [(each["state"], each["office"]) for each in message["offices"]] == [("joined", "lab")]


def test_what_servers_say_in_passing_hides_nothing() -> None:
    message = told(
        ToolInvalid("s", "a\u202eb", "c\u200bd"),
        CallProgressed("a", ProgressReport(1.0, None, "\u202eenod")),
        ServerStatus("s", ServerState.FAILED, "e\u202ef"),
    )
    [notice] = message["notices"]
    assert (notice["tool"], notice["problem"]) == (r"a\u202eb", r"c\u200bd")
    assert message["progress"]["a"]["message"] == r"\u202eenod"
    assert message["servers"][0]["reason"] == r"e\u202ef"
    assert "\u202e" not in str(message)

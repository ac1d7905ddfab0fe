"""The last ten calls, and the order of servers that follows from them."""

from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.computer.calls.history import HISTORY_SIZE, order_servers, remember, used_servers
from a2c_smcp.computer.types import ToolCallRecord

names = st.text("abcde", min_size=1, max_size=2)


def record(server: str = "files", req_id: str = "1") -> ToolCallRecord:
    return {
        "timestamp": "2026-01-01T00:00:00+00:00",
        "req_id": req_id,
        "server": server,
        "tool": "read",
        "parameters": {},
        "timeout": None,
        "success": True,
        "error": None,
    }


def test_the_last_ten_calls_are_kept_oldest_first() -> None:
    history: tuple[ToolCallRecord, ...] = ()
    for number in range(13):
        history = remember(history, record(req_id=str(number)))
    assert [call["req_id"] for call in history] == [str(number) for number in range(3, 13)]
    assert len(history) == HISTORY_SIZE


def test_remembering_leaves_the_old_history_alone() -> None:
    before = (record(),)
    remember(before, record(req_id="2"))
    assert len(before) == 1


def test_the_servers_of_a_history_are_named_oldest_first_and_repeated() -> None:
    assert used_servers([record("b"), record("a"), record("b")]) == ["b", "a", "b"]


def test_the_most_recently_used_server_comes_first() -> None:
    assert order_servers(["a", "b", "c", "a"], ["a", "b", "c"]) == ["a", "c", "b"]


def test_servers_never_used_follow_by_name() -> None:
    assert order_servers(["m"], ["z", "b", "m", "a"]) == ["m", "a", "b", "z"]


def test_used_servers_that_are_not_there_are_left_out() -> None:
    assert order_servers(["gone", "a"], ["b", "a"]) == ["a", "b"]


@given(st.lists(names), st.lists(names))
def test_each_server_comes_once(used: list[str], servers: list[str]) -> None:
    ordered = order_servers(used, servers)
    assert sorted(ordered) == sorted(set(servers))
    recent = [name for name in dict.fromkeys(reversed(used)) if name in servers]
    assert ordered[: len(recent)] == recent
    assert ordered[len(recent) :] == sorted(set(servers) - set(used))

"""The order of servers that follows from the last calls."""

from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.computer.resources.server_order import order_servers

names = st.text("abcde", min_size=1, max_size=2)


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

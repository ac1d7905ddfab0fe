"""Repeats: what collapses into what, and when no more."""

from a2c_smcp.utils.repeats import Repeats


def test_a_repeat_is_found_while_the_first_one_waits_and_not_across_a_bar() -> None:
    repeats: Repeats[object] = Repeats()
    first, second = object(), object()
    assert repeats.find("c", "update") is None
    repeats.add("c", "update", first)
    assert repeats.find("c", "update") is first
    assert repeats.find("c", "other") is repeats.find("d", "update") is None
    repeats.bar("c")
    assert repeats.find("c", "update") is None
    repeats.add("c", "update", second)
    repeats.remove("c", "update", first)  # leaves what took its place
    assert repeats.find("c", "update") is second
    repeats.remove("c", "update", second)
    assert repeats._waiting == {}

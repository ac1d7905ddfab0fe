"""A request that arrives twice runs once."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.computer.calls.memory import NEW, RAN, CallKey, CallMemory, Finished, Running
from a2c_smcp.errors import BadRequestError, TooManyRequestsError

KEY = CallKey("office", "ann", True, "agent", "req-1")
Memory = CallMemory[str, str]
#: What a call counts besides its result: who made it.
AROUND = len("officeannagentreq-1")


def key(number: int) -> CallKey:
    return KEY._replace(req_id=f"req-{number}")


def admit(memory: Memory, call: CallKey = KEY, now: float = 0.0, tool: str = "t", **params: Any) -> object:
    return memory.admit(call, tool, params, "entry", now)


def running(memory: Memory, call: CallKey) -> list[str]:
    return memory.running(call.office, call.agent, call.req_id)


def run(memory: Memory, call: CallKey, now: float = 0.0, size: int = 1) -> None:
    assert admit(memory, call, now) == NEW
    memory.finish(call, f"result of {call.req_id}", size, now)


def test_a_first_request_is_new() -> None:
    assert admit(Memory()) == NEW


def test_a_repeat_of_a_running_call_gets_the_entry_of_the_first() -> None:
    memory = Memory()
    memory.admit(KEY, "t", {}, "first", 0)
    assert memory.admit(KEY, "t", {}, "second", 1) == Running("first")


def test_a_repeat_of_a_finished_call_gets_its_result() -> None:
    memory = Memory()
    run(memory, KEY)
    assert admit(memory, now=299) == Finished("result of req-1")


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize(("tool", "params"), [("other", {}), ("t", {"x": 1})])
def test_the_same_key_with_another_tool_or_params_is_400(finished: bool, tool: str, params: dict[str, Any]) -> None:
    memory = Memory()
    admit(memory)
    if finished:
        memory.finish(KEY, "result", 1, 0)
    with pytest.raises(BadRequestError) as caught:
        admit(memory, tool=tool, **params)
    assert caught.value.details == {"req_id": "req-1"}
    assert admit(memory) == (Finished("result") if finished else Running("entry"))


def test_the_order_of_the_params_makes_no_other_call() -> None:
    memory = Memory()
    admit(memory, a=1, b=[{"c": 2, "d": 3}])
    assert admit(memory, b=[{"d": 3, "c": 2}], a=1) == Running("entry")


@pytest.mark.parametrize(
    ("one", "other"), [(1, True), (1, 1.0), (-1, -2), (0, 2**61 - 1), ("1", 1), (None, ""), ("a", ["a"])]
)
def test_values_that_are_hashed_or_compared_alike_are_not_the_same(one: Any, other: Any) -> None:
    memory = Memory()
    admit(memory, a=one)
    with pytest.raises(BadRequestError):
        admit(memory, a=other)


def test_texts_under_other_names_are_not_the_same() -> None:
    memory = Memory()
    admit(memory, a="x", b="y")
    assert admit(memory, b="y", a="x") == Running("entry")
    for other in ({"a": "y", "b": "x"}, {"a": "x"}, {"a": "x", "b": "y", "c": ""}):
        with pytest.raises(BadRequestError):
            memory.admit(KEY, "t", other, "entry", 0)


@pytest.mark.parametrize(
    "other",
    [{"office": "lobby"}, {"name": "spy"}, {"bound": False}, {"agent": "spy"}, {"req_id": "req-9"}],
)
def test_who_asks_and_the_ids_tell_calls_apart(other: dict[str, Any]) -> None:
    memory = Memory()
    run(memory, KEY)
    assert admit(memory, KEY._replace(**other)) == NEW


def test_a_result_is_remembered_for_five_minutes_after_it_came() -> None:
    memory = Memory()
    admit(memory, now=0)
    memory.finish(KEY, "result", 1, 1000)
    assert admit(memory, now=1299.9) == Finished("result")
    assert admit(memory, now=1300.1) == NEW


def test_a_running_call_is_remembered_however_long_it_runs() -> None:
    memory = Memory()
    admit(memory, now=0)
    assert admit(memory, now=100_000) == Running("entry")


def test_256_results_are_remembered_and_of_older_ones_that_they_have_run() -> None:
    memory = Memory()
    for number in range(256 + 1):
        run(memory, key(number))
    assert admit(memory, key(1)) == Finished("result of req-1")
    assert admit(memory, key(0)) is RAN


def test_16_mib_are_remembered_in_all() -> None:
    memory = Memory()
    run(memory, key(0), size=8 * 1024 * 1024 - AROUND)
    run(memory, key(1), size=8 * 1024 * 1024 - AROUND)
    assert admit(memory, key(0)) == Finished("result of req-0")
    run(memory, key(2), size=1)
    assert admit(memory, key(0)) is RAN
    assert admit(memory, key(1)) == Finished("result of req-1")


def test_that_a_call_has_run_is_remembered_for_its_five_minutes_and_for_the_same_request() -> None:
    memory = Memory(max_results=1)
    run(memory, key(0), now=100)
    run(memory, key(1), now=200)
    assert admit(memory, key(0), now=399.9) is RAN
    with pytest.raises(BadRequestError):
        admit(memory, key(0), now=399.9, tool="other")
    assert admit(memory, key(0), now=400.1) is NEW


def test_what_is_too_old_leaves_the_memory() -> None:
    memory = Memory(max_results=2)
    for number in range(5):
        run(memory, key(number), now=0)
    run(memory, key(9), now=1000)
    assert (len(memory._finished), len(memory._ran)) == (1, 0)


def test_how_many_are_remembered_as_run_has_a_bound() -> None:
    memory = Memory(max_results=1, max_ran=2)
    for number in range(4):
        run(memory, key(number))
    assert [admit(memory, key(number)) for number in range(4)] == [NEW, RAN, RAN, Finished("result of req-3")]


@pytest.mark.parametrize("large", [{"name": "a" * 1000}, {"agent": "a" * 1000}, {"req_id": "r" * 1000}])
def test_who_made_a_call_counts_as_what_is_remembered(large: dict[str, Any]) -> None:
    memory, call = Memory(max_bytes=1000), KEY._replace(**large)
    run(memory, call)
    assert admit(memory, call) is RAN


def test_a_result_over_the_whole_memory_is_not_kept() -> None:
    memory = Memory(max_bytes=10)
    run(memory, KEY, size=11)
    assert admit(memory) is RAN


def test_forgetting_a_running_call_lets_a_repeat_run() -> None:
    memory = Memory()
    admit(memory)
    memory.forget(KEY)
    assert running(memory, KEY) == []
    assert admit(memory) == NEW


def test_forgetting_does_not_touch_a_result() -> None:
    memory = Memory()
    run(memory, KEY)
    memory.forget(KEY)
    assert admit(memory) == Finished("result of req-1")


def test_one_running_call_too_many_is_429_and_changes_nothing() -> None:
    memory = Memory(max_running=2)
    admit(memory, key(0))
    admit(memory, key(1))
    with pytest.raises(TooManyRequestsError):
        admit(memory, key(2))
    assert running(memory, key(2)) == []
    assert admit(memory, key(1)) == Running("entry")  # a repeat is no call more
    memory.forget(key(0))
    assert admit(memory, key(2)) == NEW
    memory.finish(key(1), "result", 1, 0)
    assert admit(memory, key(3)) == NEW


@pytest.mark.parametrize("value", ["x" * 400_000, [[]] * 4_500, [{"a": 1}] * 1_400])
def test_the_params_of_running_calls_have_a_bound_in_bytes_together(value: object) -> None:
    memory = Memory(max_running_bytes=1_000_000)
    admit(memory, key(0), value=value)
    admit(memory, key(1), value=value)
    with pytest.raises(TooManyRequestsError):
        admit(memory, key(3), value=value)
    assert running(memory, key(3)) == []
    admit(memory, key(11))  # a small one fits
    memory.finish(key(0), "result", 1, 0)
    assert admit(memory, key(3), value=value) == NEW


def test_a_large_call_keeps_no_small_one_out_and_is_not_weighed_by_the_punctuation_of_its_texts() -> None:
    memory = Memory(max_running_bytes=1_000_000)
    for number in range(3):
        admit(memory, key(number), value='{"a": [1, 2]},' * 20_000)  # 280 KB each
    assert admit(memory, key(3), value={"a": [1]}) == NEW
    large = Memory(max_running_bytes=1_000_000)
    admit(large, key(0), value="x" * 5_000_000)
    assert admit(large, key(1), value=[1, 2]) == NEW
    with pytest.raises(TooManyRequestsError):
        admit(large, key(2), value="x" * 50_000)


def test_what_has_ended_leaves_its_room_to_others() -> None:
    memory = Memory(max_running_bytes=100_000)
    for number in range(100):
        assert admit(memory, key(number), value="x" * 60_000) == NEW
        if number % 2:
            memory.forget(key(number))
            memory.forget(key(number))
        else:
            memory.finish(key(number), "result", 1, 0)
    assert memory._running_bytes == 0


def test_a_cancellation_finds_the_running_call_and_no_other() -> None:
    memory = Memory()
    admit(memory)
    assert running(memory, KEY) == ["entry"]
    assert running(memory, key(2)) == []
    memory.finish(KEY, "result", 1, 0)
    assert running(memory, KEY) == []


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 8), st.integers(0, 4)), max_size=60))
def test_the_limits_hold_after_any_sequence_of_calls(calls: list[tuple[int, int, int]]) -> None:
    memory = Memory(remembered_seconds=10, max_results=3, max_bytes=12 + 3 * AROUND)
    finished: dict[CallKey, tuple[float, int]] = {}
    now = 0.0
    for number, size, wait in calls:
        now += wait
        if admit(memory, key(number), now) is NEW:
            memory.finish(key(number), "result", size, now)
            finished.pop(key(number), None)
            finished[key(number)] = (now, size)
        remembered = [call for call in finished if isinstance(_peek(memory, call, now), Finished)]
        assert len(remembered) <= 3
        assert sum(finished[call][1] + AROUND for call in remembered) <= 12 + 3 * AROUND
        assert all(now - finished[call][0] <= 10 for call in remembered)


def _peek(memory: Memory, call: CallKey, now: float) -> object:
    admission = admit(memory, call, now)
    if admission is NEW:
        memory.forget(call)
    return admission


@pytest.mark.parametrize("size", [10, 200_000])
def test_params_are_compared_whatever_their_size_and_the_order_of_their_keys(size: int) -> None:
    memory = Memory()
    params = {"a": "x" * size, "b": 2**70}
    assert memory.admit(key(0), "t", params, "entry", 0) == NEW
    assert memory.admit(key(0), "t", dict(reversed(params.items())), "entry", 0) == Running("entry")
    with pytest.raises(BadRequestError):
        memory.admit(key(0), "t", params | {"a": "x" * (size - 1) + "y"}, "entry", 0)

"""Counts of tool calls: bounded, and of late."""

from a2c_smcp.server.call_tally import CallTally, ToolName


def test_offices_by_calls_a_minute_and_tools_by_how_long_they_take() -> None:
    tally = CallTally()
    for second in range(60):
        tally.note(ToolName("busy", "c", "quick"), 0.01, False, second)
    tally.note(ToolName("calm", "c", "slow"), 3.0, True, 60)
    [(first, busy), (second_name, calm)] = tally.busiest_offices(5, 60)
    assert (first, second_name) == ("busy", "calm")
    assert busy.calls == 60 and 30 < busy.per_minute(60) < 60
    assert (calm.failed, calm.slowest) == (1, 3.0)
    assert [name.tool for name, _ in tally.slowest_tools(5)] == ["slow", "quick"]
    assert busy.per_minute(3600) < 0.001


def test_one_office_cannot_push_out_the_tools_of_another() -> None:
    tally = CallTally()
    tally.note(ToolName("good", "c", "t"), 1.0, False, 0)
    for number in range(5000):
        tally.note(ToolName("bad", "c", f"t{number}"), 2.0, False, 0)
    found = [name for name, _ in tally.slowest_tools(5000)]
    assert ToolName("good", "c", "t") in found
    assert len(found) < 100


def test_offices_are_bounded() -> None:
    tally = CallTally()
    for number in range(3000):
        tally.note(ToolName(f"o{number}", "c", "t"), 1.0, False, 0)
    assert len(tally.busiest_offices(5000, 0)) == 1000
    assert tally.office("o2999") is not None and tally.office("o0") is None

"""Calls that run and calls that ended: told apart by an id of ours, and kept within bounds."""

import tracemalloc
from typing import Any

import pytest
from mcp_types import (
    Annotations,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    Icon,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.calls.log import CallLog, KeptCalls, LoggedCall, ProgressReport
from a2c_smcp.errors import ToolExecutionTimeoutError
from a2c_smcp.results import cancelled_result, error_result
from a2c_smcp.utils.json_sizes import cut_value, weight
from a2c_smcp.wire import codec


def start(log: CallLog, req_id: str = "r", agent: str | None = "max", **arguments: Any) -> LoggedCall:
    asker = None if agent is None else Asker(agent)
    call = LoggedCall(req_id, asker, "echo", arguments, 30, started_at=1000.0, started=5.0, cancel=lambda: None)
    log.start(call)
    call.server, call.tool = "files", "echo"
    return call


def said(text: str, **more: Any) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], **more)


def test_two_calls_with_one_req_id_are_two() -> None:
    log = CallLog()
    one, two = start(log, agent="max"), start(log, agent="mia")
    assert one.id != two.id
    assert [(running.call.agent, running.call.req_id) for running in log.running] == [("max", "r"), ("mia", "r")]
    log.end(one, said("done"), 7.5)
    assert [running.call.agent for running in log.running] == ["mia"]
    (ended,) = log.ended
    assert (ended.call.agent, ended.duration, ended.ok, ended.code, ended.cancelled) == ("max", 2.5, True, None, False)
    assert ended.result["content"] == [{"type": "text", "text": "done"}]
    assert log.find(one.id) is None
    assert log.find(two.id) is two


def test_how_far_a_call_is() -> None:
    log = CallLog()
    call = start(log)
    assert log.running[0].progress is None
    call.progress = ProgressReport(3, 10, "reading")
    assert log.running[0].progress == ProgressReport(3, 10, "reading")


def test_how_a_call_failed() -> None:
    log = CallLog()
    log.end(start(log), error_result(ToolExecutionTimeoutError(3)), 5.0)
    taken_back = start(log)
    taken_back.stopped = "cancelled"
    log.end(taken_back, cancelled_result(), 5.0)
    late, cancelled = log.ended
    assert (late.ok, late.code, late.cancelled) == (False, 4004, False)
    assert (cancelled.ok, cancelled.code, cancelled.cancelled) == (False, None, True)


@pytest.mark.parametrize(
    ("by", "here", "stopped", "verdict"),
    [
        (None, False, None, None),
        ("terminal", False, None, "allowed"),
        ("terminal", False, "timed_out", "allowed"),
        ("terminal", False, "refused", "refused"),
        ("terminal", False, "cancelled", "allowed"),  # by its agent, later
        ("browser", True, "cancelled", "cancelled"),
        ("browser", True, None, None),  # too late: the result was there
        (None, False, "unanswered", None),
        (None, False, "nobody", None),
    ],
)
def test_what_the_one_did_who_decided(by: str | None, here: bool, stopped: Any, verdict: str | None) -> None:
    log = CallLog()
    call = start(log)
    call.decided_by, call.is_cancelled, call.stopped = by, here, stopped
    log.end(call, said("done"), 5.0)
    (ended,) = log.ended
    assert (ended.outcome, ended.verdict) == (stopped or "succeeded", verdict)


def test_only_the_last_ones_are_kept() -> None:
    log = CallLog(KeptCalls(calls=3))
    for number in range(5):
        log.end(start(log, str(number)), said(""), 5.0)
    assert [ended.call.req_id for ended in log.ended] == ["2", "3", "4"]


def test_a_watcher_begins_with_a_hundred_and_the_others_are_built_when_they_are_reached() -> None:
    log = CallLog()
    for number in range(1500):
        log.end(start(log, str(number)), said(""), 5.0)
    assert [ended.call.req_id for ended in log.ended] == [str(number) for number in range(1400, 1500)]
    assert [ended.call.req_id for ended in log.past()] == [str(number) for number in range(1499, 499, -1)]
    hundredth = log.ended[0].call.id
    past = log.past(hundredth)
    assert next(past).call.req_id == "1399"
    for number in range(2000):  # all that it would still come to is forgotten meanwhile
        log.end(start(log, str(number)), said(""), 5.0)
    assert [ended.call.req_id for ended in past] == [str(number) for number in range(1398, 499, -1)]
    assert list(log.past(hundredth)) == []
    assert log.find_ended(hundredth) is None


def test_a_thousand_small_calls_take_a_few_megabytes() -> None:
    log = CallLog()
    tracemalloc.start()
    try:
        for number in range(5_000):
            log.end(start(log, str(number), text="x" * 100), said("y" * 100), 5.0)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 4 * 2**20


def test_all_together_have_a_bound_in_bytes() -> None:
    log = CallLog(KeptCalls(all_bytes=10_000, one_bytes=4_000))
    for number in range(20):
        log.end(start(log, str(number)), said("x" * 3_000), 5.0)
    assert 2 <= len(log.ended) <= 3
    assert log.ended[-1].call.req_id == "19"


def test_who_made_a_call_and_of_what_counts_too() -> None:
    log = CallLog(KeptCalls(all_bytes=10_000))
    for number in range(20):
        log.end(start(log, f"{number}{'r' * 1_000}", "a" * 2_000), said(""), 5.0)
    assert len(log.ended) == 2


def test_large_arguments_and_results_are_cut_with_marks() -> None:
    log = CallLog(KeptCalls(one_bytes=1_000))
    arguments: dict[str, Any] = {"text": "a" * 5_000, "list": list(range(5_000)), "x" * 5_000: 1}
    result = CallToolResult(
        content=[
            TextContent(text="b" * 400),
            ImageContent(data="c" * 5_000, mime_type="image/png"),
            TextContent(text="d" * 5_000),
            TextContent(text="e"),
        ],
        structured_content={"rows": [{"n": number} for number in range(1_000)]},
    )
    call = start(log, **arguments)
    assert log.running[0].call.arguments == arguments  # whole, as long as it runs
    log.end(call, result, 5.0)
    (ended,) = log.ended
    assert weight(ended.call.arguments, 10**9) < 4_000
    assert ended.call.arguments["text"].startswith("aaaa")
    assert ended.call.arguments["text"].endswith("… (5000 characters)")
    first, image, third, _ = ended.result["content"]
    assert first == {"type": "text", "text": "b" * 400}
    assert image == {"type": "text", "text": "[image/png, 5000 characters of base64: too large to be kept]"}
    assert third["text"].endswith("… (5000 characters)")
    assert weight(ended.result, 10**9) < 4_000


@pytest.mark.parametrize(
    "item",
    [
        ResourceLink(name="a", uri="file:///" + "x" * 5_000),
        ResourceLink(name="a", uri="file:///a", description="x" * 5_000),
        ResourceLink(name="a", uri="file:///a", size=1, icons=[Icon(src="x" * 5_000, sizes=["1x1"])]),
        TextContent(text="a", annotations=Annotations(audience=["user"], priority=1), _meta={"x": "x" * 5_000}),
        EmbeddedResource(resource=TextResourceContents(uri="file:///" + "x" * 5_000, text="a")),
        EmbeddedResource(resource=BlobResourceContents(uri="file:///a", blob="", _meta={"x": "x" * 5_000})),
    ],
    ids=["uri", "description", "icon", "meta", "uri within", "meta within"],
)
def test_whatever_makes_a_result_large_is_cut(item: Any) -> None:
    log = CallLog(KeptCalls(one_bytes=1_000))
    log.end(start(log), CallToolResult(content=[item]), 5.0)
    assert weight(log.ended[0].result, 10**9) < 4_000


def test_an_image_that_fits_is_kept_whole() -> None:
    log = CallLog(KeptCalls(one_bytes=10_000))
    picture = ImageContent(data="c" * 5_000, mime_type="image/png")
    log.end(start(log), CallToolResult(content=[picture, TextContent(text="d" * 50_000)]), 5.0)
    assert log.ended[0].result["content"][0]["data"] == "c" * 5_000


def test_what_nests_deeply_is_kept_within_bounds() -> None:
    deep: Any = "x" * 3_000
    for _ in range(500):
        deep = [deep]
    log = CallLog(KeptCalls(one_bytes=1_000))
    log.end(start(log, deep=deep), said(""), 5.0)
    assert weight(log.ended[0].call.arguments, 10**9) < 4_000


@pytest.mark.parametrize("structured", [{"rows": [{"n": 1}, {"n": 10**30}]}, [1, [2]], {"flat": "yes"}, "text", {}])
def test_what_is_kept_as_json_is_read_as_it_was(structured: Any) -> None:
    log = CallLog()
    arguments: dict[str, Any] = {"rows": [{"a": "\ud800"}, None], "deep": {"er": [1.5]}}
    call = start(log, **arguments)
    before = call.call
    log.end(call, CallToolResult(content=[], structured_content=structured), 5.0)
    for _ in range(2):
        (ended,) = log.ended
        assert ended.call == before
        assert ended.call.digest == before.digest
        assert ended.result["structuredContent"] == (
            structured if isinstance(structured, dict) else {"result": structured}
        )


def test_arguments_that_json_cannot_say_are_kept_in_part() -> None:
    class Own:
        pass

    own, log = Own(), CallLog()
    log.end(start(log, own=[own], tuples={(1, 2): 3}), said(""), 5.0)
    assert log.ended[0].call.arguments == {"own": [own], "tuples": {"(1, 2)": 3}}
    assert log.ended[0] == log.find_ended(log.ended[0].call.id)
    assert log._ended.weight < 10_000
    assert log.find_ended("another") is None


def test_a_weight_is_not_counted_beyond_what_matters() -> None:
    many = [[0] * 1_000] * 100_000  # a hundred million numbers
    assert 1_000 < weight(many, 1_000) < 10_000_000
    assert weight({"text": "abc"}, 1_000) < 200


@pytest.mark.parametrize("small", ["[]", "{}", '"ab"', "1.5", '{"a":1}'])
def test_many_small_values_weigh_about_what_they_take(small: str) -> None:
    tracemalloc.start()
    try:
        value = {"many": codec.loads(f"[{','.join([small] * 20_000)}]")}
        taken = tracemalloc.get_traced_memory()[0]
        assert weight(value, 10**9) > taken / 2
        kept = cut_value(value, 100_000)
        assert len(kept["many"]) < 5_000
        del value
        assert tracemalloc.get_traced_memory()[0] < 400_000
    finally:
        tracemalloc.stop()


def test_looking_at_calls_does_not_make_the_log_larger() -> None:
    many: list[list[int]] = [[] for _ in range(20_000)]
    log = CallLog()
    log.end(start(log, many=many), CallToolResult(content=[], structured_content={"many": many}), 5.0)
    tracemalloc.start()
    try:
        assert log.ended[0].call.arguments == log.ended[0].result["structuredContent"] == {"many": many}
        assert tracemalloc.get_traced_memory()[0] < 100_000
    finally:
        tracemalloc.stop()


def test_the_history_has_the_last_ten_calls_that_reached_a_server_oldest_first() -> None:
    log = CallLog()
    for number in range(13):
        call = start(log, str(number), n=number, rows=[{"n": number}])
        if number != 5:
            call.reached(1000.5, "it broke" if number == 12 else None)
        log.end(call, said(""), 5.0)
    history = log.history
    assert [record["req_id"] for record in history] == [*map(str, (2, 3, 4)), *map(str, range(6, 13))]
    assert history[-1] == {
        "timestamp": "1970-01-01T00:16:40.500000+00:00",
        "req_id": "12",
        "server": "files",
        "tool": "echo",
        "parameters": {"n": 12, "rows": [{"n": 12}]},
        "timeout": 30,
        "success": False,
        "error": "it broke",
    }
    assert history[-2]["success"]
    assert log.used_servers == ["files"] * 10

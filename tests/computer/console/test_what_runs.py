"""After all that a page was told, it takes for running what runs at the computer, whatever was lost or cut."""

import json
from typing import Any

import anyio
from hypothesis import example, given, settings
from hypothesis import strategies as st

from a2c_smcp.computer.calls.log import EndedCall, ProgressReport, WatchedCall
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.console.changes import PageChanges
from a2c_smcp.computer.console.feed import messages
from a2c_smcp.computer.console.limits import CONSOLE_LIMITS
from a2c_smcp.computer.watching.events import BUFFERED_EVENTS, CallEnded, CallProgressed, CallStarted
from tests.computer.fakes.computers import server


class ModelPage:
    """What state.js does with the messages, as far as calls go."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.ended: list[str] = []

    def take(self, message: dict[str, Any]) -> None:
        if message["kind"] == "snapshot":
            self.running = {call["id"] for call in message["running"]}
            self.ended = [call["id"] for call in message["ended"]]
            return
        ended = [call["id"] for call in message.get("ended", ())]
        self.running |= {call["id"] for call in message.get("started", ())}
        self.running -= {*message.get("over", ()), *ended}
        self.ended = ([] if message.get("skipped") else self.ended) + ended


class ModelComputer:
    """Calls that run, and those that ended; what happens goes into the message that is being gathered."""

    def __init__(self) -> None:
        self.running: list[str] = []
        self.ended: list[str] = []
        self.page = ModelPage()
        self._count = 0
        self._changes = PageChanges(0)
        self._lost = False

    def start(self, count: int) -> None:
        for _ in range(count):
            self._count += 1
            self.running.append(str(self._count))
            self._tell(CallStarted(_call(self.running[-1])))

    def end(self, count: int, newest: bool) -> None:
        for _ in range(min(count, len(self.running))):
            self.ended.append(self.running.pop(-1 if newest else 0))
            result: Any = {"meta": None, "content": [], "structuredContent": None, "isError": False}
            self._tell(CallEnded(EndedCall(_call(self.ended[-1]), 0.1, result, None)))

    def progress(self) -> None:
        for call_id in self.running[:3]:
            self._tell(CallProgressed(call_id, ProgressReport(1.0)))

    def lose(self) -> None:
        """From here on to the next message all is lost, as for a reader that falls behind."""
        self._lost = True

    def cut(self) -> None:
        """The message is over: it goes to the page, or a snapshot does."""
        if self._lost:
            calls = [{"id": each} for each in self.running]
            ended = [{"id": each} for each in self.ended[-CONSOLE_LIMITS.listed_calls :]]
            self.page.take({"kind": "snapshot", "running": calls, "ended": ended})
        else:
            self.page.take(json.loads(json.dumps(self._changes.message(0, 0.0))))
        self._changes, self._lost = PageChanges(0), False

    def _tell(self, event: Any) -> None:
        if not self._lost:
            self._changes.add(event)


def _call(call_id: str) -> WatchedCall:
    return WatchedCall(call_id, "r", "ada", "s", "t", "t", {}, None, 1.0)


_SOME = st.sampled_from([1, 7, CONSOLE_LIMITS.listed_calls, 3 * CONSOLE_LIMITS.listed_calls])
_STARTS, _ENDS = st.tuples(st.just("start"), _SOME), st.tuples(st.just("end"), _SOME, st.booleans())
_STEPS = st.one_of(_STARTS, _ENDS, st.just(("progress",)), st.just(("cut",)), st.sampled_from([("lose",), ("cut",)]))


@settings(deadline=None, derandomize=True, max_examples=150)
@given(st.lists(_STEPS, max_size=30))
@example([("start", 3 * CONSOLE_LIMITS.listed_calls), ("cut",), ("end", 3 * CONSOLE_LIMITS.listed_calls, False)])
def test_a_page_takes_for_running_what_runs_and_its_history_has_no_gaps(steps: list[tuple[Any, ...]]) -> None:
    computer = ModelComputer()
    for name, *given_ones in steps:
        getattr(computer, name)(*given_ones)
    computer.cut()
    assert computer.page.running == set(computer.running)
    shown = computer.page.ended
    assert shown == computer.ended[len(computer.ended) - len(shown) :]
    assert len(shown) >= min(CONSOLE_LIMITS.listed_calls, len(computer.ended))


def test_a_call_whose_start_was_never_told_needs_no_end() -> None:
    computer = ModelComputer()
    computer.start(5 * CONSOLE_LIMITS.listed_calls)
    computer.end(5 * CONSOLE_LIMITS.listed_calls, newest=False)
    message = computer._changes.message(0, 0.0)
    assert "over" not in message and message["skipped"] == 4 * CONSOLE_LIMITS.listed_calls


async def test_thousands_of_calls_of_a_real_server_leave_nothing_behind_in_any_page() -> None:
    """Some pages are there from the start, some come in the middle, one reads so late that it loses events."""
    async with Computer("pc", mcp_servers=[server("one", prefixed=False)], max_calls=256) as computer:
        pages = [ModelPage() for _ in range(4)]
        over = anyio.Event()

        async def follow(page: ModelPage, after: int, slow: bool) -> None:
            while len(computer.ended_calls) < after:  # noqa: ASYNC110 - a list
                await anyio.sleep(0.001)
            told = messages(computer, "run")
            async for message in told:
                if message["kind"] != "ping":
                    page.take(message)
                if slow and not over.is_set():
                    await over.wait()
                if over.is_set() and message["number"] == computer._events.number:
                    break
            await told.aclose()

        async def call() -> None:
            await computer.execute_tool("r", "echo", {"text": "x"}, 60)

        with anyio.fail_after(120):
            async with anyio.create_task_group() as following:
                for number, page in enumerate(pages):
                    following.start_soon(follow, page, 20 * number, number == 3)
                for _ in range(12):
                    async with anyio.create_task_group() as tasks:
                        for _ in range(3 * BUFFERED_EVENTS // 4):
                            tasks.start_soon(call)
                over.set()
                computer._events.publish(CallProgressed("none", ProgressReport(0.0)))
        assert [page.running for page in pages] == [set()] * 4
        last = [ended.call.id for ended in computer.ended_calls]
        assert [page.ended[-len(last) :] for page in pages] == [last] * 4

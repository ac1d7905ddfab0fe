"""The questions of MCP servers, in both eras: on their way to somebody who answers, and back to the server alone."""

import asyncio
import json
import logging
import math
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from a2c_smcp.computer.calls.progress import CallProgress
from a2c_smcp.computer.mcp_clients.elicitation.asking import (
    ALL_MODES,
    NO_MODES,
    GivenAnswer,
    QuestionMode,
    ServerQuestion,
)
from a2c_smcp.computer.mcp_clients.mcp_connection import MCPConnection
from a2c_smcp.computer.mcp_clients.model import QuestionPlace
from a2c_smcp.errors import ToolExecutionError, ToolExecutionTimeoutError
from a2c_smcp.smcp import WAITING_FOR_PERSON
from a2c_smcp.utils.forms import FieldKind
from tests.computer.fakes.computers import asking
from tests.computer.fakes.computers import text as text_in
from tests.computer.fakes.processes import eventually
from tests.computer.test_mcp_connection import Watcher, connected, http, opened, text

SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "maxLength": 20},
        "number": {"type": "number"},
        "integer": {"type": "integer"},
        "choice": {"type": "string", "enum": ["a", "b"]},
        "several": {"type": "array", "items": {"type": "string", "enum": ["x", "y", "z"]}},
        "yes": {"type": "boolean"},
    },
    "required": ["text"],
}
CONTENT: dict[str, Any] = {
    "text": "secret-9",
    "number": 1.5,
    "integer": 2,
    "choice": "b",
    "several": ["x", "z"],
    "yes": True,
}
URL = "https://example.com/sign-in?x=1"

both_eras = pytest.mark.parametrize("era", ["old", "new"])


class Person:
    """Somebody who answers what `says` says, once it says it."""

    def __init__(self, says: Callable[[ServerQuestion], Awaitable[GivenAnswer]] | None = None) -> None:
        self.is_here = True
        self.says = says
        self.questions: list[ServerQuestion] = []
        self.withdrawn: list[ServerQuestion] = []
        self._answers: dict[int, asyncio.Future[GivenAnswer]] = {}

    def modes(self, where: QuestionPlace, call: object | None) -> frozenset[QuestionMode]:
        return ALL_MODES if self.is_here else NO_MODES

    async def ask(self, question: ServerQuestion) -> GivenAnswer:
        self.questions.append(question)
        question.tell_wait()
        try:
            if self.says is not None:
                return await self.says(question)
            future: asyncio.Future[GivenAnswer] = asyncio.get_running_loop().create_future()
            self._answers[id(question)] = future
            return await future
        except asyncio.CancelledError:
            self.withdrawn.append(question)
            raise

    def done(self, question: ServerQuestion) -> None:
        self._answers[id(question)].set_result(GivenAnswer("accept"))

    async def asked(self, times: int = 1) -> ServerQuestion:
        await eventually(lambda: len(self.questions) >= times)
        return self.questions[times - 1]


def saying(*answers: GivenAnswer) -> Person:
    left = list(answers)

    async def says(_: ServerQuestion) -> GivenAnswer:
        return left.pop(0) if len(left) > 1 else left[0]

    return Person(says)


async def told(connection: MCPConnection, tool: str, **params: Any) -> Any:
    return json.loads(await text(connection, tool, 30, **params))


class Call(str):
    """A call that the Computer makes, by its name."""

    tool_ends = math.inf
    may_start = None


async def text_of_call(connection: MCPConnection, tool: str, name: str = "c", **params: Any) -> str:
    result = await connection.call_ongoing(tool, params, 30, ongoing=Call(name))
    assert result is not None
    return text_in(result)


@asynccontextmanager
async def running(connection: MCPConnection, tool: str, name: str = "c", **params: Any) -> AsyncIterator[Any]:
    """A call that runs meanwhile; what it answers is awaited in the end."""

    task = asyncio.create_task(text_of_call(connection, tool, name, **params))
    try:
        yield task
        with anyio.fail_after(30):
            await asyncio.wait({task})
    finally:
        task.cancel()
        await asyncio.wait({task})


# --- forms


@both_eras
async def test_a_form_is_answered_with_each_kind_of_field(era: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    person = saying(GivenAnswer("accept", CONTENT))
    async with connected(asking(era), asker=person) as connection:
        answer = await told(connection, "ask", message="Well?", schema=SCHEMA)
    assert answer == {"action": "accept", "content": CONTENT}
    [question] = person.questions
    assert (question.server, question.message, question.schema) == ("asker", "Well?", SCHEMA)
    assert question.form is not None
    kinds = [field.kind for field in question.form.fields]
    assert set(kinds) == set(FieldKind)
    assert len(kinds) == 6
    assert "secret-9" not in caplog.text
    assert "secret-9" not in repr(GivenAnswer("accept", CONTENT))


@both_eras
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_no_and_no_answer_are_told_apart(era: str, action: Any) -> None:
    async with connected(asking(era), asker=saying(GivenAnswer(action))) as connection:
        assert await told(connection, "ask", schema=SCHEMA) == {"action": action}


@both_eras
async def test_nobody_there_is_not_declared_and_a_question_is_cancelled(era: str) -> None:
    person = saying(GivenAnswer("accept", {}))
    person.is_here = False
    async with connected(asking(era), asker=person) as connection:
        assert (await told(connection, "declared")).get("elicitation") is None
        assert await told(connection, "ask") == {"action": "cancel"}
        person.is_here = True
        # Since 2026-07-28 every call declares it; before, the handshake did, for the whole session.
        assert (await told(connection, "declared")).get("elicitation") == (
            {"form": {}, "url": {}} if era == "new" else None
        )
        assert await told(connection, "ask") == {"action": "accept", "content": {}}
    async with connected(asking(era), asker=person) as connection:
        assert (await told(connection, "declared")).get("elicitation") == {"form": {}, "url": {}}
        person.is_here = False
        assert await told(connection, "ask") == {"action": "cancel"}
    async with connected(asking(era)) as connection:
        assert (await told(connection, "declared")).get("elicitation") is None
        assert await told(connection, "ask") == {"action": "cancel"}


@both_eras
async def test_a_form_that_nobody_can_be_shown_is_refused(era: str) -> None:
    person = saying(GivenAnswer("accept", {}))
    endless = {"type": "object", "properties": {str(number): {"type": "string"} for number in range(101)}}
    async with connected(asking(era), asker=person) as connection:
        if era == "old":
            answer = await told(connection, "ask", schema=endless)
            assert answer["error"]["code"] == -32602
        else:
            with pytest.raises(ToolExecutionError, match="cannot be shown: it has 101 fields"):
                await connection.call_tool("ask", {"schema": endless})
        assert await text(connection, "pid") == str(connection.pid)
    assert person.questions == []


# --- rounds, since 2026-07-28


async def test_a_tool_may_ask_ten_times_and_not_more() -> None:
    person = saying(GivenAnswer("accept", {}))
    async with connected(asking("new"), asker=person) as connection:
        assert await text(connection, "rounds", 30, count=10) == "asked 10 times"
        assert [question.message for question in person.questions] == [f"Round {n}?" for n in range(1, 11)]
        with pytest.raises(ToolExecutionError, match="asked 10 times, and wants to ask again"):
            await connection.call_tool("rounds", {"count": 11}, 30)


async def test_before_that_a_call_may_ask_ten_times_as_well() -> None:
    person = saying(GivenAnswer("accept", {}))
    async with connected(asking("old"), asker=person) as connection:
        assert await told(connection, "rounds", count=12) == ["accept"] * 10 + ["cancel"] * 2
        assert len(person.questions) == 10
        assert await told(connection, "rounds", count=2) == ["accept"] * 2


async def test_questions_of_one_round_are_asked_together_and_each_has_its_answer() -> None:
    both = asyncio.Event()

    async def says(question: ServerQuestion) -> GivenAnswer:
        if len(person.questions) == 2:
            both.set()
        await asyncio.wait_for(both.wait(), 30)
        return GivenAnswer("accept", {}) if question.message == "One?" else GivenAnswer("decline")

    person = Person(says)
    async with connected(asking("new"), asker=person) as connection:
        questions = {"1": {"message": "One?"}, "2": {"message": "Two?"}}
        answers = await told(connection, "several", questions=questions)
        assert answers == {"1": {"action": "accept", "content": {}}, "2": {"action": "decline"}}
        many = {str(number): {"message": "?"} for number in range(17)}
        with pytest.raises(ToolExecutionError, match="asks 17 questions at once"):
            await connection.call_tool("several", {"questions": many})


async def test_what_is_no_question_to_a_person_fails_the_call() -> None:
    async with connected(asking("new"), asker=saying(GivenAnswer("accept", {}))) as connection:
        with pytest.raises(ToolExecutionError, match="asks for sampling/createMessage, and only forms"):
            await connection.call_tool("sampled")


# --- URLs


@both_eras
@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
async def test_a_url_is_shown_and_asked_about(era: str, action: Any) -> None:
    person = saying(GivenAnswer(action))
    async with connected(asking(era), asker=person) as connection:
        assert await told(connection, "visit", url=URL) == {"action": action}
    [question] = person.questions
    assert (question.url, question.message, question.form) == (URL, "Please sign in.", None)


@both_eras
@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "javascript:alert(1)", "https://", "https://a b", "http://a\x1b[2J", "http://\u202ea"]
)
async def test_a_person_is_sent_to_the_web_and_nowhere_else(era: str, url: str) -> None:
    person = saying(GivenAnswer("accept"))
    async with connected(asking(era), asker=person) as connection:
        if era == "old":
            assert (await told(connection, "visit", url=url))["error"]["code"] == -32602
        else:
            with pytest.raises(ToolExecutionError, match="the URL of a question"):
                await connection.call_tool("visit", {"url": url})
    assert person.questions == []


async def test_a_server_may_say_itself_that_the_visit_is_done() -> None:
    person = Person()
    async with connected(asking("old"), asker=person) as connection:
        async with running(connection, "visit", url=URL, id="e-7") as call:
            await person.asked()
            assert await text(connection, "complete", id="another") == "said"
            assert await text(connection, "complete", id="e-7") == "said"
        assert json.loads(call.result()) == {"action": "accept"}


async def test_a_call_that_is_refused_until_a_url_was_visited_is_made_again() -> None:
    person = saying(GivenAnswer("accept"))
    async with connected(asking("old"), asker=person) as connection:
        assert await text_of_call(connection, "visit_first", "mine", url=URL) == "thank you"
        [question] = person.questions
        assert (question.url, question.call) == (URL, "mine")


@pytest.mark.parametrize(
    ("answer", "why"), [("decline", "sign in first: the person declined"), ("cancel", "sign in first: nobody answered")]
)
async def test_a_visit_that_is_not_made_fails_the_call(answer: Any, why: str) -> None:
    person = saying(GivenAnswer(answer))
    async with connected(asking("old"), asker=person) as connection:
        with pytest.raises(ToolExecutionError, match=why):
            await connection.call_tool("visit_first", {"url": URL}, 30)
        person.is_here = False
        with pytest.raises(ToolExecutionError, match=r"sign in first$"):
            await connection.call_tool("visit_first", {"url": URL + "2"}, 30)
        with pytest.raises(ToolExecutionError, match=r"sign in first$"):
            await connection.call_tool("visit_first", {"url": "file:///x"}, 30)


# --- whose question it is, and when it ends


@both_eras
async def test_a_question_names_its_call_only_when_that_is_certain(era: str) -> None:
    person = Person()
    heard: list[str | None] = []
    progress = CallProgress(lambda _progress, _total, message: heard.append(message), str)
    async with connected(asking(era), asker=person) as connection:
        async with running(connection, "hold", "first"):
            async with running(connection, "ask", "second") as call:
                question = await person.asked()
                assert question.call == ("second" if era == "new" else None)
                assert set(question.calls) == ({"second"} if era == "new" else {"first", "second"})
                person._answers[id(question)].set_result(GivenAnswer("accept", {}))
            assert json.loads(call.result())["action"] == "accept"
            await text(connection, "let_go")

        async def alone() -> None:
            await connection.call_ongoing("ask", {}, 30, progress, ongoing=Call("alone"))

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(alone())
            question = await person.asked(2)
            assert (question.call, question.calls) == ("alone", ("alone",))
            assert heard == [WAITING_FOR_PERSON]
            person._answers[id(question)].set_result(GivenAnswer("accept", {}))


@both_eras
@pytest.mark.parametrize("how", ["cancelled", "timeout"])
async def test_the_end_of_a_call_withdraws_its_question(era: str, how: str) -> None:
    person = Person()
    async with connected(asking(era), asker=person) as connection:
        if how == "timeout":
            seconds = 1
            while not person.questions:  # the time may be up before the server has asked
                with pytest.raises(ToolExecutionTimeoutError):
                    await connection.call_tool("ask", {}, seconds)
                seconds *= 2
        else:
            task = asyncio.create_task(connection.call_tool("ask", {}, 30))
            await person.asked()
            task.cancel()
            await asyncio.wait({task})
        await eventually(lambda: bool(person.withdrawn))
        assert await text(connection, "pid") == str(connection.pid)


async def test_a_question_that_may_be_of_two_calls_ends_with_the_second() -> None:
    person, watcher = Person(), Watcher()
    async with connected(asking("old"), watcher, asker=person) as connection:
        async with running(connection, "hold"):
            await watcher.said("holding")
            async with running(connection, "ask") as call:
                await person.asked()
                call.cancel()
            assert person.withdrawn == []
            await text(connection, "let_go")
        await eventually(lambda: bool(person.withdrawn))


@both_eras
async def test_a_server_that_is_killed_while_it_asks_withdraws_its_question(era: str) -> None:
    person = Person()
    async with connected(asking(era), asker=person, auto_reconnect=False) as connection:
        async with running(connection, "ask") as call:
            await person.asked()
            assert connection.pid is not None
            os.kill(connection.pid, signal.SIGKILL)
        assert isinstance(call.exception(), ToolExecutionError)
        await eventually(lambda: bool(person.withdrawn))


async def test_a_server_may_take_its_question_back() -> None:
    person = Person()
    async with connected(asking("old"), asker=person) as connection:
        async with running(connection, "withdraw") as call:
            await person.asked()
            await text(connection, "let_go")
        assert call.result() == "let go"
        assert len(person.withdrawn) == 1


async def test_a_server_may_ask_before_any_call_and_not_more_than_somebody_can_read() -> None:
    person, watcher = Person(), Watcher()
    async with connected(asking("old", start="1"), watcher, asker=person) as connection:
        question = await person.asked()
        assert (question.message, question.call, question.calls) == ("Which workspace?", None, ())
        async with asyncio.TaskGroup() as tasks:
            calls = [tasks.create_task(told(connection, "ask")) for _ in range(20)]
            await person.asked(16)
            answered, _ = await asyncio.wait(calls, timeout=30, return_when=asyncio.FIRST_COMPLETED)
            assert all(call.result() == {"action": "cancel"} for call in answered)
            for asked in person.questions:
                person._answers[id(asked)].set_result(GivenAnswer("accept", {}))
        assert [call.result()["action"] for call in calls].count("cancel") == 5
        await watcher.said("told accept")


async def test_a_flood_of_questions_reaches_nobody_and_every_one_is_answered() -> None:
    person = saying(GivenAnswer("accept", {}))
    async with connected(asking("old"), asker=person) as connection, connected(asking("old")) as other:
        async with running(connection, "flood", count=5_000) as call:
            await person.asked()
            assert await text(other, "pid") == str(other.pid)
        assert json.loads(call.result()) == {"accept": 10, "cancel": 4_990}
        assert await text(connection, "pid") == str(connection.pid)


# --- asking as before, in the new era


async def test_a_server_that_needs_the_old_back_channel_is_started_again_with_the_old_handshake() -> None:
    person, watcher, told_of = saying(GivenAnswer("accept", {})), Watcher(), []
    options: dict[str, Any] = {"asker": person, "on_old_handshake": lambda: told_of.append(1)}
    async with connected(asking("both"), watcher, **options) as connection:
        assert connection.protocol_version == "2026-07-28"
        async with running(connection, "hold") as held:
            await watcher.said("holding")
            with pytest.raises(ToolExecutionError, match=r"no back-channel.*started again so that it can ask"):
                await connection.call_tool("back_channel", {}, 30)
            with pytest.raises(ToolExecutionError, match="started again"):
                await connection.call_tool("back_channel", {}, 30)
            assert watcher.states == ["starting", "running"]  # not while something runs there
            await text(connection, "let_go")
        assert held.result() == "let go"
        change = await watcher.reached("running", 2)
        assert change.restarts == 0
        assert watcher.states == ["starting", "running", "backing_off", "starting", "running"]
        assert "older era" in str(watcher.changes[2].reason)
        assert connection.protocol_version == "2025-11-25"
        assert (await told(connection, "back_channel"))["action"] == "accept"
        assert told_of == [1]


async def test_without_restarts_by_itself_it_waits_for_one() -> None:
    async with connected(asking("both"), asker=saying(GivenAnswer("accept", {})), auto_reconnect=False) as connection:
        with pytest.raises(ToolExecutionError, match="can ask after a restart"):
            await connection.call_tool("back_channel", {}, 30)
        assert connection.protocol_version == "2026-07-28"
        await connection.disconnect()
        await connection.connect()
        assert (await told(connection, "back_channel"))["action"] == "accept"


async def test_a_server_of_the_new_era_alone_stays_in_it() -> None:
    watcher = Watcher()
    async with connected(asking("new"), watcher, asker=saying(GivenAnswer("accept", {}))) as connection:
        with pytest.raises(ToolExecutionError, match="started again"):
            await connection.call_tool("back_channel", {}, 30)
        await watcher.reached("running", 2)
        assert connection.protocol_version == "2026-07-28"
        with pytest.raises(ToolExecutionError, match=r"for server-initiated requests\.$"):
            await connection.call_tool("back_channel", {}, 30)
        assert (await told(connection, "ask"))["action"] == "accept"


async def test_a_server_that_was_told_that_nobody_answers_is_started_again_when_somebody_can() -> None:
    person, watcher = saying(GivenAnswer("accept", {})), Watcher()
    person.is_here = False
    async with connected(asking("old"), watcher, asker=person) as connection:
        with pytest.raises(ToolExecutionError, match=r"did not declare the elicitation capability$"):
            await connection.call_tool("needs", {}, 30)
        person.is_here = True
        with pytest.raises(ToolExecutionError, match="started again so that it can ask"):
            await connection.call_tool("needs", {}, 30)
        await watcher.reached("running", 2)
        assert (await told(connection, "needs"))["action"] == "accept"
        assert "somebody can answer" in str(watcher.changes[2].reason)


# --- log messages


async def test_log_messages_come_beside_stderr() -> None:
    watcher = Watcher()
    async with connected(asking("old"), watcher) as connection:
        await text(connection, "log", level="warning", data="disk is full\nreally", logger="disk")
        await text(connection, "log", level="info", data={"free": [1, None]})
        await watcher.said("[warning] disk: disk is full")
        await watcher.said("really")
        await watcher.said('[info] {"free":[1,null]}')
        await text(connection, "log", level="debug", data="x" * 10_000 + "\n" * 100)
        await watcher.said("[debug] " + "x" * 4088)


# --- mcp's own servers, over HTTP


@pytest.mark.parametrize("protocol", ["legacy", "2026-07-28"])
async def test_a_server_on_mcp_asks_over_http(protocol: str, asking_http_server: str) -> None:
    content: dict[str, Any] = {"name": "Ann", "age": 41, "window": True}
    person = saying(GivenAnswer("accept", content), GivenAnswer("decline"), GivenAnswer("cancel"))
    async with opened(http(asking_http_server, "streamable", protocol), asker=person) as connection:
        for answer in ("name='Ann' age=41 window=True", "decline", "cancel"):
            assert await text_of_call(connection, "book", "mine") == answer
        assert [(each.message, each.call) for each in person.questions] == [("Who flies?", "mine")] * 3


@pytest.mark.parametrize("protocol", ["legacy", "2026-07-28"])
async def test_the_end_of_a_call_over_http_withdraws_its_question(protocol: str, asking_http_server: str) -> None:
    person = Person()
    async with opened(http(asking_http_server, "streamable", protocol), asker=person) as connection:
        task = asyncio.create_task(connection.call_tool("book", {}, 30))
        await person.asked()
        task.cancel()
        await asyncio.wait({task})
        await eventually(lambda: bool(person.withdrawn))


@pytest.mark.parametrize("protocol", ["legacy", "2026-07-28"])
async def test_a_server_on_mcp_is_told_over_http_that_nobody_is_there(protocol: str, asking_http_server: str) -> None:
    person = saying(GivenAnswer("accept", {"name": "Ann"}))
    person.is_here = False
    watcher = Watcher()
    async with opened(http(asking_http_server, "streamable", protocol), watcher, asker=person) as connection:
        with pytest.raises(ToolExecutionError, match="elicitation"):
            await connection.call_tool("book", {}, 30)
        person.is_here = True
        if protocol == "legacy":
            with pytest.raises(ToolExecutionError, match="started again so that it can ask"):
                await connection.call_tool("book", {}, 30)
            await watcher.reached("running", 2)
        assert "Ann" in await text(connection, "book", 30)


async def test_a_server_on_mcp_that_asks_as_before_falls_back_to_the_old_era(asking_http_server: str) -> None:
    person, watcher = saying(GivenAnswer("accept", {"name": "Ann"})), Watcher()
    async with opened(http(asking_http_server, "streamable"), watcher, asker=person) as connection:
        with pytest.raises(ToolExecutionError, match="started again so that it can ask"):
            await connection.call_tool("book_as_before", {}, 30)
        await watcher.reached("running", 2)
        assert "Ann" in await text(connection, "book_as_before", 30)

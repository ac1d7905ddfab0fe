"""Questions that tools ask while they run, for the callers of their calls. A failing callback harms no call."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import anyio
import anyio.to_thread

from a2c_smcp.agent.resource_requests import QuestionAction
from a2c_smcp.errors import BadRequestError, NotFoundError, SMCPError
from a2c_smcp.smcp import MAX_QUESTIONS, ToolQuestion

__all__ = ["QUESTION_MODES", "QuestionAnswer", "QuestionCallback", "QuestionListeners"]

logger = logging.getLogger(__name__)

#: The modes of questions that MCP has.
QUESTION_MODES: Final = ("form", "url")


@dataclass(frozen=True, slots=True)
class QuestionAnswer:
    """The answer to a question: `accept` with the values of the form, `decline` if the person said no, or `cancel`."""

    action: QuestionAction
    content: Mapping[str, Any] | None = None


#: The type of `on_question` of `call_tool`: `def` or `async def`. It returns the answer, or `None` to leave the
#: question to others. An async callback is cancelled when the question needs no answer any more.
QuestionCallback: TypeAlias = Callable[[ToolQuestion], Awaitable[QuestionAnswer | None] | QuestionAnswer | None]
_SendAnswer: TypeAlias = Callable[[ToolQuestion, QuestionAnswer], Awaitable[None]]


class QuestionListeners:
    """The calls that can be asked, by computer and `req_id`. `send` takes an answer to the computer."""

    def __init__(self, send: _SendAnswer) -> None:
        self._send = send
        self._listeners: dict[tuple[str, str], _QuestionListener] = {}

    def take(self, question: ToolQuestion) -> bool:
        """Hand a question to the caller of its call. Returns whether this process has such a call."""
        listener = self._listeners.get((question["computer"], question["req_id"]))
        if listener is not None:
            listener.take(question)
        return listener is not None

    @contextmanager
    def listening(self, computer: str, req_id: str, callback: QuestionCallback | None) -> Iterator[None]:
        """Take the questions of one call inside the block. At its end nobody is asked any more."""
        key = (computer, req_id)
        listener = self._listeners[key] = _QuestionListener(callback, self._send)
        try:
            yield
        finally:
            if self._listeners.get(key) is listener:
                del self._listeners[key]
            listener.stop()


class _QuestionListener:
    """Asks the callback in a task for each question."""

    def __init__(self, callback: QuestionCallback | None, send: _SendAnswer) -> None:
        self._callback = callback
        self._send = send
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._limiter = anyio.CapacityLimiter(MAX_QUESTIONS)

    def take(self, question: ToolQuestion) -> None:
        question_id = question["question_id"]
        if question.get("withdrawn"):
            if (task := self._tasks.pop(question_id, None)) is not None:
                task.cancel()
        elif self._callback is not None and question_id not in self._tasks and len(self._tasks) < MAX_QUESTIONS:
            task = asyncio.create_task(self._ask(question))
            self._tasks[question_id] = task
            task.add_done_callback(partial(self._forget, question_id))

    def _forget(self, question_id: str, task: asyncio.Task[None]) -> None:
        # A computer may withdraw a question and ask again under the same id. Then another task has this place.
        if self._tasks.get(question_id) is task:
            del self._tasks[question_id]

    def stop(self) -> None:
        for task in list(self._tasks.values()):
            task.cancel()

    async def _ask(self, question: ToolQuestion) -> None:
        try:
            answer = await self._answer(question)
        except Exception:
            # This is the caller's code. Nobody answers the question then.
            logger.exception("the callback for the questions of %s failed", question["req_id"])
            answer = QuestionAnswer("cancel")
        if answer is None:
            return
        try:
            try:
                await self._send(question, answer)
            except BadRequestError as error:
                # Otherwise the tool would wait for an answer until its call is out of time.
                logger.warning("the answer to a question of %s does not fit: %s", question["req_id"], error)
                await self._send(question, QuestionAnswer("cancel"))
        except NotFoundError:
            logger.info("question %s of %s was answered elsewhere", question["question_id"], question["req_id"])
        except SMCPError as error:
            logger.warning("the answer to a question of %s was not taken: %s", question["req_id"], error)

    async def _answer(self, question: ToolQuestion) -> QuestionAnswer | None:
        assert self._callback is not None
        if inspect.iscoroutinefunction(self._callback):
            outcome: Any = self._callback(question)
        else:
            # The callback may block, and must not stop the event loop.
            call = partial(self._callback, question)
            outcome = await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=self._limiter)
        if inspect.isawaitable(outcome):
            outcome = await outcome
        if outcome is not None and not isinstance(outcome, QuestionAnswer):
            raise TypeError(f"on_question must return a QuestionAnswer or None, not {type(outcome).__name__}")
        return outcome

"""A tool call that runs for a host, and may outlive the request that began it: its questions, its progress, its end."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from a2c_smcp.agent.questions import QuestionAnswer, QuestionCallback
from a2c_smcp.agent.types import ProgressCallback
from a2c_smcp.relay.asks import Ask, AskTable
from a2c_smcp.smcp import ToolQuestion
from a2c_smcp.utils.strangers_words import quoted_lines
from a2c_smcp.utils.text import harmless

if TYPE_CHECKING:
    from mcp_types import CallToolResult

__all__ = ["CANCEL", "CallWork", "HostSide", "HostedCall", "elicit_params", "read_answer"]

#: Nobody answers the question.
CANCEL: Final = QuestionAnswer("cancel")


@dataclass(frozen=True, slots=True)
class HostSide:
    """What a call has of its host: who hears its progress, and who answers questions of these `modes`."""

    on_progress: ProgressCallback | None = None
    on_question: QuestionCallback | None = None
    modes: tuple[str, ...] = ()


#: Runs the call.
CallWork: TypeAlias = Callable[[HostSide], Awaitable["CallToolResult"]]


@dataclass(frozen=True, slots=True)
class _WaitingQuestion:
    question: ToolQuestion
    answered: asyncio.Future[QuestionAnswer]


class HostedCall:
    """`run` runs the call in a task of its own; others `wait`, answer its questions, and take its result.

    `modes` are the questions that the host can answer. `reports` says whether somebody wants to hear of its progress.
    """

    def __init__(self, work: CallWork, modes: tuple[str, ...], *, reports: bool) -> None:
        self._work = work
        self._side = HostSide(self._report if reports else None, self._ask if modes else None, modes)
        self._asks: AskTable[str, _WaitingQuestion] = AskTable()
        self._scope = anyio.CancelScope()
        self._news = asyncio.Event()
        self._result: CallToolResult | None = None
        self.error: Exception | None = None
        """What the call raised."""
        self.listener: ProgressCallback | None = None
        """Who hears the progress now: the request of the host that waits."""
        self.message: str | None = None
        """The last words about its progress."""
        self.has_ended = False
        self.on_end: Callable[[], None] | None = None

    async def run(self) -> None:
        try:
            with self._scope:
                self._result = await self._work(self._side)
        except Exception as error:
            # Whoever takes the result gets the error.
            self.error = error
        finally:
            self.has_ended = True
            self._news.set()
            if self.on_end is not None:
                self.on_end()

    def cancel(self) -> None:
        self._scope.cancel()

    @property
    def was_cancelled(self) -> bool:
        return self.has_ended and self._result is None and self.error is None

    @property
    def questions(self) -> dict[str, ToolQuestion]:
        """The questions that wait for an answer, oldest first, each under its MCP server's own key if it has one."""
        return {ask.id: ask.waiter.question for ask in self._asks.waiting()}

    async def wait(self) -> None:
        """Until the call has ended, or asks something."""
        while not self.has_ended and not len(self._asks):
            self._news.clear()
            await self._news.wait()

    def result(self) -> "CallToolResult":
        """The result of a call that has ended. Raises what the call raised."""
        if self.error is not None:
            raise self.error
        if self._result is None:
            raise MCPError(types.INTERNAL_ERROR, "the call was cancelled")
        return self._result

    def answer(self, answers: Mapping[str, QuestionAnswer]) -> None:
        """Give answers to questions. An answer to a question that does not wait is ignored."""
        for question_id, answer in answers.items():
            if (ask := self._asks.answer(question_id)) is not None and not ask.waiter.answered.done():
                ask.waiter.answered.set_result(answer)

    # --- for the agent's call

    async def _report(self, progress: float, total: float | None, message: str | None) -> None:
        self.message = message or self.message
        if (listener := self.listener) is not None and (told := listener(progress, total, message)) is not None:
            await told

    async def _ask(self, question: ToolQuestion) -> QuestionAnswer:
        answered: asyncio.Future[QuestionAnswer] = asyncio.get_running_loop().create_future()
        key = question.get("key") or question["question_id"]
        if key in self.questions:  # of another tool that this one called: two servers may have one name
            key = question["question_id"]
        self._asks.ask(Ask(key, _WaitingQuestion(question, answered)))
        self._news.set()
        try:
            return await answered
        finally:
            self._asks.withdraw(key)


# --- MCP's words for them


def elicit_params(question: ToolQuestion, intro: str = "") -> types.ElicitRequestParams:
    """The question as MCP asks it. `intro` stands before the server's words. If they have several lines, they are
    quoted: none of them looks like the question of another server.
    """
    message = harmless(question.get("message", ""))
    if intro:
        message = intro + (f"\n{quoted_lines(message)}" if "\n" in message else message)
    if question.get("mode") == "url":
        elicitation_id = question.get("elicitationId") or question["question_id"]
        return types.ElicitRequestURLParams(message=message, url=question.get("url", ""), elicitation_id=elicitation_id)
    schema: dict[str, Any] = question.get("requestedSchema") or {"type": "object", "properties": {}}
    return types.ElicitRequestFormParams(message=message, requested_schema=schema)


def read_answer(given: object) -> QuestionAnswer:
    """A host's answer. What is not MCP's is `cancel`."""
    try:
        answer = types.ElicitResult.model_validate(given)
    except ValidationError:
        return CANCEL
    return QuestionAnswer(answer.action, answer.content)

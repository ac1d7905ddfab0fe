"""Brings the questions of MCP servers to a person: into the Computer's decisions, and the answers back. The person may
be at the computer, or where the call's agent is: the server's owner decides.

An answer goes to the server that asked, and nowhere else.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from a2c_smcp.computer.calls.log import LoggedCall
from a2c_smcp.computer.decisions.book import Accepted, AlreadyDecidedError, Outcome, Question, Resolution
from a2c_smcp.computer.decisions.callers import Caller
from a2c_smcp.computer.decisions.store import DecisionStore
from a2c_smcp.computer.mcp_clients.elicitation.asking import (
    ALL_MODES,
    NO_MODES,
    GivenAnswer,
    QuestionMode,
    ServerQuestion,
)
from a2c_smcp.computer.mcp_clients.model import QuestionPlace
from a2c_smcp.errors import BadRequestError

__all__ = ["QuestionDesk"]


class QuestionDesk:
    """The `PersonAsker` of a Computer's MCP servers."""

    def __init__(self, decisions: DecisionStore) -> None:
        self._decisions = decisions

    def modes(self, where: QuestionPlace, call: object | None) -> frozenset[QuestionMode]:
        if "question" in self._decisions.answerable:
            return ALL_MODES
        caller = _caller(where, call)
        return NO_MODES if caller is None else caller.modes

    async def ask(self, question: ServerQuestion) -> GivenAnswer:
        caller = _caller(question.where, question.call)
        if caller is not None and (question.mode not in caller.modes or not question.is_discreet):
            caller = None
        if caller is not None and question.where == "agent":
            resolution = await self._ask(question, caller, is_here=False)
            if resolution.outcome is not Outcome.UNANSWERED:
                return _answer(resolution)
            caller = None  # it could not be asked
        if caller is None:
            question.tell_wait()
        return _answer(await self._ask(question, caller))

    async def _ask(self, question: ServerQuestion, caller: Caller | None, *, is_here: bool = True) -> Resolution:
        calls = [call for call in question.calls if isinstance(call, LoggedCall)]
        # Without a call, a question waits for five minutes.
        expires = max((call.tool_ends for call in calls), default=asyncio.get_running_loop().time() + 300.0)
        return await self._decisions.ask_question(
            question.server,
            question.message,
            schema=question.schema,
            url=question.url,
            call=question.call.call if isinstance(question.call, LoggedCall) else None,
            calls=tuple(call.call for call in calls),
            check=lambda value: _check(question, value),
            expires=expires,
            caller=None if caller is None else (caller.name, caller.ask),
            is_here=is_here,
            key=question.key,
        )

    def done(self, question: ServerQuestion) -> None:
        for decision in self._decisions.pending_anywhere:
            if isinstance(decision, Question) and _is_about(decision, question):
                with suppress(AlreadyDecidedError):
                    self._decisions.answer(decision.id, Accepted(), by=question.server)


def _caller(where: QuestionPlace, call: object | None) -> Caller | None:
    return call.caller if isinstance(call, LoggedCall) and where != "here" else None


def _check(question: ServerQuestion, value: Any) -> None:
    """Raise `BadRequestError` if the value does not fit the server's form."""
    if question.form is None:
        return
    if not isinstance(value, Mapping | None):
        raise BadRequestError("the answer to a form must be an object with the form's fields")
    question.form.check(value)


def _answer(resolution: Resolution) -> GivenAnswer:
    match resolution.outcome:
        case Outcome.ACCEPTED:
            return GivenAnswer("accept", resolution.value)
        case Outcome.DECLINED:
            return GivenAnswer("decline")
    return GivenAnswer("cancel")


def _is_about(decision: Question, question: ServerQuestion) -> bool:
    return (decision.server, decision.message, decision.url) == (question.server, question.message, question.url)

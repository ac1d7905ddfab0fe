"""The questions of tools on their way to the agent that made the call, and the agent's answers.

Knows events and their ids. The Computer's decisions know whether an answer fits, and which one was first.
"""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, get_args

import anyio

from a2c_smcp.computer.asker import ASKER, Asker
from a2c_smcp.computer.calls.memory import CallKey
from a2c_smcp.computer.decisions.book import (
    Accepted,
    AlreadyDecidedError,
    Decision,
    DecisionAnswer,
    Declined,
    Dismissed,
    Question,
)
from a2c_smcp.computer.decisions.callers import Caller
from a2c_smcp.computer.decisions.store import DecisionStore
from a2c_smcp.computer.mcp_clients.elicitation.asking import QuestionMode
from a2c_smcp.errors import NotFoundError, SMCPError, error_from_payload
from a2c_smcp.link.connection import Connection
from a2c_smcp.smcp import MAX_QUESTION, QUESTION_EVENT, AnswerQuestionReq, DoneRet, ToolCallReq, ToolQuestion
from a2c_smcp.utils.limited_log import LimitedLog
from a2c_smcp.utils.text import in_log, on_one_line
from a2c_smcp.wire import codec

__all__ = ["AgentQuestions"]

logger = logging.getLogger(__name__)

#: By whom a decision was made, for people.
_AGENT: Final = "agent"
#: How many seconds the server has to pass a question on.
_SENDING: Final = 5.0


class AgentQuestions:
    """The questions that wait for an agent. `request` sends an event and returns the ack's arguments; `office` is the
    office that the Computer is in.
    """

    def __init__(
        self,
        decisions: DecisionStore,
        request: Callable[[str, Any, float, Connection | None], Awaitable[tuple[Any, ...]]],
        office: Callable[[], str],
    ) -> None:
        self._decisions = decisions
        self._request = request
        self._office = office
        self._waiting: dict[str, Asker] = {}
        """Who is asked, by the id of the question."""
        self._log = LimitedLog(logger)

    def caller(
        self, key: CallKey, request: ToolCallReq, asker: Asker | None, connection: Connection | None
    ) -> Caller | None:
        """The caller of a tool call, if it said that it can answer questions. The call came by this connection."""
        modes = frozenset(mode for mode in get_args(QuestionMode) if mode in request.get("questions", ()))
        if not modes or asker is None:
            return None
        send = partial(self._send, key, connection)
        return Caller(_AGENT, modes, partial(self._ask, asker, key, request["computer"], send))

    async def answer(self, request: AnswerQuestionReq) -> DoneRet:
        """Take an answer of the agent. Raises `NotFoundError` if no question of a call of this agent waits for it, and
        `BadRequestError` if it does not fit the form.
        """
        question_id = request["question_id"]
        asked, asker = self._waiting.get(question_id), ASKER.get()
        if asked is None or (asked, asked.own_id) != (asker, asker.own_id):
            raise NotFoundError("no question of this agent's calls has this id, or it needs no answer any more")
        try:
            self._decisions.answer(question_id, _answer(request), by=_AGENT)
        except AlreadyDecidedError as error:
            raise NotFoundError(error.message) from None
        return {"req_id": request["req_id"]}

    async def _ask(
        self,
        asker: Asker,
        key: CallKey,
        computer: str,
        send: Callable[[ToolQuestion], Awaitable[bool]],
        decision: Decision,
    ) -> DecisionAnswer | None:
        """Put a question to the agent, and wait until it is decided. `None` if the agent cannot be asked."""
        assert isinstance(decision, Question)
        about: ToolQuestion = {
            "computer": computer,
            "agent": key.agent,
            "req_id": key.req_id,
            "question_id": decision.id,
        }
        body = _with_question(about, decision)
        if len(codec.dumps(body)) > MAX_QUESTION:
            return None
        self._waiting[decision.id] = asker
        try:
            if not await send(body):
                return None
            try:
                await anyio.sleep_forever()  # `answer` decides; then this is cancelled
            finally:
                if self._is_decided_elsewhere(decision.id):
                    with anyio.move_on_after(1.0, shield=True):
                        await send({**about, "withdrawn": True})
        finally:
            del self._waiting[decision.id]
        return None

    def _is_decided_elsewhere(self, decision_id: str) -> bool:
        resolution = self._decisions.resolution(decision_id)
        return resolution is None or resolution.by != _AGENT

    async def _send(self, key: CallKey, connection: Connection | None, body: ToolQuestion) -> bool:
        """Whether the server has passed it on."""
        if key.office != self._office():
            return False  # in the new office, another agent's call may have these ids
        try:
            reply = await self._request(QUESTION_EVENT, body, _SENDING, connection)
            if (refusal := error_from_payload(reply[0] if reply else None)) is not None:
                raise refusal
        except SMCPError as error:
            if not body.get("withdrawn"):
                what = "a question of tool call %s did not reach its agent: %s"
                self._log.warn("questions", what, in_log(key.req_id), on_one_line(error))
            return False
        # A server that does not know the event may ack it with nothing.
        return bool(reply) and reply[0] is not None


def _with_question(about: ToolQuestion, question: Question) -> ToolQuestion:
    body: ToolQuestion = {**about, "mcp_server": question.server, "message": question.message}
    if question.key is not None:
        body["key"] = question.key
    if question.url is not None:
        return {**body, "mode": "url", "url": question.url, "elicitationId": question.id}
    return {**body, "mode": "form", "requestedSchema": dict(question.schema or {})}


def _answer(request: AnswerQuestionReq) -> DecisionAnswer:
    match request["action"]:
        case "accept":
            # Without any value the form's defaults are taken.
            return Accepted(request.get("content") or None)
        case "decline":
            return Declined()
        case "cancel":
            return Dismissed()

"""A prompt that asks before it answers (MCP 2026-07-28). Its questions go to the agent as an answer, and the agent asks
for the prompt again with what its person said. So nothing waits here. Pure.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_types import INTERNAL_ERROR, ElicitRequest, ElicitRequestURLParams, ElicitResult, InputRequiredResult
from pydantic import TypeAdapter, ValidationError

from a2c_smcp.computer.mcp_clients.elicitation.asking import ALL_MODES, QuestionMode, check_question, is_discreet
from a2c_smcp.computer.mcp_clients.mcp_error import MCPError
from a2c_smcp.errors import BadRequestError
from a2c_smcp.smcp import GetPromptReq

__all__ = ["PromptAnswer", "PromptRound", "asked_by", "round_of"]

#: How many questions a prompt may ask at once.
_MOST: Final = 16
_ANSWERS: Final = TypeAdapter(dict[str, ElicitResult])


@dataclass(frozen=True, slots=True)
class PromptRound:
    """One request for a prompt: the questions that the agent can answer, with the answers to the last ones and their
    state.
    """

    modes: frozenset[QuestionMode] = frozenset()
    answers: Mapping[str, Any] | None = None
    state: str | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of MCP's request."""
        given = {"inputResponses": self.answers, "requestState": self.state}
        return {key: value for key, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True)
class PromptAnswer:
    """MCP's result of a prompt, or the questions and the state that it wants to be asked again with."""

    result: Mapping[str, Any]
    questions: Mapping[str, Mapping[str, Any]] | None = None
    state: str | None = None


def round_of(request: GetPromptReq) -> PromptRound:
    """What an agent's request says. Raises `BadRequestError` for answers that are not MCP's."""
    modes = frozenset(mode for mode in ALL_MODES if mode in request.get("questions", ()))
    answers, state = request.get("input_responses"), request.get("request_state")
    if answers is None or not modes:
        return PromptRound(modes, None, state if modes else None)
    try:
        read = _ANSWERS.validate_python(answers)
    except ValidationError:
        read = {}
    if not 0 < len(read) <= _MOST:
        problem = f"field 'input_responses': must be 1 to {_MOST} answers of MCP's elicitation"
        raise BadRequestError(problem, {"field": "input_responses"})
    sent = {key: answer.model_dump(mode="json", by_alias=True, exclude_none=True) for key, answer in read.items()}
    return PromptRound(modes, sent, state)


def asked_by(
    said: Mapping[str, Any], asking: PromptRound, redaction: Callable[[str], str]
) -> tuple[dict[str, dict[str, Any]], str | None]:
    """The questions of a server's answer by its own keys, in the words of `ToolQuestion`, and its state.

    Raises `MCPError` for questions that the agent cannot answer, and for those that would show a secret of this
    computer.
    """
    try:
        result = InputRequiredResult.model_validate({**said, "resultType": "input_required"}, by_name=False)
    except ValidationError:
        raise MCPError(INTERNAL_ERROR, "the prompt asks in a way that is not MCP's") from None
    requests = result.input_requests or {}
    if len(requests) > _MOST:
        raise MCPError(
            INTERNAL_ERROR, f"the prompt asks {len(requests)} questions at once; at most {_MOST} are allowed"
        )
    return {key: _question(request, asking.modes, redaction) for key, request in requests.items()}, result.request_state


def _question(request: object, modes: frozenset[QuestionMode], redaction: Callable[[str], str]) -> dict[str, Any]:
    if not isinstance(request, ElicitRequest) or request.params.mode not in modes:
        raise MCPError(INTERNAL_ERROR, "the prompt asks for something that nobody can answer here")
    params = request.params
    check_question(params)
    message = redaction(params.message)
    if isinstance(params, ElicitRequestURLParams):
        shown: dict[str, Any] = {"mode": "url", "url": params.url, "elicitationId": params.elicitation_id}
    else:
        shown = {"mode": "form", "requestedSchema": params.requested_schema}
    if not is_discreet(shown, redaction):
        raise MCPError(INTERNAL_ERROR, "the question of the prompt holds a secret of this computer")
    return {"message": message, **shown}

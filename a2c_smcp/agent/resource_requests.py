"""What an agent asks about resources, prompts and questions, and how it reads the answers. Pure, like `requests`."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast

from a2c_smcp.agent.requests import Deadlines, NotSupportedError, Request, UnansweredError, read_reply, to_computer
from a2c_smcp.errors import BadRequestError, InternalError, SMCPError
from a2c_smcp.smcp import (
    ANSWER_QUESTION_EVENT,
    COMPLETE_EVENT,
    GET_PROMPT_EVENT,
    GET_PROMPTS_EVENT,
    GET_RESOURCES_EVENT,
    READ_RESOURCE_EVENT,
    SUBSCRIBE_RESOURCE_EVENT,
    UNSUBSCRIBE_RESOURCE_EVENT,
    AgentCallData,
    CompleteRet,
    GetPromptRet,
    GetPromptsRet,
    GetResourcesRet,
    ReadResourceRet,
)

__all__ = [
    "QuestionAction",
    "answer_question",
    "complete",
    "get_prompt",
    "get_prompts",
    "get_resources",
    "is_unknown_to_peer",
    "read_completion",
    "read_done",
    "read_part",
    "read_prompt",
    "read_prompts",
    "read_resource",
    "read_resources",
    "subscribe",
]

QuestionAction: TypeAlias = Literal["accept", "decline", "cancel"]
_RANGE: Final = "field 'range': must be an offset from 0 on and a length from 1 on"


def get_resources(
    call: AgentCallData, deadlines: Deadlines, computer: str, mcp_server: str | None, cursor: str | None
) -> Request:
    fields = _given({"mcp_server": mcp_server, "cursor": cursor})
    return to_computer(GET_RESOURCES_EVENT, call, deadlines.reply, computer, fields)


def get_prompts(
    call: AgentCallData, deadlines: Deadlines, computer: str, mcp_server: str | None, cursor: str | None
) -> Request:
    fields = _given({"mcp_server": mcp_server, "cursor": cursor})
    return to_computer(GET_PROMPTS_EVENT, call, deadlines.reply, computer, fields)


def get_prompt(
    call: AgentCallData,
    deadlines: Deadlines,
    computer: str,
    mcp_server: str,
    name: str,
    arguments: Mapping[str, str] | None,
    meta: Mapping[str, Any] | None,
    asking: Mapping[str, Any],
) -> Request:
    """`asking` has the fields of the questions, if the agent answers any."""
    given = None if arguments is None else dict(arguments)
    fields = {"mcp_server": mcp_server, "name": name, "arguments": given, "meta": _meta(meta), **asking}
    return to_computer(GET_PROMPT_EVENT, call, deadlines.reply, computer, _given(fields))


def complete(
    call: AgentCallData,
    deadlines: Deadlines,
    computer: str,
    mcp_server: str,
    ref: Mapping[str, Any],
    argument: Mapping[str, Any],
    context: Mapping[str, Any] | None,
) -> Request:
    fields = {
        "mcp_server": mcp_server,
        "ref": dict(ref),
        "argument": dict(argument),
        "context": None if context is None else dict(context),
    }
    return to_computer(COMPLETE_EVENT, call, deadlines.reply, computer, _given(fields))


def read_resource(
    call: AgentCallData,
    deadlines: Deadlines,
    computer: str,
    uri: str,
    range: Sequence[int] | None = None,
    meta: Mapping[str, Any] | None = None,
) -> Request:
    """`range` is an offset and a length in bytes. Raises `BadRequestError` for another one."""
    part = None if range is None else list(range)
    if part is not None:
        if len(part) != 2 or any(not isinstance(each, int) or isinstance(each, bool) for each in part):
            raise BadRequestError(_RANGE, {"field": "range"})
        if part[0] < 0 or part[1] < 1:
            raise BadRequestError(_RANGE, {"field": "range"})
    fields = {"uri": uri, "range": part, "meta": _meta(meta)}
    return to_computer(READ_RESOURCE_EVENT, call, deadlines.reply, computer, _given(fields))


def subscribe(call: AgentCallData, deadlines: Deadlines, computer: str, uri: str, *, begins: bool) -> Request:
    """Begin or end a subscription."""
    event = SUBSCRIBE_RESOURCE_EVENT if begins else UNSUBSCRIBE_RESOURCE_EVENT
    return to_computer(event, call, deadlines.reply, computer, {"uri": uri})


def answer_question(
    call: AgentCallData,
    deadlines: Deadlines,
    computer: str,
    question_id: str,
    action: QuestionAction,
    content: Mapping[str, Any] | None,
) -> Request:
    given = None if content is None else dict(content)
    fields = _given({"question_id": question_id, "action": action, "content": given})
    return to_computer(ANSWER_QUESTION_EVENT, call, deadlines.reply, computer, fields)


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}


def _meta(meta: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if meta is None else dict(meta)


# --- reading


def read_resources(request: Request, args: tuple[Any, ...]) -> GetResourcesRet:
    return cast("GetResourcesRet", read_reply(request, args))


def read_prompts(request: Request, args: tuple[Any, ...]) -> GetPromptsRet:
    return cast("GetPromptsRet", read_reply(request, args))


def read_prompt(request: Request, args: tuple[Any, ...]) -> GetPromptRet:
    return cast("GetPromptRet", read_reply(request, args))


def read_completion(request: Request, args: tuple[Any, ...]) -> dict[str, Any]:
    """MCP's completion. Its values are texts."""
    completion = cast("CompleteRet", read_reply(request, args))["completion"]
    values = completion.get("values")
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise BadRequestError("reply to client:complete: field 'completion': has no values", {"field": "completion"})
    return completion


def read_part(request: Request, args: tuple[Any, ...]) -> ReadResourceRet:
    return cast("ReadResourceRet", read_reply(request, args))


def read_done(request: Request, args: tuple[Any, ...]) -> None:
    read_reply(request, args)


def is_unknown_to_peer(error: SMCPError) -> bool:
    """Whether an error says that the computer or the server does not know the request: an older one answers 400 without
    a field, nothing, or not at all.
    """
    match error:
        case NotSupportedError() | UnansweredError():
            return True
        case BadRequestError():
            return "field" not in (error.details or {})
        case InternalError():
            # The server says so when the computer acked without an answer.
            return bool((error.details or {}).get("unanswered"))
        case _:
            return False

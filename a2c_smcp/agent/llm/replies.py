"""What a model answered, as its SDK returned it: which tools it calls, and its message for the next request. Pure.

An answer may be the SDK's object or a dict, whole or as the list of its streamed chunks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from a2c_smcp.agent.for_models.argument_check import argument_object
from a2c_smcp.agent.llm.styles import Style, ToolRequest

__all__ = ["ModelReply", "read_reply"]

#: The types of items and events that only OpenAI's responses have begin with one of these.
_OF_RESPONSES: Final = ("response.", "function_", "reasoning")


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The calls of a model, and its own message, as messages for the next request."""

    style: Style
    messages: list[Any]
    calls: list[ToolRequest]


def read_reply(message: Any, style: Style | None = None) -> ModelReply:
    """Read what an SDK returned. The style is found by its shape unless it is given. Raises `ValueError` for something
    that is no answer of a model.
    """
    chunks = list(message) if isinstance(message, list | tuple) else None
    style = style or _style_of(chunks[0] if chunks else message, chunks or [message])
    match style:
        case "openai":
            return _openai(_joined_chunks(chunks) if chunks else message)
        case "openai-responses":
            return _responses(chunks if chunks is not None else message)
        case "anthropic":
            return _anthropic(message)
        case "gemini":
            return _gemini(chunks if chunks is not None else [message])


def _style_of(message: Any, items: Sequence[Any]) -> Style:
    if _get(message, "choices") is not None or _has(message, "tool_calls"):
        return "openai"
    if _get(message, "candidates") is not None or _get(message, "parts") is not None:
        return "gemini"
    # The items of a response are a list. A message of the model may come before its calls, and looks like Anthropic's.
    kinds = [str(_get(item, "type")) for item in items]
    if _get(message, "output") is not None or any(kind.startswith(_OF_RESPONSES) for kind in kinds):
        return "openai-responses"
    content = _get(message, "content")
    if isinstance(content, list | tuple):
        return "anthropic"
    if _get(message, "role") == "assistant":
        return "openai"
    if _get(message, "usage_metadata") is not None or _get(message, "usageMetadata") is not None:
        return "gemini"
    raise ValueError(f"{type(message).__name__} is not a model's answer; pass what the SDK returned, or name its style")


# --- OpenAI's chat


def _openai(answer: Any) -> ModelReply:
    choices = _get(answer, "choices")
    message = _get(choices[0], "message") if choices else answer
    own = _plain(message)
    own = {name: value for name, value in own.items() if value not in (None, [])}
    asked = own.get("tool_calls") or []
    calls = [
        ToolRequest(call["id"], call["function"]["name"], argument_object(call["function"].get("arguments")))
        for call in asked
        if "function" in call
    ]
    # The SDK's own parser adds `parsed_arguments` and `parsed`, which the API refuses.
    own.pop("parsed", None)
    if asked:
        own["tool_calls"] = [_without_parsed(call) for call in asked]
    return ModelReply("openai", [{"role": "assistant", "content": None, **own}], calls)


def _without_parsed(call: Mapping[str, Any]) -> dict[str, Any]:
    call = {name: value for name, value in call.items() if name != "index"}
    if isinstance(function := call.get("function"), Mapping):
        call["function"] = {name: value for name, value in function.items() if name != "parsed_arguments"}
    return call


def _joined_chunks(chunks: Sequence[Any]) -> dict[str, Any]:
    """One message from streamed chunks. The parts of a call belong together by their index."""
    if _get(chunks[0], "choices") is None and _has(chunks[0], "role"):
        return dict(_plain(chunks[-1]))  # a list of messages: the last one counts
    text, calls = list[str](), dict[int, dict[str, Any]]()
    for chunk in chunks:
        for choice in (_get(chunk, "choices") or ())[:1]:
            delta = _get(choice, "delta")
            text.append(_get(delta, "content") or "")
            for part in _get(delta, "tool_calls") or ():
                # Some servers leave the index out, and send whole calls.
                index = _get(part, "index")
                place = len(calls) if index is None else index
                call = calls.setdefault(place, {"id": "", "type": "function", "function": _empty_function()})
                call["id"] = call["id"] or _get(part, "id") or ""
                function = _get(part, "function")
                call["function"]["name"] += _get(function, "name") or ""
                call["function"]["arguments"] += _get(function, "arguments") or ""
    own: dict[str, Any] = {"role": "assistant", "content": "".join(text) or None}
    return {**own, "tool_calls": list(calls.values())} if calls else own


def _empty_function() -> dict[str, str]:
    return {"name": "", "arguments": ""}


# --- OpenAI's responses


def _responses(answer: Any) -> ModelReply:
    items = answer if isinstance(answer, list) else _get(answer, "output")
    if isinstance(answer, list) and answer and str(_get(answer[0], "type")).startswith("response."):
        whole = next((found for each in reversed(answer) if (found := _get(each, "response")) is not None), None)
        items = _get(whole, "output")
    own = [_plain(item) for item in items or ()]
    own = [{name: value for name, value in item.items() if name != "parsed_arguments"} for item in own]
    calls = [
        ToolRequest(item["call_id"], item["name"], argument_object(item.get("arguments")))
        for item in own
        if item.get("type") == "function_call"
    ]
    return ModelReply("openai-responses", own, calls)


# --- Anthropic


def _anthropic(answer: Any) -> ModelReply:
    content = answer if isinstance(answer, list | tuple) else _get(answer, "content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    # The SDK's own helpers add `parsed_output` and `__json_buf`, which the API refuses.
    blocks = [
        {name: value for name, value in _plain(block).items() if name not in ("parsed_output", "__json_buf")}
        for block in content or ()
    ]
    # The API refuses an empty text.
    blocks = [block for block in blocks if block.get("type") != "text" or block.get("text")]
    calls = [
        ToolRequest(block["id"], block["name"], argument_object(block.get("input")))
        for block in blocks
        if block.get("type") == "tool_use"
    ]
    return ModelReply("anthropic", [{"role": "assistant", "content": blocks}], calls)


# --- Gemini


def _gemini(answers: Sequence[Any]) -> ModelReply:
    parts = []
    for answer in answers:
        candidates = _get(answer, "candidates")
        content = _get(candidates[0], "content") if candidates else answer
        parts += [_plain(part) for part in _get(content, "parts") or ()]
    calls = list[ToolRequest]()
    for part in parts:
        if (call := part.get("function_call") or part.get("functionCall")) is not None:
            # The API gives no ids by default: answers are told apart by their order.
            own = call.get("id")
            made = f"call-{len(calls) + 1}"
            calls.append(
                ToolRequest(own or made, call["name"], argument_object(call.get("args")), has_own_id=bool(own))
            )
    return ModelReply("gemini", [{"role": "model", "parts": parts}], calls)


# --- objects and dicts


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _has(value: Any, name: str) -> bool:
    return name in value if isinstance(value, Mapping) else hasattr(value, name)


def _plain(value: Any) -> dict[str, Any]:
    """An SDK's object as a dict of what the service sent. All these SDKs are built on pydantic."""
    if isinstance(value, Mapping):
        return {str(name): _without_nulls(each, name) for name, each in value.items() if each is not None}
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise ValueError(f"{type(value).__name__} is not a model's answer")
    return dict(dump(exclude_none=True, exclude_unset=True))


def _without_nulls(value: Any, name: str = "") -> Any:
    """What `model_dump` filled in is taken out: the services refuse some of it. What the model itself wrote stays."""
    if name in ("input", "args", "arguments"):
        return value
    if isinstance(value, Mapping):
        return {key: _without_nulls(each, key) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value

"""The rules of models' APIs, in one table. The SDKs do not check them; the services answer 400. Pure.

They are from the services' documentation and from answers of the services: names, schemas, and the order of messages.
"""

import base64
import json
import re
from binascii import Error as Base64Error
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

JSON: TypeAlias = dict[str, Any]

_IMAGES = {"image/png", "image/jpeg", "image/gif", "image/webp"}
#: How the bytes of each type begin.
_MAGIC = {
    "image/png": rb"\x89PNG\r\n\x1a\n",
    "image/jpeg": rb"\xff\xd8\xff",
    "image/gif": rb"GIF8[79]a",
    "image/webp": rb"RIFF....WEBP",
    "application/pdf": rb"%PDF-",
}
#: How many bytes a request may have.
_REQUEST = {"openai": 50_000_000, "openai-responses": 50_000_000, "anthropic": 32_000_000, "gemini": 20_000_000}
_AT_THE_TOP = ("oneOf", "anyOf", "allOf", "enum", "not")


@dataclass(frozen=True)
class Rule:
    """One rule of one API. `problems` yields what breaks it in a request."""

    style: str
    name: str
    problems: Callable[[JSON], Iterator[str]]


RULES: list[Rule] = []


def rule(*styles: str) -> Callable[[Callable[..., Iterator[str]]], Callable[..., Iterator[str]]]:
    def add(check: Callable[..., Iterator[str]]) -> Callable[..., Iterator[str]]:
        for style in styles:
            RULES.append(Rule(style, check.__name__, lambda request, style=style: check(request, style)))  # type: ignore[misc]
        return check

    return add


def broken_rules(style: str, request: JSON) -> list[str]:
    """What is wrong with a request, each with the name of its rule."""
    rules = [each for each in RULES if each.style == style]
    return [f"{each.name}: {problem}" for each in rules for problem in each.problems(request)]


# --- tools


def tools_of(request: JSON, style: str) -> list[tuple[str, str, Any]]:
    """The tools of a request: name, description, schema."""
    match style:
        case "openai":
            functions = [tool["function"] for tool in request.get("tools") or ()]
            return [(each["name"], each.get("description", ""), each.get("parameters")) for each in functions]
        case "openai-responses":
            tools = request.get("tools") or ()
            return [(each["name"], each.get("description", ""), each.get("parameters")) for each in tools]
        case "anthropic":
            tools = request.get("tools") or ()
            return [(each["name"], each.get("description", ""), each.get("input_schema")) for each in tools]
        case _:
            declared = [each for tool in request.get("tools") or () for each in tool.get("functionDeclarations", ())]
            return [(each["name"], each.get("description", ""), _gemini_schema(each)) for each in declared]


def _gemini_schema(declared: JSON) -> Any:
    """The schema of a declaration. Google's services take both spellings of a field, and the SDK sends this one."""
    names = ("parametersJsonSchema", "parameters_json_schema", "parameters")
    return next((declared[name] for name in names if name in declared), None)


_NAMES = {
    "openai": r"[a-zA-Z0-9_-]{1,64}",
    "openai-responses": r"[a-zA-Z0-9_-]{1,64}",
    "anthropic": r"[a-zA-Z0-9_-]{1,128}",
    "gemini": r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}",  # newer models take 128 characters
}
_ALL = tuple(_NAMES)


@rule(*_ALL)
def names_fit(request: JSON, style: str) -> Iterator[str]:
    for name, _, _ in tools_of(request, style):
        if not re.fullmatch(_NAMES[style], name):
            yield repr(name)


@rule(*_ALL)
def names_are_unique(request: JSON, style: str) -> Iterator[str]:
    yield from (name for name, many in Counter(name for name, _, _ in tools_of(request, style)).items() if many > 1)


@rule("openai", "openai-responses")
def at_most_128_tools(request: JSON, style: str) -> Iterator[str]:
    if len(tools_of(request, style)) > 128:
        yield str(len(tools_of(request, style)))


@rule("openai", "openai-responses")
def descriptions_have_at_most_1024_characters(request: JSON, style: str) -> Iterator[str]:
    yield from (name for name, about, _ in tools_of(request, style) if len(about) > 1024)


@rule(*_ALL)
def schemas_are_valid(request: JSON, style: str) -> Iterator[str]:
    for name, _, schema in tools_of(request, style):
        try:
            Draft202012Validator.check_schema(schema)
        except (SchemaError, TypeError) as error:
            yield f"{name}: {str(error)[:100]}"


@rule(*_ALL)
def schemas_are_objects(request: JSON, style: str) -> Iterator[str]:
    for name, _, schema in tools_of(request, style):
        if not isinstance(schema, dict) or schema.get("type") != "object":
            yield name


@rule("openai", "openai-responses", "anthropic")
def no_alternatives_at_the_top(request: JSON, style: str) -> Iterator[str]:
    for name, _, schema in tools_of(request, style):
        yield from (f"{name}: {keyword}" for keyword in _AT_THE_TOP if keyword in (schema or {}))


@rule("openai", "openai-responses", "gemini")
def arrays_have_items(request: JSON, style: str) -> Iterator[str]:
    for name, _, schema in tools_of(request, style):
        for part in _schemas(schema):
            kinds = part.get("type")
            if "array" in (kinds if isinstance(kinds, list) else [kinds]) and "items" not in part:
                yield name


@rule("anthropic")
def arguments_have_plain_names(request: JSON, style: str) -> Iterator[str]:
    for name, _, schema in tools_of(request, style):
        for argument in (schema or {}).get("properties", {}):
            if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", argument):
                yield f"{name}: {argument!r}"


@rule("gemini")
def required_arguments_have_schemas(request: JSON, style: str) -> Iterator[str]:
    for name, _, schema in tools_of(request, style):
        yield from (
            f"{name}: {each}" for each in schema.get("required", ()) if each not in schema.get("properties", {})
        )


def _schemas(schema: Any) -> Iterator[JSON]:
    if isinstance(schema, dict):
        if isinstance(schema.get("type"), str | list):
            yield schema
        for name, each in schema.items():
            if name not in ("default", "enum", "const", "examples"):
                yield from _schemas(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from _schemas(each)


@rule(*_ALL)
def requests_are_not_too_large(request: JSON, style: str) -> Iterator[str]:
    if (size := len(json.dumps(request))) > _REQUEST[style]:
        yield f"{size} bytes"


# --- OpenAI's chat

_FIELDS = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "tool_calls", "refusal", "audio", "annotations"},
    "tool": {"role", "content", "tool_call_id"},
}


@rule("openai")
def messages_have_known_fields(request: JSON, style: str) -> Iterator[str]:
    for message in request["messages"]:
        yield from (f"{message['role']}: {field}" for field in message.keys() - _FIELDS.get(message["role"], set()))
        for call in message.get("tool_calls") or ():
            yield from call.keys() - {"id", "type", "function"}
            yield from call["function"].keys() - {"name", "arguments"}


@rule("openai")
def every_call_is_answered_at_once(request: JSON, style: str) -> Iterator[str]:
    waiting: list[str] = []
    for message in request["messages"]:
        if message["role"] == "tool":
            if message.get("tool_call_id") not in waiting:
                yield f"nobody waits for {message.get('tool_call_id')!r}"
            else:
                waiting.remove(message["tool_call_id"])
            continue
        yield from (f"{each} is not answered" for each in waiting)
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
    yield from (f"{each} is not answered" for each in waiting)


@rule("openai")
def tools_answer_with_text_only(request: JSON, style: str) -> Iterator[str]:
    for message in request["messages"]:
        content = message.get("content")
        if message["role"] == "tool" and not isinstance(content, str):
            yield from (part["type"] for part in content or [{"type": "nothing"}] if part["type"] != "text")


@rule("openai")
def images_are_in_messages_of_users(request: JSON, style: str) -> Iterator[str]:
    for message in request["messages"]:
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            if part["type"] in ("image_url", "file") and message["role"] != "user":
                yield message["role"]
            if part["type"] == "image_url" and (problem := _data_problem(part["image_url"]["url"], _IMAGES)):
                yield problem
            if part["type"] == "file" and (problem := _data_problem(part["file"]["file_data"], {"application/pdf"})):
                yield problem


# --- OpenAI's responses


@rule("openai-responses")
def every_item_is_answered(request: JSON, style: str) -> Iterator[str]:
    items = request["input"] if isinstance(request["input"], list) else []
    asked = [item["call_id"] for item in items if item.get("type") == "function_call"]
    said = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    yield from (f"{each} is not answered" for each in asked if each not in said)
    yield from (f"nobody waits for {each}" for each in said if each not in asked)
    yield from (f"{each} is answered twice" for each, many in Counter(said).items() if many > 1)


@rule("openai-responses")
def outputs_are_texts_images_and_files(request: JSON, style: str) -> Iterator[str]:
    for item in request["input"] if isinstance(request["input"], list) else ():
        if item.get("type") != "function_call_output" or isinstance(item["output"], str):
            continue
        for part in item["output"]:
            if part["type"] not in ("input_text", "input_image", "input_file"):
                yield part["type"]
            if part["type"] == "input_image" and (problem := _data_problem(part["image_url"], _IMAGES)):
                yield problem
            if part["type"] == "input_file" and (problem := _data_problem(part["file_data"], {"application/pdf"})):
                yield problem


# --- Anthropic

_BLOCKS = {
    "text": {"type", "text", "citations", "cache_control"},
    "image": {"type", "source", "cache_control"},
    "document": {"type", "source", "title", "context", "citations", "cache_control"},
    "tool_use": {"type", "id", "name", "input", "caller", "cache_control"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
    "thinking": {"type", "thinking", "signature"},
}


def _blocks(request: JSON) -> Iterator[JSON]:
    for message in request["messages"]:
        content = message["content"] if isinstance(message["content"], list) else []
        for block in content:
            yield block
            inner = block.get("content")
            if block["type"] == "tool_result" and isinstance(inner, list):
                yield from inner


@rule("anthropic")
def the_longest_answer_is_named(request: JSON, style: str) -> Iterator[str]:
    if not isinstance(request.get("max_tokens"), int):
        yield "max_tokens"


@rule("anthropic")
def blocks_have_known_fields(request: JSON, style: str) -> Iterator[str]:
    for block in _blocks(request):
        yield from (f"{block['type']}: {field}" for field in block.keys() - _BLOCKS.get(block["type"], set()))


@rule("anthropic")
def texts_are_not_empty(request: JSON, style: str) -> Iterator[str]:
    for block in _blocks(request):
        if block["type"] == "text" and not block["text"].strip():
            yield "an empty text"
    yield from ("an empty message" for message in request["messages"][:-1] if not message["content"])


@rule("anthropic")
def results_follow_their_calls(request: JSON, style: str) -> Iterator[str]:
    waiting: list[str] = []
    for message in [*request["messages"], {"role": "user", "content": []}]:
        content = message["content"] if isinstance(message["content"], list) else []
        found = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
        if sorted(found) != sorted(waiting):
            yield f"{waiting} is asked, {found} is answered"
        kinds = [block["type"] == "tool_result" for block in content]
        if found and (message["role"] != "user" or kinds != sorted(kinds, reverse=True)):
            yield "results come first, in a message of the user"
        waiting = [block["id"] for block in content if block["type"] == "tool_use"]


@rule("anthropic")
def sources_are_images_and_pdfs(request: JSON, style: str) -> Iterator[str]:
    for block in _blocks(request):
        if block["type"] in ("image", "document"):
            source, allowed = block["source"], _IMAGES if block["type"] == "image" else {"application/pdf"}
            if problem := _data_problem(f"data:{source['media_type']};base64,{source['data']}", allowed):
                yield problem


# --- Gemini


@rule("gemini")
def roles_are_user_and_model(request: JSON, style: str) -> Iterator[str]:
    yield from (str(each.get("role")) for each in request["contents"] if each.get("role") not in ("user", "model"))


@rule("gemini")
def every_function_call_has_its_response(request: JSON, style: str) -> Iterator[str]:
    waiting: list[str] = []
    for content in [*request["contents"], {"role": "user", "parts": []}]:
        said = [part["functionResponse"]["name"] for part in content["parts"] if "functionResponse" in part]
        if said != waiting:
            yield f"{waiting} is asked, {said} is answered"
        waiting = [part["functionCall"]["name"] for part in content["parts"] if "functionCall" in part]


@rule("gemini")
def responses_are_objects(request: JSON, style: str) -> Iterator[str]:
    for content in request["contents"]:
        for part in content["parts"]:
            if "functionResponse" in part and not isinstance(part["functionResponse"].get("response"), dict):
                yield part["functionResponse"]["name"]


@rule("gemini")
def inline_data_is_base64(request: JSON, style: str) -> Iterator[str]:
    for content in request["contents"]:
        for part in content["parts"]:
            for inner in [part, *part.get("functionResponse", {}).get("parts", ())]:
                if (blob := inner.get("inlineData")) is not None:
                    allowed = {*_IMAGES, "application/pdf"} - {"image/gif"}
                    # The SDK writes base64 for URLs.
                    data = blob["data"].replace("-", "+").replace("_", "/")
                    if problem := _data_problem(f"data:{blob['mimeType']};base64,{data}", allowed):
                        yield problem


def _data_problem(url: str, allowed: set[str]) -> str | None:
    found = re.fullmatch(r"data:([^;,]*);base64,(.*)", url, re.DOTALL)
    if found is None or found[1] not in allowed:
        return url[:40]
    try:
        data = base64.b64decode(found[2], validate=True)
    except Base64Error:
        return "not base64"
    return None if re.match(_MAGIC[found[1]], data, re.DOTALL) else f"bytes that are not {found[1]}"

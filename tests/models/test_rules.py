"""Each rule of the table refuses what breaks it, and a good request breaks none."""

from typing import Any

import pytest

from tests.models.rules import JSON, RULES, broken_rules

PNG = "iVBORw0KGgo="
OBJECT: JSON = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


def tool(style: str, name: str = "read", about: str = "Reads.", schema: Any = OBJECT) -> JSON:
    match style:
        case "openai":
            return {"type": "function", "function": {"name": name, "description": about, "parameters": schema}}
        case "openai-responses":
            return {"type": "function", "name": name, "description": about, "parameters": schema, "strict": False}
        case "anthropic":
            return {"name": name, "description": about, "input_schema": schema}
        case _:
            return {"functionDeclarations": [{"name": name, "description": about, "parametersJsonSchema": schema}]}


def call(key: str = "c1") -> JSON:
    return {"id": key, "type": "function", "function": {"name": "read", "arguments": "{}"}}


def user_says(text: str = "Do it.") -> JSON:
    return {"role": "user", "content": text}


def image(kind: str = "image/png", data: str = PNG) -> JSON:
    return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}


def block(kind: str = "image/png", data: str = PNG) -> JSON:
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}


ASKS: JSON = {"role": "assistant", "content": None, "tool_calls": [call()]}
TOOL_SAYS: JSON = {"role": "tool", "tool_call_id": "c1", "content": "It says."}
USES: JSON = {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "read", "input": {}}]}
RESULT: JSON = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "It says."}]}
ITEM: JSON = {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"}
OUTPUT: JSON = {"type": "function_call_output", "call_id": "c1", "output": "It says."}
GEMINI_CALL: JSON = {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}]}
GEMINI_RESPONSE: JSON = {"functionResponse": {"name": "read", "response": {"output": "It says."}}}

GOOD: dict[str, JSON] = {
    "openai": {
        "messages": [user_says(), ASKS, TOOL_SAYS, {"role": "user", "content": [image()]}],
        "tools": [tool("openai")],
    },
    "openai-responses": {
        "input": [user_says(), ITEM, OUTPUT],
        "tools": [tool("openai-responses")],
    },
    "anthropic": {
        "max_tokens": 10,
        "messages": [user_says(), USES, {"role": "user", "content": [RESULT]}],
        "tools": [tool("anthropic")],
    },
    "gemini": {
        "contents": [
            {"role": "user", "parts": [{"text": "Do it."}]},
            GEMINI_CALL,
            {"role": "user", "parts": [GEMINI_RESPONSE]},
        ],
        "tools": [tool("gemini")],
    },
}


def with_tools(style: str, *tools: JSON) -> JSON:
    return {**GOOD[style], "tools": list(tools)}


def with_messages(*messages: JSON) -> JSON:
    return {**GOOD["openai"], "messages": list(messages)}


def with_results(*content: JSON, **more: Any) -> JSON:
    return {**GOOD["anthropic"], "messages": [user_says(), USES, {"role": "user", "content": list(content)}], **more}


def with_parts(*parts: JSON, role: str = "user") -> JSON:
    return {**GOOD["gemini"], "contents": [GEMINI_CALL, {"role": role, "parts": list(parts)}]}


STYLES = tuple(GOOD)
#: The schemas that break rules of several APIs.
ARRAY = {"type": "object", "properties": {"a": {"type": "array"}}}
ANY = {"type": "object", "anyOf": [{}]}
BROKEN: list[tuple[str, str, JSON]] = [
    *((style, "names_fit", with_tools(style, tool(style, "read file"))) for style in STYLES),
    *((style, "names_fit", with_tools(style, tool(style, "r" * 129))) for style in STYLES),
    ("openai", "names_fit", with_tools("openai", tool("openai", "r" * 65))),
    ("gemini", "names_fit", with_tools("gemini", tool("gemini", "3d"))),
    *((style, "names_are_unique", with_tools(style, tool(style), tool(style))) for style in STYLES),
    *(
        (style, "at_most_128_tools", with_tools(style, *(tool(style, f"t{n}") for n in range(129))))
        for style in ("openai", "openai-responses")
    ),
    *(
        (style, "descriptions_have_at_most_1024_characters", with_tools(style, tool(style, about="d" * 1025)))
        for style in ("openai", "openai-responses")
    ),
    *((style, "schemas_are_valid", with_tools(style, tool(style, schema={"type": "int"}))) for style in STYLES),
    *((style, "schemas_are_objects", with_tools(style, tool(style, schema={"type": "string"}))) for style in STYLES),
    *(
        (style, "no_alternatives_at_the_top", with_tools(style, tool(style, schema=ANY)))
        for style in ("openai", "openai-responses", "anthropic")
    ),
    *(
        (style, "arrays_have_items", with_tools(style, tool(style, schema=ARRAY)))
        for style in ("openai", "openai-responses", "gemini")
    ),
    (
        "anthropic",
        "arguments_have_plain_names",
        with_tools("anthropic", tool("anthropic", schema={"type": "object", "properties": {"a[]": {}}})),
    ),
    (
        "gemini",
        "required_arguments_have_schemas",
        with_tools("gemini", tool("gemini", schema={"type": "object", "required": ["a"]})),
    ),
    *((style, "requests_are_not_too_large", {**GOOD[style], "metadata": "x" * 50_000_001}) for style in STYLES),
    ("openai", "messages_have_known_fields", with_messages({**ASKS, "parsed": None}, TOOL_SAYS)),
    ("openai", "messages_have_known_fields", with_messages({**ASKS, "tool_calls": [{**call(), "x": 1}]}, TOOL_SAYS)),
    ("openai", "every_call_is_answered_at_once", with_messages(ASKS)),
    ("openai", "every_call_is_answered_at_once", with_messages(ASKS, user_says(), TOOL_SAYS)),
    ("openai", "every_call_is_answered_at_once", with_messages(ASKS, TOOL_SAYS, TOOL_SAYS)),
    ("openai", "tools_answer_with_text_only", with_messages(ASKS, {**TOOL_SAYS, "content": [image()]})),
    ("openai", "images_are_in_messages_of_users", with_messages({"role": "system", "content": [image()]})),
    ("openai", "images_are_in_messages_of_users", with_messages({"role": "user", "content": [image("image/bmp")]})),
    ("openai", "images_are_in_messages_of_users", with_messages({"role": "user", "content": [image(data="no!")]})),
    ("openai", "images_are_in_messages_of_users", with_messages({"role": "user", "content": [image("image/jpeg")]})),
    ("openai-responses", "every_item_is_answered", {**GOOD["openai-responses"], "input": [ITEM]}),
    ("openai-responses", "every_item_is_answered", {**GOOD["openai-responses"], "input": [OUTPUT]}),
    ("openai-responses", "every_item_is_answered", {**GOOD["openai-responses"], "input": [ITEM, OUTPUT, OUTPUT]}),
    (
        "openai-responses",
        "outputs_are_texts_images_and_files",
        {**GOOD["openai-responses"], "input": [ITEM, {**OUTPUT, "output": [{"type": "text", "text": "a"}]}]},
    ),
    ("anthropic", "the_longest_answer_is_named", {**GOOD["anthropic"], "max_tokens": None}),
    ("anthropic", "blocks_have_known_fields", with_results({**RESULT, "parsed_output": 1})),
    ("anthropic", "texts_are_not_empty", with_results({**RESULT, "content": [{"type": "text", "text": ""}]})),
    ("anthropic", "results_follow_their_calls", with_results({"type": "text", "text": "No."})),
    ("anthropic", "results_follow_their_calls", with_results({"type": "text", "text": "First."}, RESULT)),
    ("anthropic", "sources_are_images_and_pdfs", with_results({**RESULT, "content": [block("image/bmp")]})),
    ("anthropic", "sources_are_images_and_pdfs", with_results({**RESULT, "content": [block(data="no!")]})),
    ("anthropic", "sources_are_images_and_pdfs", with_results({**RESULT, "content": [block(data="PGh0bWw+")]})),
    ("gemini", "roles_are_user_and_model", with_parts(GEMINI_RESPONSE, role="assistant")),
    ("gemini", "every_function_call_has_its_response", with_parts({"text": "No."})),
    ("gemini", "responses_are_objects", with_parts({"functionResponse": {"name": "read", "response": "text"}})),
    (
        "gemini",
        "inline_data_is_base64",
        with_parts(GEMINI_RESPONSE, {"inlineData": {"mimeType": "image/png", "data": "no!"}}),
    ),
]


@pytest.mark.parametrize("style", STYLES)
def test_a_good_request_breaks_no_rule(style: str) -> None:
    assert broken_rules(style, GOOD[style]) == []


@pytest.mark.parametrize(("style", "rule", "request_body"), BROKEN)
def test_what_breaks_a_rule_is_refused_by_its_name(style: str, rule: str, request_body: JSON) -> None:
    assert any(problem.startswith(f"{rule}: ") for problem in broken_rules(style, request_body))


def test_every_rule_has_a_request_that_breaks_it() -> None:
    assert {(style, rule) for style, rule, _ in BROKEN} == {(each.style, each.name) for each in RULES}

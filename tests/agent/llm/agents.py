"""Agents with each SDK: a request without tools, and the same with an office. `test_sdks.py` counts what it takes."""

# ruff: noqa: RET504 - the two kinds differ by the lines that an office takes, and by nothing else

from typing import Any

from a2c_smcp.agent.llm import office_tools, run_tool_calls

MODEL = "a-model"


# --- OpenAI's chat completions, of OpenAI or of any compatible service


async def openai_without(client: Any, messages: list[Any]) -> Any:
    reply = await client.chat.completions.create(
        model=MODEL,
        messages=messages,
    )
    return reply


async def openai_with(client: Any, messages: list[Any], agent: Any) -> Any:
    while True:
        reply = await client.chat.completions.create(
            model=MODEL,
            messages=messages,
            tools=await office_tools(agent, "openai"),
        )
        if not (more := await run_tool_calls(agent, reply)):
            return reply
        messages += more


# --- OpenAI's responses


async def responses_without(client: Any, messages: list[Any]) -> Any:
    reply = await client.responses.create(
        model=MODEL,
        input=messages,
    )
    return reply


async def responses_with(client: Any, messages: list[Any], agent: Any) -> Any:
    while True:
        reply = await client.responses.create(
            model=MODEL,
            input=messages,
            tools=await office_tools(agent, "openai-responses"),
        )
        if not (more := await run_tool_calls(agent, reply)):
            return reply
        messages += more


# --- Anthropic's messages


async def anthropic_without(client: Any, messages: list[Any]) -> Any:
    reply = await client.messages.create(
        model=MODEL,
        max_tokens=1000,
        messages=messages,
    )
    return reply


async def anthropic_with(client: Any, messages: list[Any], agent: Any) -> Any:
    while True:
        reply = await client.messages.create(
            model=MODEL,
            max_tokens=1000,
            messages=messages,
            tools=await office_tools(agent, "anthropic"),
        )
        if not (more := await run_tool_calls(agent, reply)):
            return reply
        messages += more


# --- Gemini, with google-genai


async def gemini_without(client: Any, messages: list[Any]) -> Any:
    reply = await client.aio.models.generate_content(
        model=MODEL,
        contents=messages,
    )
    return reply


async def gemini_with(client: Any, messages: list[Any], agent: Any) -> Any:
    while True:
        reply = await client.aio.models.generate_content(
            model=MODEL,
            contents=messages,
            config={"tools": [{"function_declarations": await office_tools(agent, "gemini")}]},
        )
        if not (more := await run_tool_calls(agent, reply)):
            return reply
        messages += more

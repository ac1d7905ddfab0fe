"""Tools and a prompt of 2026-07-28 that ask before they answer, as MCP's conformance suite wants them."""

from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

__all__ = ["ASKING_TOOLS", "PROMPT", "asking_prompt"]

Ctx = ServerRequestContext[Any, Any]
Asked = types.CallToolResult | types.InputRequiredResult
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
PROMPT = "test_input_required_result_prompt"


def text(said: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=said)])


def form(message: str, **properties: str) -> types.ElicitRequest:
    schema = {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": list(properties),
    }
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sample(said: str) -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=said))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=50))


NAME = form("What is your name?", name="string")
CONFIRM = form("Please confirm", ok="boolean")
ROOTS = types.ListRootsRequest()


def answers(params: Any, *keys: str) -> dict[str, Any] | None:
    """The answers of a request, if it has them all."""
    given: dict[str, Any] = params.input_responses or {}
    return given if all(key in given for key in keys) else None


def ask(requests: dict[str, Any], state: str | None = None) -> types.InputRequiredResult:
    return types.InputRequiredResult(input_requests=requests, request_state=state)


async def elicitation(ctx: Ctx, params: Any) -> Asked:
    if (given := answers(params, "user_name")) is None:
        return ask({"user_name": NAME})
    return text(f"Hello, {(given['user_name'].content or {}).get('name')}!")


async def sampling(ctx: Ctx, params: Any) -> Asked:
    return ask({"capital": sample("Capital of France?")}) if answers(params, "capital") is None else text("Paris")


async def list_roots(ctx: Ctx, params: Any) -> Asked:
    return ask({"client_roots": ROOTS}) if answers(params, "client_roots") is None else text("one root")


async def request_state(ctx: Ctx, params: Any) -> Asked:
    if answers(params, "confirm") is None:
        return ask({"confirm": CONFIRM}, "the state")
    if params.request_state != "the state":
        raise MCPError(types.INVALID_PARAMS, "this is not the state")
    return text("state-ok")


async def multiple(ctx: Ctx, params: Any) -> Asked:
    if answers(params, "user_name", "greeting", "client_roots") is None:
        return ask({"user_name": NAME, "greeting": sample("Generate a greeting"), "client_roots": ROOTS}, "all")
    return text("all answered")


async def multi_round(ctx: Ctx, params: Any) -> Asked:
    if params.request_state == "round 2" and answers(params, "step2") is not None:
        return text("both answered")
    if params.request_state == "round 1" and answers(params, "step1") is not None:
        return ask({"step2": form("Step 2: What is your favorite color?", color="string")}, "round 2")
    return ask({"step1": form("Step 1: What is your name?", name="string")}, "round 1")


async def capabilities(ctx: Ctx, params: Any) -> Asked:
    can = ctx.session.client_capabilities
    requests: dict[str, Any] = {}
    if can is not None and can.sampling is not None:
        requests["sampled"] = sample("Anything")
    if can is not None and can.elicitation is not None:
        requests["user_name"] = NAME
    return ask(requests) if requests and answers(params, *requests) is None else text("nothing to ask")


async def missing_capability(ctx: Ctx, params: Any) -> Asked:
    can = ctx.session.client_capabilities
    if can is None or can.sampling is None:
        needed: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "this tool needs sampling", needed)
    return text("sampling can be asked for")


async def plain(ctx: Ctx, params: Any) -> Asked:
    return text("done")


HEADER = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    "required": ["region"],
}
Tool = Callable[[Ctx, Any], Awaitable[Asked]]
ASKING_TOOLS: dict[str, tuple[Tool, dict[str, Any]]] = {
    "test_input_required_result_elicitation": (elicitation, NOTHING),
    "test_input_required_result_sampling": (sampling, NOTHING),
    "test_input_required_result_list_roots": (list_roots, NOTHING),
    "test_input_required_result_request_state": (request_state, NOTHING),
    "test_input_required_result_multiple_inputs": (multiple, NOTHING),
    "test_input_required_result_multi_round": (multi_round, NOTHING),
    "test_input_required_result_tampered_state": (request_state, NOTHING),
    "test_input_required_result_capabilities": (capabilities, NOTHING),
    "test_missing_capability": (missing_capability, NOTHING),
    "test_streaming_elicitation": (elicitation, NOTHING),
    "test_logging_tool": (plain, NOTHING),
    "test_custom_header": (plain, HEADER),
}


async def asking_prompt(ctx: Ctx, params: Any) -> types.GetPromptResult | types.InputRequiredResult:
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        raise MCPError(types.INVALID_PARAMS, "this prompt needs MCP 2026-07-28")
    if (given := answers(params, "user_context")) is None:
        return ask({"user_context": form("What context should the prompt use?", context="string")})
    said = types.TextContent(type="text", text=f"With {(given['user_context'].content or {}).get('context')}")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=said)])

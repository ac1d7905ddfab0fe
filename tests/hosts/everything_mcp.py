"""An MCP server with one of everything that MCP's conformance suite asks for, and what MCP has beyond that.

Over stdio for a computer, or with `http` over streamable HTTP, where it prints its address. Built on mcp's own server.
"""

import asyncio
import base64
import contextlib
import json
import sys
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.hosts.asking import ASKING_TOOLS, PROMPT, Asked, asking_prompt

warnings.simplefilter("ignore")  # sampling and logging are deprecated; the suite's old part asks for them

Ctx = ServerRequestContext[Any, Any]

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
ICON = types.Icon(src=f"data:image/png;base64,{PNG}", mime_type="image/png", sizes=["1x1"])
BIG = bytes(range(256)) * 4096 * 14
"""A blob of 14 MiB: as base64 it is more than one message of the office holds."""

#: What clients of the tests send in their `_meta`.
PASSED = ("traceparent", "com.example/x")

subscribed: dict[str, Any] = {}
waits: list[Any] = []


def text(said: str) -> types.TextContent:
    return types.TextContent(type="text", text=said)


def result(*content: types.ContentBlock, **more: Any) -> types.CallToolResult:
    return types.CallToolResult(content=list(content), **more)


def embedded(uri: str, said: str, mime_type: str = "text/plain") -> types.EmbeddedResource:
    return types.EmbeddedResource(
        type="resource", resource=types.TextResourceContents(uri=uri, mime_type=mime_type, text=said)
    )


# --- tools


async def simple_text(ctx: Ctx, arguments: dict[str, Any]) -> types.CallToolResult:
    return result(text("This is a simple text response for testing."))


async def image(ctx: Ctx, arguments: dict[str, Any]) -> types.CallToolResult:
    return result(types.ImageContent(type="image", data=PNG, mime_type="image/png"))


async def audio(ctx: Ctx, arguments: dict[str, Any]) -> types.CallToolResult:
    return result(types.AudioContent(type="audio", data=WAV, mime_type="audio/wav"))


async def embedded_resource(ctx: Ctx, arguments: dict[str, Any]) -> types.CallToolResult:
    return result(embedded("test://embedded-resource", "This is an embedded resource content."))


async def mixed(ctx: Ctx, arguments: dict[str, Any]) -> types.CallToolResult:
    return result(
        text("Multiple content types test:"),
        types.ImageContent(type="image", data=PNG, mime_type="image/png"),
        embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
    )


async def logging_tool(ctx: Ctx, arguments: dict[str, Any]) -> types.CallToolResult:
    for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.session.send_log_message("info", said, related_request_id=ctx.request_id)
        await asyncio.sleep(0.05)
    return result(text("Tool with logging executed successfully"))


async def error(ctx: Ctx, arguments: dict[str, Any]) -> types.CallToolResult:
    return result(text("This tool intentionally returns an error for testing"), is_error=True)


async def progress(ctx: Ctx, arguments: dict[str, Any]) -> types.CallToolResult:
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100, f"Completed step {done} of 100")
        await asyncio.sleep(0.05)
    return result(text(str((ctx.meta or {}).get("progress_token"))))


async def sampling(ctx: Ctx, arguments: dict[str, Any]) -> types.CallToolResult:
    message = types.SamplingMessage(role="user", content=text(arguments["prompt"]))
    answer = await ctx.session.create_message([message], max_tokens=100, related_request_id=ctx.request_id)
    return result(text(f"LLM response: {answer.content}"))


USER = {
    "type": "object",
    "properties": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    },
    "required": ["username", "email"],
}
DEFAULTS = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
    "required": [],
}
THREE = ["option1", "option2", "option3"]
TITLED = [{"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(("First", "Second", "Third"), 1)]
ENUMS = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": THREE},
        "titledSingle": {"type": "string", "oneOf": TITLED},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": THREE}},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    },
    "required": [],
}


async def asked(ctx: Ctx, message: str, schema: dict[str, Any], start: str) -> types.CallToolResult:
    answer = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
    return result(text(f"{start}: action={answer.action}, content={json.dumps(answer.content or {})}"))


async def elicitation(ctx: Ctx, arguments: dict[str, Any]) -> types.CallToolResult:
    return await asked(ctx, arguments["message"], USER, "User response")


async def elicitation_defaults(ctx: Ctx, arguments: dict[str, Any]) -> types.CallToolResult:
    return await asked(ctx, "Please review", DEFAULTS, "Elicitation completed")


async def elicitation_enums(ctx: Ctx, arguments: dict[str, Any]) -> types.CallToolResult:
    return await asked(ctx, "Please choose", ENUMS, "Elicitation completed")


async def schema_tool(ctx: Ctx, arguments: dict[str, Any]) -> types.CallToolResult:
    return result(text(json.dumps(arguments)), structured_content=arguments)


async def change(ctx: Ctx, arguments: dict[str, Any]) -> types.CallToolResult:
    """Tells the client that subscribed that a resource has changed."""
    if (session := subscribed.get(arguments["uri"])) is not None:
        await session.send_resource_updated(arguments["uri"])
    return result(text("changed"))


async def wait(ctx: Ctx, arguments: dict[str, Any]) -> types.CallToolResult:
    waits.append(ctx.request_id)
    try:
        await asyncio.sleep(600)
    finally:
        waits.remove(ctx.request_id)
    return result(text("waited"))


async def waiting(ctx: Ctx, arguments: dict[str, Any]) -> types.CallToolResult:
    """How many calls wait."""
    return result(text(str(len(waits))))


async def roots(ctx: Ctx, arguments: dict[str, Any]) -> types.CallToolResult:
    capabilities = ctx.session.client_capabilities
    return result(text("asked" if capabilities is not None and capabilities.roots is not None else "cannot"))


async def links(ctx: Ctx, arguments: dict[str, Any]) -> types.CallToolResult:
    """A link to a resource that no list has, and `_meta` everywhere."""
    link = types.ResourceLink(
        type="resource_link", uri="test://hidden/report", name="report", title="A report", icons=[ICON], _meta={"l": 1}
    )
    said = types.TextContent(
        type="text",
        text=json.dumps({key: value for key, value in sorted((ctx.meta or {}).items()) if key in PASSED}),
        annotations=types.Annotations(audience=["user"], priority=0.5),
        _meta={"c": {"deep": [1]}},
    )
    return result(link, said, _meta={"com.example/result": {"r": 1}}, structured_content={"a": 1})


SCHEMA_2020 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
APP = "ui://everything/app.html"


def one(name: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}


Tool = Callable[[Ctx, dict[str, Any]], Awaitable[types.CallToolResult]]
TOOLS: dict[str, tuple[Tool, str, dict[str, Any], dict[str, Any]]] = {
    "test_simple_text": (simple_text, "Returns a text", NOTHING, {"title": "A simple text", "icons": [ICON]}),
    "test_image_content": (image, "Returns an image", NOTHING, {}),
    "test_audio_content": (audio, "Returns audio", NOTHING, {}),
    "test_embedded_resource": (embedded_resource, "Returns a resource", NOTHING, {}),
    "test_multiple_content_types": (mixed, "Returns several", NOTHING, {}),
    "test_tool_with_logging": (logging_tool, "Logs", NOTHING, {}),
    "test_error_handling": (error, "Fails", NOTHING, {}),
    "test_tool_with_progress": (progress, "Reports progress", NOTHING, {}),
    "test_sampling": (sampling, "Samples", one("prompt"), {}),
    "test_elicitation": (elicitation, "Asks", one("message"), {}),
    "test_elicitation_sep1034_defaults": (elicitation_defaults, "Asks with defaults", NOTHING, {}),
    "test_elicitation_sep1330_enums": (elicitation_enums, "Asks with enums", NOTHING, {}),
    "json_schema_2020_12_tool": (schema_tool, "Tool with JSON Schema 2020-12 features", SCHEMA_2020, {}),
    "test_reconnection": (simple_text, "Would close its stream", NOTHING, {}),
    "wait": (wait, "Waits", NOTHING, {}),
    "waiting": (waiting, "How many wait", NOTHING, {}),
    "roots": (roots, "Whether it can ask for roots", NOTHING, {}),
    "change": (change, "Changes a resource", one("uri"), {}),
    "links": (
        links,
        "Links and `_meta`",
        NOTHING,
        {
            "_meta": {"ui": {"resourceUri": APP, "visibility": ["model", "app"]}, "com.example/deep": {"a": [1, {}]}},
            "output_schema": {"type": "object", "properties": {"a": {"type": "integer"}}},
            "annotations": types.ToolAnnotations(title="Annotated", read_only_hint=True),
        },
    ),
}


def asks(ctx: Ctx) -> bool:
    """Whether the client knows answers that ask."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


async def list_tools(ctx: Ctx, params: Any) -> types.ListToolsResult:
    tools = [
        types.Tool(name=name, description=description, input_schema=schema, **more)
        for name, (_, description, schema, more) in TOOLS.items()
    ]
    if asks(ctx):
        tools += [
            types.Tool(name=name, description="Asks", input_schema=each[1]) for name, each in ASKING_TOOLS.items()
        ]
    return types.ListToolsResult(tools=tools)


async def call_tool(ctx: Ctx, params: types.CallToolRequestParams) -> Asked:
    if params.name in ASKING_TOOLS and asks(ctx):
        return await ASKING_TOOLS[params.name][0](ctx, params)
    if params.name not in TOOLS:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
    return await TOOLS[params.name][0](ctx, params.arguments or {})


# --- resources

RESOURCES = [
    types.Resource(uri="test://static-text", name="static-text", description="A static text", mime_type="text/plain"),
    types.Resource(
        uri="test://static-binary",
        name="static-binary",
        title="A picture",
        description="A static picture",
        mime_type="image/png",
        icons=[ICON],
        size=70,
        annotations=types.Annotations(audience=["user"], priority=0.5),
        _meta={"com.example/r": {"a": 1}},
    ),
    types.Resource(uri="test://watched-resource", name="watched", description="It changes", mime_type="text/plain"),
    types.Resource(uri="test://big", name="big", description="14 MiB", mime_type="application/octet-stream"),
    types.Resource(
        uri=APP,
        name="app",
        description="An app",
        mime_type="text/html;profile=mcp-app",
        _meta={"ui": {"csp": {"connectDomains": ["https://example.com"]}}},
    ),
]
TEMPLATE = types.ResourceTemplate(
    name="data",
    title="Data",
    uri_template="test://template/{id}/data",
    description="Data by its id",
    mime_type="application/json",
    icons=[ICON],
    _meta={"t": 1},
)


async def list_resources(ctx: Ctx, params: Any) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=RESOURCES)


async def list_templates(ctx: Ctx, params: Any) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=[TEMPLATE])


async def read_resource(ctx: Ctx, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    uri = params.uri
    found: types.TextResourceContents | types.BlobResourceContents
    if uri == "test://static-text":
        said = "This is the content of the static text resource."
        found = types.TextResourceContents(uri=uri, mime_type="text/plain", text=said)
    elif uri == "test://static-binary":
        found = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG, _meta={"b": [1]})
    elif uri == "test://big":
        blob = base64.b64encode(BIG).decode()
        found = types.BlobResourceContents(uri=uri, mime_type="application/octet-stream", blob=blob)
    elif uri.startswith("test://template/") and uri.endswith("/data"):
        number = uri.removeprefix("test://template/").removesuffix("/data")
        data = {"id": number, "templateTest": True, "data": f"Data for ID: {number}"}
        found = types.TextResourceContents(uri=uri, mime_type="application/json", text=json.dumps(data))
    elif uri == APP:
        csp: dict[str, Any] = {"ui": {"csp": {"connectDomains": ["https://example.com"]}}}
        page = "<!doctype html><title>app</title>"
        found = types.TextResourceContents(uri=uri, mime_type="text/html;profile=mcp-app", text=page, _meta=csp)
    elif uri in ("test://watched-resource", "test://hidden/report"):
        found = types.TextResourceContents(uri=uri, mime_type="text/plain", text=f"The text of {uri}")
    else:
        raise MCPError(-32002, f"Resource not found: {uri}", {"uri": uri})
    return types.ReadResourceResult(contents=[found], _meta={"com.example/read": {"traced": ctx_trace(ctx)}})


def ctx_trace(ctx: Ctx) -> Any:
    return (ctx.meta or {}).get("traceparent")


async def subscribe(ctx: Ctx, params: types.SubscribeRequestParams) -> types.EmptyResult:
    subscribed[params.uri] = ctx.session
    return types.EmptyResult()


async def unsubscribe(ctx: Ctx, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    subscribed.pop(params.uri, None)
    return types.EmptyResult()


# --- prompts

PROMPTS = [
    types.Prompt(
        name="test_simple_prompt", description="A simple prompt", title="Simple", icons=[ICON], _meta={"p": 1}
    ),
    types.Prompt(
        name="test_prompt_with_arguments",
        description="A prompt with arguments",
        arguments=[
            types.PromptArgument(name="arg1", description="First test argument", required=True),
            types.PromptArgument(name="arg2", description="Second test argument", required=True),
        ],
    ),
    types.Prompt(
        name="test_prompt_with_embedded_resource",
        description="A prompt with a resource",
        arguments=[types.PromptArgument(name="resourceUri", description="Which", required=True)],
    ),
    types.Prompt(name="test_prompt_with_image", description="A prompt with an image"),
]


def user(content: types.ContentBlock) -> types.PromptMessage:
    return types.PromptMessage(role="user", content=content)


async def list_prompts(ctx: Ctx, params: Any) -> types.ListPromptsResult:
    asking = [types.Prompt(name=PROMPT, description="Asks")] if asks(ctx) else []
    return types.ListPromptsResult(prompts=PROMPTS + asking)


async def get_prompt(
    ctx: Ctx, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    if params.name == PROMPT:
        return await asking_prompt(ctx, params)
    given = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            messages = [user(text("This is a simple prompt for testing."))]
        case "test_prompt_with_arguments":
            messages = [user(text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"))]
        case "test_prompt_with_embedded_resource":
            shown = embedded(given["resourceUri"], "Embedded resource content for testing.")
            messages = [user(shown), user(text("Please process the embedded resource above."))]
        case "test_prompt_with_image":
            picture = types.ImageContent(type="image", data=PNG, mime_type="image/png", _meta={"i": 1})
            messages = [user(picture), user(text("Please analyze the image above."))]
        case _:
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
    return types.GetPromptResult(messages=messages, description=params.name, _meta={"com.example/g": 1})


async def complete(ctx: Ctx, params: types.CompleteRequestParams) -> types.CompleteResult:
    typed = params.argument.value
    words = ["paris", "park", "party"] if isinstance(params.ref, types.PromptReference) else ["123", "124"]
    values = [word for word in words if word.startswith(typed)]
    return types.CompleteResult(completion=types.Completion(values=values, total=150, has_more=False))


async def set_level(ctx: Ctx, params: types.SetLevelRequestParams) -> types.EmptyResult:
    return types.EmptyResult()


# --- serving

server: Server[Any] = Server(
    "everything",
    version="1.0",
    title="One of everything",
    instructions="Use test_simple_text for texts.",
    icons=[ICON],
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_list_resource_templates=list_templates,
    on_read_resource=read_resource,
    on_subscribe_resource=subscribe,
    on_unsubscribe_resource=unsubscribe,
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
    on_completion=complete,
    on_set_logging_level=set_level,
)


async def over_stdio() -> None:
    changes = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options(changes))


async def over_http() -> None:
    hosts = ["127.0.0.1:*", "localhost:*"]
    security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts])
    manager = StreamableHTTPSessionManager(server, security_settings=security)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with manager.run():
            yield

    app = Starlette(routes=[Mount("/mcp", manager.handle_request)], lifespan=lifespan)
    config = uvicorn.Config(app, port=0, log_level="error", timeout_graceful_shutdown=1)
    runner = uvicorn.Server(config)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runner.serve)
        while not runner.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await anyio.sleep(0.01)
        port = runner.servers[0].sockets[0].getsockname()[1]
        print(f"http://127.0.0.1:{port}/mcp/", flush=True)


if __name__ == "__main__":
    anyio.run(over_http if sys.argv[1:] == ["http"] else over_stdio)

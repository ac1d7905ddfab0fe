"""What of MCP passes through an office of several computers: each feature with a check, and the table for people."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

import mcp_types as types
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from tests.hosts.everything import TRACED
from tests.mcp_server.clients import Listening, eventually, watching

WATCHED = "a2c://pc/test/watched-resource"


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of MCP: its name for people, since when it passes, and how to see whether it does."""

    name: str
    since: str
    passes: Callable[[Client, Listening], Awaitable[bool]]
    remark: str = ""


async def _tool(client: Client, name: str = "pc__links") -> types.Tool:
    return next(tool for tool in (await client.list_tools()).tools if tool.name == name)


async def tools(client: Client, _: Listening) -> bool:
    result = await client.call_tool("pc__test_multiple_content_types", {})
    failed = await client.call_tool("pc__test_error_handling", {})
    return [item.type for item in result.content] == ["text", "image", "resource"] and bool(failed.is_error)


async def structured(client: Client, _: Listening) -> bool:
    result = await client.call_tool("pc__links", {})
    return (await _tool(client)).output_schema is not None and result.structured_content == {"a": 1}


async def titles(client: Client, _: Listening) -> bool:
    tool, annotated = await _tool(client, "pc__test_simple_text"), await _tool(client)
    read_only = annotated.annotations is not None and annotated.annotations.read_only_hint
    return tool.title == "A simple text (pc)" and bool(tool.icons) and bool(read_only)


async def progress(client: Client, _: Listening) -> bool:
    heard: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    await client.call_tool("pc__test_tool_with_progress", {}, progress_callback=hear)
    return heard == [0, 50, 100]


async def cancellation(client: Client, _: Listening) -> bool:
    call = asyncio.create_task(client.call_tool("pc__wait", {}))
    await eventually(lambda: _waits(client, 1))
    call.cancel()
    with suppress(asyncio.CancelledError):
        await call
    await eventually(lambda: _waits(client, 0))
    return True


async def _waits(client: Client, number: int) -> bool:
    [item] = (await client.call_tool("pc__waiting", {})).content
    return isinstance(item, types.TextContent) and item.text == str(number)


async def meta(client: Client, _: Listening) -> bool:
    result = await client.call_tool("pc__links", {}, meta=TRACED)
    text = next(item for item in result.content if isinstance(item, types.TextContent))
    asked = TRACED["traceparent"] in text.text
    listed = ((await _tool(client)).meta or {}).get("com.example/deep") == {"a": [1, {}]}
    return asked and listed and text.meta == {"c": {"deep": [1]}} and "com.example/result" in (result.meta or {})


async def resources(client: Client, _: Listening) -> bool:
    listed = {each.uri: each for each in (await client.list_resources()).resources}
    [text] = (await client.read_resource("a2c://pc/test/static-text")).contents
    [blob] = (await client.read_resource("a2c://pc/test/static-binary")).contents
    kinds = isinstance(text, types.TextResourceContents) and isinstance(blob, types.BlobResourceContents)
    return kinds and listed["a2c://pc/test/static-binary"].title == "A picture (pc)"


async def templates(client: Client, _: Listening) -> bool:
    template = "a2c://pc/test/template/{id}/data"
    listed = [each.uri_template for each in (await client.list_resource_templates()).resource_templates]
    [found] = (await client.read_resource(template.replace("{id}", "5"))).contents
    ref = types.ResourceTemplateReference(type="ref/resource", uri=template)
    values = (await client.complete(ref, {"name": "id", "value": "12"})).completion.values
    is_read = isinstance(found, types.TextResourceContents) and "Data for ID: 5" in found.text
    return template in listed and is_read and values == ["123", "124"]


async def subscriptions(client: Client, listening: Listening) -> bool:
    async with watching(client, listening, WATCHED):

        async def is_heard() -> bool:
            await client.call_tool("pc__change", {"uri": "test://watched-resource"})
            return WATCHED in listening.heard

        await eventually(is_heard)
    return True


async def links(client: Client, _: Listening) -> bool:
    link = (await client.call_tool("pc__links", {})).content[0]
    assert isinstance(link, types.ResourceLink)
    [found] = (await client.read_resource(link.uri)).contents
    return isinstance(found, types.TextResourceContents) and found.text == "The text of test://hidden/report"


async def prompts(client: Client, _: Listening) -> bool:
    name = "pc__test_prompt_with_arguments"
    listed = next(each for each in (await client.list_prompts()).prompts if each.name == name)
    given = await client.get_prompt(name, {"arg1": "a", "arg2": "b"})
    ref = types.PromptReference(type="ref/prompt", name=name)
    values = (await client.complete(ref, {"name": "arg1", "value": "par"})).completion.values
    content = given.messages[0].content
    is_given = isinstance(content, types.TextContent) and "arg1='a', arg2='b'" in content.text
    return len(listed.arguments or ()) == 2 and is_given and values == ["paris", "park", "party"]


async def instructions(client: Client, _: Listening) -> bool:
    return "Use test_simple_text for texts." in (client.instructions or "")


async def apps(client: Client, _: Listening) -> bool:
    ui = ((await _tool(client)).meta or {})["ui"]
    [page] = (await client.read_resource(ui["resourceUri"])).contents
    has_rights = (page.meta or {}).get("ui") == {"csp": {"connectDomains": ["https://example.com"]}}
    return page.mime_type == "text/html;profile=mcp-app" and has_rights


async def questions(client: Client, _: Listening) -> bool:
    [item] = (await client.call_tool("pc__test_elicitation", {"message": "Who?"})).content
    return isinstance(item, types.TextContent) and '"username": "ada"' in item.text


async def sampling(client: Client, _: Listening) -> bool:
    return not (await client.call_tool("pc__test_sampling", {"prompt": "x"})).is_error


async def levels(client: Client, _: Listening) -> bool:
    request = types.SetLevelRequest(params=types.SetLevelRequestParams(level="info"))
    try:
        await client.session.send_request(request, types.EmptyResult)
    except (MCPError, ValueError):
        return False
    return True


async def roots(client: Client, _: Listening) -> bool:
    [item] = (await client.call_tool("pc__roots", {})).content
    return isinstance(item, types.TextContent) and item.text == "asked"


_DEPRECATED = "MCP has deprecated it (2026-07-28)"
FEATURES = (
    Feature("Tools: texts, images, audio, embedded resources, errors", "0.2", tools),
    Feature("Structured content, output schemas", "0.2", structured),
    Feature("Progress, from the first report on", "0.2", progress),
    Feature("Cancellation, at the tool", "0.2", cancellation),
    Feature("Titles, icons and annotations of tools", "next", titles),
    Feature("`_meta` of tools, requests, results and content; `traceparent`", "next", meta),
    Feature("Resources: lists, texts, blobs", "next", resources, "where the computer says `share: all`"),
    Feature("Resource templates with completion", "next", templates),
    Feature("Subscriptions, changed lists", "next", subscriptions),
    Feature("Links in results", "next", links, "for ten minutes"),
    Feature("Prompts with arguments and completion", "next", prompts, "where the computer says `share: all`"),
    Feature("Instructions of MCP servers", "next", instructions),
    Feature("MCP Apps (`ui://`)", "next", apps),
    Feature("Questions to the person at the host (elicitation)", "next", questions, "where the computer allows it"),
    Feature("Sampling", "", sampling, _DEPRECATED),
    Feature("Roots", "", roots, _DEPRECATED),
    Feature("Logging levels", "", levels, _DEPRECATED),
)


async def table(client: Client, listening: Listening) -> str:
    """The table, as it is found to be now."""
    lines = ["| feature | passes | since | |", "| --- | --- | --- | --- |"]
    for each in FEATURES:
        passes = await each.passes(client, listening)
        lines.append(f"| {each.name} | {'yes' if passes else 'no'} | {each.since if passes else ''} | {each.remark} |")
    return "\n".join(lines) + "\n"

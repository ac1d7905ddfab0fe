"""A server of documents on mcp's own low-level server, over stdio, in both eras: all four levels in every format.

Its tools change what it has: `put` (doc_ref, title) adds or changes a document, `remove` (doc_ref) takes one away.
"""

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
)
from mcp.shared.exceptions import MCPError

from a2c_smcp.computer.utils.dpe_uri import ParsedDPEUri, build_dpe_uri, page_uri, try_parse_dpe_uri

HOST = "com.example.docs"


def element(element_id: str, category: str, summary: str, **content: Any) -> dict[str, Any]:
    return {"element_id": element_id, "category": category, "summary": summary, "content": content}


PAGES: list[dict[str, Any]] = [
    {
        "title": "Overview",
        "elements": [
            element("h1", "heading", "Overview", text="Overview", level=1),
            element("p1", "text", "What it is about", text="Sales went up."),
            element("l1", "list", "Two points", items=["north", "south"], ordered=False),
            element("i1", "image", "A map", alt="map", url="https://example.com/map.png"),
            element("a/1", "annotation", "A remark", text="see below"),
        ],
    },
    {
        "title": "Figures",
        "elements": [
            element("t1", "table", "Sales by quarter", header=["quarter", "sales"], rows=[["Q1", 10], ["Q2", 12]]),
            element("c1", "chart", "Sales", title="Sales", data_summary="rising"),
            element("f1", "formula", "Growth", latex="g = 1.2"),
            element("k1", "code", "A query", text="select 1", language="sql"),
            element("u1", "link", "More", text="more", url="https://example.com"),
        ],
    },
]


def document(doc_ref: str, title: str, modified: str) -> dict[str, Any]:
    return {
        "doc_ref": doc_ref,
        "uri": build_dpe_uri(HOST, doc_ref),
        "file_uri": f"file:///{doc_ref}.xlsx",
        "file_type": "xlsx" if doc_ref == "sales" else "pdf",
        "title": title,
        "page_count": len(PAGES),
        "keywords": [doc_ref, "figures"],
        "summary": f"All about {title}",
        "last_modified": modified,
    }


documents = {
    "sales": document("sales", "Sales 2026", "2026-02-01T00:00:00Z"),
    "plan": document("plan", "The plan", "2026-01-01T00:00:00Z"),
}

# --- what a reading answers


def read_json(uri: ParsedDPEUri) -> dict[str, Any]:
    match uri.level:
        case 0:
            offset, limit = int(uri.query_params.get("offset", 0)), int(uri.query_params.get("limit", 20))
            return {"documents": [*documents.values()][offset : offset + limit], "total_count": len(documents)}
        case 1:
            return find_document(uri) | (page_index(uri) if uri.query_params.get("depth") == "pages" else {})
        case 2:
            page = find_page(uri)
            elements = list(wanted(page["elements"], uri))
            own = build_dpe_uri(HOST, uri.doc_ref, uri.sub_path)
            about = {"page_index": uri.page_index, "title": page["title"], "doc_ref": uri.doc_ref, "uri": own}
            return {**about, "elements": elements, "element_count": len(elements)}
        case _:
            index, found = find_element(uri)
            return {**found, "doc_ref": uri.doc_ref, "page_index": index, "uri": uri.build()}


def find_document(uri: ParsedDPEUri) -> dict[str, Any]:
    if uri.doc_ref not in documents:
        raise MCPError(4201, "Document not found", {"doc_ref": uri.doc_ref})
    return documents[uri.doc_ref]


def find_page(uri: ParsedDPEUri) -> dict[str, Any]:
    find_document(uri)
    index = uri.page_index or 0
    if index >= len(PAGES):
        raise MCPError(4202, "Page out of range", {"page_index": index, "page_count": len(PAGES)})
    return PAGES[index]


def find_element(uri: ParsedDPEUri) -> tuple[int, dict[str, Any]]:
    find_document(uri)
    for index, page in enumerate(PAGES):
        for found in page["elements"]:
            if found["element_id"] == uri.element_id:
                return index, found
    raise MCPError(4203, "Element not found", {"element_id": uri.element_id})


def wanted(elements: Iterable[dict[str, Any]], uri: ParsedDPEUri) -> Iterable[dict[str, Any]]:
    categories = uri.query_params.get("categories")
    return [found for found in elements if categories is None or found["category"] in categories.split(",")]


def page_index(uri: ParsedDPEUri) -> dict[str, Any]:
    own = build_dpe_uri(HOST, uri.doc_ref)
    offset, limit = int(uri.query_params.get("offset", 0)), int(uri.query_params.get("limit", 20))
    pages = [
        {
            "page_index": index,
            "title": page["title"],
            "element_count": len(page["elements"]),
            "uri": page_uri(own, index),
            "doc_ref": uri.doc_ref,
        }
        for index, page in enumerate(PAGES)
    ]
    return {
        "pages": pages[offset : offset + limit],
        "page_offset": offset,
        "page_limit": limit,
        "page_total": len(pages),
    }


# --- the same for people

MARKDOWN: dict[str, Callable[[dict[str, Any]], str]] = {
    "heading": lambda content: f"{'#' * content['level']} {content['text']}",
    "text": lambda content: str(content["text"]),
    "list": lambda content: "\n".join(f"- {item}" for item in content["items"]),
    "image": lambda content: f"![{content['alt']}]({content['url']})",
    "table": lambda content: "\n".join(
        f"| {' | '.join(map(str, row))} |"
        for row in (content["header"], ["---"] * len(content["header"]), *content["rows"])
    ),
    "chart": lambda content: f"[图表: {content['title']}] {content['data_summary']}",
    "formula": lambda content: f"$ {content['latex']} $",
    "code": lambda content: f"```{content['language']}\n{content['text']}\n```",
    "link": lambda content: f"[{content['text']}]({content['url']})",
}


def markdown(found: dict[str, Any]) -> str:
    render = MARKDOWN.get(found["category"])
    return render(found["content"]) if render else f"[{found['category']}: {found['summary']}]"


def plain(found: dict[str, Any]) -> str:
    content = found["content"]
    match found["category"]:
        case "list":
            return "\n".join(content["items"])
        case "table":
            return "\n".join("\t".join(map(str, row)) for row in (content["header"], *content["rows"]))
        case _:
            return str(content.get("text") or content.get("latex") or content.get("data_summary") or found["summary"])


def read_for_people(uri: ParsedDPEUri, heading: str, render: Callable[[dict[str, Any]], str]) -> str:
    match uri.level:
        case 0:
            return "\n".join(found["title"] for found in documents.values())
        case 1:
            found = find_document(uri)
            return f"{heading}{found['title']}\n\n{found['summary']}"
        case 2:
            return "\n\n".join(map(render, wanted(find_page(uri)["elements"], uri)))
        case _:
            return render(find_element(uri)[1])


def read_text(uri: ParsedDPEUri) -> tuple[str, str]:
    match uri.query_params.get("format", "json"):
        case "markdown":
            return read_for_people(uri, "# ", markdown), "text/markdown"
        case "text":
            return read_for_people(uri, "", plain), "text/plain"
        case _:
            return json.dumps(read_json(uri), ensure_ascii=False), "application/json"


# --- the MCP server

bus = InMemorySubscriptionBus()
sessions: dict[int, Any] = {}
subscribed: set[str] = set()


async def announce(event: ServerEvent) -> None:
    await bus.publish(event)
    for session in list(sessions.values()):
        with suppress(Exception):  # one of the new era, which hears it by the bus
            if isinstance(event, ResourcesListChanged):
                await session.send_resource_list_changed()
            elif isinstance(event, ResourceUpdated) and event.uri in subscribed:
                await session.send_resource_updated(event.uri)


async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
    sessions[id(ctx.session)] = ctx.session
    return types.ListResourcesResult(
        resources=[types.Resource(uri=found["uri"], name=found["title"]) for found in documents.values()]
    )


async def read_resource(ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    uri = try_parse_dpe_uri(params.uri)
    if uri is None or uri.host != HOST:
        raise MCPError(-32002, "Resource not found")
    text, mime_type = read_text(uri)
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=params.uri, text=text, mime_type=mime_type)]
    )


async def list_templates(ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
    parts = {"page": "pages/{page_index}", "element": "elements/{element_id}"}
    return types.ListResourceTemplatesResult(
        resource_templates=[
            types.ResourceTemplate(name=name, uri_template=f"dpe://{HOST}/{{doc_ref}}/{part}")
            for name, part in parts.items()
        ]
    )


async def complete(ctx: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
    values = {
        "doc_ref": list(documents),
        "page_index": [str(index) for index in range(len(PAGES))],
        "element_id": [found["element_id"] for page in PAGES for found in page["elements"]],
    }.get(params.argument.name, [])
    matching = [value for value in values if value.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=matching))


async def subscribe(ctx: Any, params: types.SubscribeRequestParams) -> types.EmptyResult:
    subscribed.add(params.uri)
    return types.EmptyResult()


async def unsubscribe(ctx: Any, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    subscribed.discard(params.uri)
    return types.EmptyResult()


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(
        tools=[types.Tool(name=name, input_schema={"type": "object"}) for name in ("put", "remove")]
    )


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    arguments = params.arguments or {}
    doc_ref = arguments["doc_ref"]
    if params.name == "remove":
        del documents[doc_ref]
        await announce(ResourcesListChanged())
    else:
        known = doc_ref in documents
        documents[doc_ref] = document(doc_ref, arguments["title"], "2026-03-01T00:00:00Z")
        await announce(ResourceUpdated(build_dpe_uri(HOST, doc_ref)) if known else ResourcesListChanged())
    return types.CallToolResult(content=[types.TextContent(type="text", text="done")])


server: Server[Any] = Server(
    "documents",
    on_list_resources=list_resources,
    on_read_resource=read_resource,
    on_list_resource_templates=list_templates,
    on_completion=complete,
    on_subscribe_resource=subscribe,
    on_unsubscribe_resource=unsubscribe,
    on_subscriptions_listen=ListenHandler(bus),
    on_list_tools=list_tools,
    on_call_tool=call_tool,
)


async def main() -> None:
    async with stdio_server() as (incoming, outgoing):
        options = server.create_initialization_options(NotificationOptions(resources_changed=True))
        await server.run(incoming, outgoing, options)


if __name__ == "__main__":
    anyio.run(main)

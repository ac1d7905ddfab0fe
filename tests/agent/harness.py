"""A computer that a test scripts, and both agents behind one async face."""

import functools
import inspect
import json
from collections.abc import Callable
from typing import Any, TypeAlias

import anyio
import anyio.to_thread

from a2c_smcp.agent import AsyncSMCPAgentClient, SMCPAgentClient
from a2c_smcp.errors import DocumentNotFoundError
from a2c_smcp.link.office_link import OfficeLink
from a2c_smcp.smcp import (
    CANCEL_TOOL_CALL_NOTIFICATION,
    GET_CONFIG_EVENT,
    GET_DESKTOP_EVENT,
    GET_FINDER_EVENT,
    GET_TOOLS_EVENT,
    JOIN_OFFICE_EVENT,
    READ_RESOURCE_EVENT,
    TOOL_CALL_EVENT,
)
from tests.server.harness import AsyncPeer, eventually, heard

DOCUMENT = "dpe://com.example.docs/report"
PAGES = 45


HOLDS_ITSELF: dict[str, Any] = {}
HOLDS_ITSELF["text"] = HOLDS_ITSELF
#: What Python takes for arguments of a tool and JSON does not.
NOT_JSON: list[Any] = [
    "abc",
    5,
    {"text": {1, 2}},
    {"text": b"x"},
    {"text": 10**5000},
    {("a", "b"): 1},
    HOLDS_ITSELF,
]


def a_tool(name: str) -> dict[str, Any]:
    meta = {"a2c_tool_meta": json.dumps({"auto_apply": True, "alias": None, "tags": ["t"], "ret_object_mapper": None})}
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return {"name": name, "description": f"{name}s", "params_schema": schema, "return_schema": None, "meta": meta}


def a_document(title: str = "Report") -> dict[str, Any]:
    return {
        "doc_ref": "report",
        "uri": DOCUMENT,
        "file_uri": "file:///report.pdf",
        "file_type": "pdf",
        "title": title,
        "page_count": PAGES,
        "server": "docs",
    }


class FakeComputer:
    """Answers everything, remembers what it was asked, and changes as a test says."""

    def __init__(self, name: str = "laptop") -> None:
        self.name = name
        self.url = ""
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.tools = [a_tool("echo")]
        self.windows = ["window://h/main\n\nhello"]
        self.documents = [a_document()]
        self.servers: dict[str, Any] = {"s": {"name": "s", "type": "stdio", "disabled": "${input:off}"}}
        self.override: dict[str, Callable[[dict[str, Any]], Any]] = {}
        self.release = anyio.Event()
        self.peer = AsyncPeer()
        self.answers: dict[str, Callable[[dict[str, Any]], Any]] = {
            TOOL_CALL_EVENT: self._call,
            GET_TOOLS_EVENT: lambda _: {"tools": self.tools},
            GET_CONFIG_EVENT: lambda _: {"servers": self.servers, "inputs": None},
            GET_DESKTOP_EVENT: lambda _: {"desktops": self.windows},
            GET_FINDER_EVENT: lambda _: {"documents": self.documents, "total_count": len(self.documents)},
            READ_RESOURCE_EVENT: self._read,
        }
        self.listen()

    def listen(self) -> None:
        """Answer every event that there is an answer for now."""
        for event in self.answers:
            self.peer.answer(event, functools.partial(self._answer, event))

    def requests(self, event: str) -> list[dict[str, Any]]:
        return [data for name, data in self.asked if name == event]

    async def join(self, url: str, office: str, transport: str = "websocket") -> None:
        self.url = url
        if not self.peer.connected:
            await self.peer.connect(url, transports=[transport])
        member = {"role": "computer", "name": self.name, "office_id": office}
        done, reason = await self.peer.call(JOIN_OFFICE_EVENT, member)
        assert done, reason

    async def announce(self, event: str) -> None:
        assert await self.peer.call(event, {"computer": self.name}) == {}

    async def _answer(self, event: str, data: dict[str, Any]) -> Any:
        self.asked.append((event, data))
        reply = self.override.get(event, self.answers[event])(data)
        if inspect.isawaitable(reply):
            reply = await reply
        return reply if event == TOOL_CALL_EVENT else {"req_id": data["req_id"], **reply}

    async def _call(self, data: dict[str, Any]) -> Any:
        match data["tool_name"]:
            case "echo":
                return self.result(data["params"].get("text", ""))
            case "fail":
                return self.result("it broke", isError=True, meta={"error_code": 4003})
            case "slow":
                await eventually(lambda: self.cancelled(data["req_id"]), 30)
                return self.result("Tool call cancelled", isError=True, meta={"a2c_cancelled": True})
            case _:
                await self.release.wait()
                return self.result("released")

    def cancelled(self, req_id: str) -> bool:
        return any(notice["req_id"] == req_id for notice in heard(self.peer, CANCEL_TOOL_CALL_NOTIFICATION))

    @staticmethod
    def result(text: str, **more: Any) -> dict[str, Any]:
        content = [{"type": "text", "text": text}]
        return {"meta": None, "content": content, "structuredContent": None, "isError": False, **more}

    def _read(self, data: dict[str, Any]) -> Any:
        uri: str = data["uri"]
        path, _, query = uri.partition("?")
        params = dict(pair.split("=") for pair in query.split("&") if pair)
        if not path.startswith(DOCUMENT):
            return DocumentNotFoundError("nothing").payload()
        value: Any = {"uri": path}
        if params.get("depth") == "pages":
            offset, limit = int(params.get("offset", 0)), int(params.get("limit", 20))
            value["pages"] = [
                {"page_index": n, "title": f"p{n}", "element_count": 1, "uri": f"{path}/pages/{n}"}
                for n in range(offset, min(offset + limit, PAGES))
            ]
            value |= {"page_offset": offset, "page_limit": limit, "page_total": PAGES}
        # Page 9 stands for the page of a server that has no pictures.
        seen = "a2c_image" in params and not path.endswith("/pages/9")
        picture = [{"uri": uri, "mimeType": "image/png", "blob": "cGljdHVyZQ=="}] if seen else []
        if params.get("format", "json") == "json":
            return {"contents": [{"uri": uri, "mimeType": "application/json", "text": json.dumps(value)}, *picture]}
        return {"contents": [{"uri": uri, "mimeType": "text/markdown", "text": f"# {path}"}, *picture]}


class Blocking:
    """The blocking agent, each of its methods in a thread, so that one suite serves both."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.client = SMCPAgentClient(*args, **kwargs)

    async def __aenter__(self) -> "Blocking":
        await anyio.to_thread.run_sync(self.client.open)
        return self

    async def __aexit__(self, *_: object) -> None:
        await anyio.to_thread.run_sync(self.client.close)

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.client, name)
        if not inspect.ismethod(attribute) or name == "on":
            return attribute

        async def in_a_thread(*args: Any, **kwargs: Any) -> Any:
            return await anyio.to_thread.run_sync(functools.partial(attribute, *args, **kwargs))

        return in_a_thread

    async def collect(self, method: str, *args: Any) -> list[Any]:
        return await anyio.to_thread.run_sync(lambda: list(getattr(self.client, method)(*args)))

    async def cut(self) -> None:
        await anyio.to_thread.run_sync(lambda: self.client._run(functools.partial(cut, self.client._client)))


class Asyncio(AsyncSMCPAgentClient):
    async def collect(self, method: str, *args: Any) -> list[Any]:
        return [item async for item in getattr(self, method)(*args)]

    async def cut(self) -> None:
        await cut(self)


async def cut(client: AsyncSMCPAgentClient) -> None:
    """As a cable that is pulled: no word to the server."""
    link = client._link
    assert isinstance(link, OfficeLink) and link._connection is not None
    await link._connection.eio.ws.close()


Agent: TypeAlias = Any  # Asyncio | Blocking; the latter's methods cannot be typed

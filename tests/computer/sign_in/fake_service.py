"""An MCP server and its issuer in one, in the test's own process: what each answers, and when, is up to the test."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2

from a2c_smcp.computer.decisions.book import MissingSignIn
from a2c_smcp.computer.sign_in.kept_sign_in import KeptSignIn
from a2c_smcp.computer.sign_in.token_store import MemoryStore, SignInStore, key_of

__all__ = ["Answer", "CountingStore", "FakeService", "fake_service"]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer over HTTP."""

    status: int = 200
    body: Any = None
    header: str = ""

    def written(self) -> bytes:
        content = b"" if self.body is None else self.body if isinstance(self.body, bytes) else _json(self.body)
        head = f"HTTP/1.1 {self.status} X\r\n{self.header}content-type: application/json\r\n"
        return f"{head}content-length: {len(content)}\r\nconnection: close\r\n\r\n".encode() + content


class CountingStore(MemoryStore):
    """Counts how many times it was read."""

    loads = 0

    async def load(self, key: str) -> KeptSignIn | None:
        self.loads += 1
        return await super().load(key)


class FakeService:
    """`/mcp` speaks streamable HTTP, `/sse` the older way. The tools are `echo` and `write`."""

    def __init__(self) -> None:
        self.url = ""
        self.accepts: Callable[[str], bool] = lambda token: True
        """Whether a token is let in."""
        self.refuses_call: Callable[[str, str], str | None] = lambda tool, token: None
        """The scope that a call needs, if this token does not have it."""
        self.token_answer: Callable[[dict[str, str]], Answer] = self.new_tokens
        self.may_answer = asyncio.Event()
        """While it is not set, the issuer keeps requests for tokens waiting."""
        self.may_answer.set()
        self.may_call = asyncio.Event()
        """While it is not set, the tool `echo` does not end."""
        self.may_call.set()
        self.has_metadata = True
        self.forms: list[dict[str, str]] = []
        """What was asked of the issuer for tokens."""
        self.calls: list[tuple[str, str]] = []
        """The calls that were executed: tool and token."""
        self.requests: list[tuple[str, str]] = []
        """Method and token of every request to the MCP server."""
        self.revoked: list[str] = []
        self.registered: list[dict[str, Any]] = []
        self.asked = asyncio.Event()
        """Set when the issuer is asked for tokens."""
        self.open_calls = self.most_open_calls = 0
        self._stream: asyncio.StreamWriter | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._count = 0

    # --- what a test has of it

    def kept(self, path: str = "/mcp", *, expires_in: float = 3600.0, **more: Any) -> KeptSignIn:
        """A sign-in with `access-0` and `refresh-0`."""
        tokens = {"access_token": "access-0", "refresh_token": "refresh-0", "token_type": "Bearer", "expires_in": 3600}
        client = {"client_id": "c0", "redirect_uris": ["http://127.0.0.1/callback"], "issuer": self.url}
        made = KeptSignIn(
            self.url + path,
            self.url,
            tokens,
            time.time() + expires_in,
            3600.0,
            {**client, "token_endpoint_auth_method": "none"},
            self.metadata,
            {"resource": self.url + path, "authorization_servers": [self.url]},
            signed_in_at=1.0,
        )
        return replace(made, **more)

    async def signed_in(self, kind: str = "streamable", **more: Any) -> "CountingStore":
        """A store with that sign-in."""
        store = CountingStore()
        await self.keep(store, kind, **more)
        return store

    async def keep(self, store: SignInStore, kind: str = "streamable", **more: Any) -> None:
        path = _path(kind)
        await store.save(key_of("s", self.url + path, None), self.kept(path, **more))

    def config(self, kind: str = "streamable", **parameters: Any) -> dict[str, Any]:
        where = {"url": self.url + _path(kind), **parameters}
        return {"name": "s", "type": kind, "server_parameters": where, "default_tool_meta": {"auto_apply": True}}

    async def come_back(self, decision: MissingSignIn, **said: str) -> None:
        """The browser comes back from a person who signed in."""
        asked = {key: values[0] for key, values in parse_qs(urlsplit(decision.url).query).items()}
        back = {"state": asked["state"], **(said or {"code": f"code for {asked.get('scope', '')}"})}
        async with httpx2.AsyncClient(timeout=30) as browser:
            await browser.get(f"{asked['redirect_uri']}?{urlencode(back)}")

    @property
    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "registration_endpoint": f"{self.url}/register",
            "revocation_endpoint": f"{self.url}/revoke",
            "response_types_supported": ["code"],
        }

    def new_tokens(self, form: dict[str, str]) -> Answer:
        self._count += 1
        tokens = {"access_token": f"access-{self._count}", "refresh_token": f"refresh-{self._count}"}
        return Answer(200, {**tokens, "token_type": "Bearer", "expires_in": 3600})

    def without_reuse(self, form: dict[str, str]) -> Answer:
        """As issuers do that rotate refresh tokens: each is taken once."""
        sent = [each.get("refresh_token") for each in self.forms]
        if form["grant_type"] == "refresh_token" and sent.count(form["refresh_token"]) > 1:
            return Answer(400, {"error": "invalid_grant"})
        return self.new_tokens(form)

    # --- the service

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                line, *rest = head.split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in rest)}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                method, path, _ = line.split(" ")
                token = headers.get("authorization", "").removeprefix("Bearer ")
                if method == "GET" and path == "/sse" and self.accepts(token):
                    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
                    writer.write(b"event: endpoint\ndata: /messages\n\n")
                    self._stream = writer
                    await reader.read()
                    return
                answer = await self._answer(method, path, token, body)
                writer.write(answer.written())
                await writer.drain()
        finally:
            writer.close()

    async def _answer(self, method: str, path: str, token: str, body: bytes) -> Answer:
        if path.startswith("/.well-known/"):
            return self._about(path)
        if path == "/register":
            client = {**json.loads(body), "client_id": f"c{len(self.registered) + 1}"}
            self.registered.append(client)
            return Answer(201, client)
        if path == "/revoke":
            self.revoked.append(parse_qs(body.decode())["token"][0])
            return Answer(200)
        if path == "/token":
            form = {key: values[0] for key, values in parse_qs(body.decode()).items()}
            self.forms.append(form)
            self.asked.set()
            answer = self.token_answer(form)
            await self.may_answer.wait()
            return answer
        message = json.loads(body) if body else {}
        self.requests.append((message.get("method", method), token))
        if not self.accepts(token):
            at = f"{self.url}/.well-known/oauth-protected-resource{'/sse' if path != '/mcp' else path}"
            header = f'www-authenticate: Bearer resource_metadata="{at}"\r\n' if self.has_metadata else ""
            return Answer(401, {}, header)
        if method != "POST":
            return Answer(405)
        tool = message["params"]["name"] if message.get("method") == "tools/call" else ""
        if tool and (scope := self.refuses_call(tool, token)) is not None:
            said = f'www-authenticate: Bearer error="insufficient_scope", scope="{scope}"\r\n'
            return Answer(403, {}, said)
        if path != "/messages":
            return await self._result(message, token)
        answering = asyncio.create_task(self._answer_later(message, token))
        self._tasks.add(answering)
        answering.add_done_callback(self._tasks.discard)
        return Answer(202)

    async def _answer_later(self, message: dict[str, Any], token: str) -> None:
        answer = await self._result(message, token)
        if answer.body is not None and self._stream is not None:
            with suppress(OSError):
                self._stream.write(b"event: message\ndata: " + _json(answer.body) + b"\n\n")
                await self._stream.drain()

    def _about(self, path: str) -> Answer:
        if not self.has_metadata:
            return Answer(404)
        resource = path.removeprefix("/.well-known/oauth-protected-resource")
        if resource == path:
            return Answer(200, self.metadata)
        return Answer(200, {"resource": self.url + resource, "authorization_servers": [self.url]})

    async def _result(self, message: dict[str, Any], token: str) -> Answer:
        if "id" not in message:
            return Answer(202)
        found: dict[str, Any] = {}
        match message["method"]:
            case "initialize":
                found = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
                found["serverInfo"] = {"name": "fake", "version": "1"}
            case "tools/list":
                found = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "write")]}
            case "tools/call":
                found = await self._call(message["params"]["name"], token)
            case "ping":
                pass
            case _:
                error = {"code": -32601, "message": "no such method"}
                return Answer(200, {"jsonrpc": "2.0", "id": message["id"], "error": error})
        return Answer(200, {"jsonrpc": "2.0", "id": message["id"], "result": found})

    async def _call(self, tool: str, token: str) -> dict[str, Any]:
        self.calls.append((tool, token))
        self.open_calls += 1
        self.most_open_calls = max(self.most_open_calls, self.open_calls)
        try:
            if tool == "echo":
                await self.may_call.wait()
        finally:
            self.open_calls -= 1
        return {"content": [{"type": "text", "text": tool}]}


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _path(kind: str) -> str:
    return "/mcp" if kind == "streamable" else "/sse"


@asynccontextmanager
async def fake_service() -> AsyncIterator[FakeService]:
    made = FakeService()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        made.may_answer.set()
        made.may_call.set()
        server.close()

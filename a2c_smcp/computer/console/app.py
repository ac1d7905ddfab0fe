"""The console as an ASGI application: it checks each request, then serves the page's files or the API."""

import logging
import secrets
import time

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.console.api import ConsoleAPI
from a2c_smcp.computer.console.entrance import OUTSIDE, Door, Entrance
from a2c_smcp.computer.console.memory import ConsoleMemory
from a2c_smcp.computer.console.page_json import PageResponse
from a2c_smcp.computer.console.requests import VISITOR
from a2c_smcp.computer.console.static_files import page_files
from a2c_smcp.computer.console.visitors import PageSession, VisitorBook
from a2c_smcp.computer.home import ComputerHome
from a2c_smcp.errors import SMCPError
from a2c_smcp.utils.limited_log import LimitedLog
from a2c_smcp.web.connection_places import vouch
from a2c_smcp.web.hosts import OwnOrigins
from a2c_smcp.web.page_gate import HEADERS, refusal

__all__ = ["ConsoleApp"]

logger = logging.getLogger(__name__)

_FEED = "/api/feed"
#: The header with the key of a session. A browser asks us before it lets a page of another origin send it.
_SESSION_HEADER = "x-a2c-session"


class ConsoleApp:
    """Serves the page and its API to visitors with a link and to remembered browsers. `origins` are the page's own."""

    def __init__(
        self,
        computer: Computer,
        origins: frozenset[str],
        door: Door,
        memory: ConsoleMemory | None = None,
        *,
        home: ComputerHome | None = None,
    ) -> None:
        self._origins = OwnOrigins(origins)
        self._log = LimitedLog(logger)
        self._visitors = VisitorBook()
        self._files = page_files()
        self.run = secrets.token_hex(8)
        self.api = ConsoleAPI(computer, self.run, home)
        self.entrance = Entrance(
            self._visitors, door, self.run, memory, self.api.end_streams_of, computer.console_heard
        )
        inner = Starlette(
            routes=[*self.entrance.routes, *self.api.routes],
            exception_handlers={SMCPError: _failed, Exception: _fault},
        )
        self._inner: ASGIApp = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]
        await self._answer(scope, headers)(scope, receive, self._guarded(send))

    def _answer(self, scope: Scope, headers: list[tuple[str, str]]) -> ASGIApp:
        path, method = scope["path"], scope["method"]
        is_api = path.startswith("/api/")
        refused = refusal(headers, self._origins, method=method, is_api=is_api)
        if refused is not None:
            self._log.warn("refused requests", "refused a request: %s", refused.reason)
            return _error(refused.status, refused.reason)
        if is_api:
            if path in OUTSIDE:
                return self._inner
            session = self.entrance.find(dict(headers).get(_SESSION_HEADER, ""))
            vouch(scope, session is not None)
            if session is None:
                return _error(401, "this page has no session")
            scope[VISITOR] = session
            return self._followed(session) if path == _FEED else self._inner
        if method not in ("GET", "HEAD"):
            return _error(405, "files are read only")
        if (file := self._files.by_path.get(path)) is None:
            return PlainTextResponse("not found\n", 404)
        content, kind = file
        return Response(content, media_type=kind)

    def _guarded(self, send: Send) -> Send:
        """Adds the headers that every answer has, errors included."""
        added = {**HEADERS, "content-security-policy": self._files.policy}
        lines = [(name.encode(), value.encode()) for name, value in added.items()]

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *lines]}
            await send(message)

        return guarded

    def _followed(self, session: PageSession) -> ASGIApp:
        """Counts the session as in use while its stream is open."""

        async def followed(scope: Scope, receive: Receive, send: Send) -> None:
            with self._visitors.following(session, time.monotonic):
                await self._inner(scope, receive, send)

        return followed


def _error(status: int, message: str) -> PageResponse:
    return PageResponse({"error": {"code": status, "message": message}}, status)


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, SMCPError)
    return PageResponse(error.payload(), error.code if 400 <= error.code < 600 else 400)


async def _fault(request: Request, error: Exception) -> Response:
    # Starlette sends this answer, and raises the error again for the log.
    return _error(500, "the console failed; the computer's log says why")

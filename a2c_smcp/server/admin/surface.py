"""The operators' door as an ASGI application: a local socket needs no key, the port needs one. The page only reads."""

import asyncio
import hashlib
import hmac
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Message, Receive, Scope, Send

from a2c_smcp.errors import BadRequestError, InternalError, NotFoundError, SMCPError, UnauthorizedError
from a2c_smcp.server.admin.everywhere import ClusterAdmin
from a2c_smcp.server.admin.page import page_file
from a2c_smcp.server.admin.paths import API_PATH, KEY_HEADER
from a2c_smcp.server.admin.rows import MOST_ROWS
from a2c_smcp.server.wrong_keys import WrongKeys
from a2c_smcp.utils.limited_log import LimitedLog
from a2c_smcp.web.connection_places import vouch
from a2c_smcp.web.hosts import AllowedHosts
from a2c_smcp.web.json_bodies import json_object
from a2c_smcp.web.page_gate import HEADERS, policy, refusal

__all__ = ["AdminGuard", "AdminSurface"]

logger = logging.getLogger(__name__)

_READS: Final = ("top", "processes", "offices", "members", "keys")
_MOST_BODY: Final = 16 * 1024
_LONGEST: Final = 1000
#: Wrong keys of one address that are refused at once.
_WRONG_AT_ONCE: Final = 3


class AdminGuard:
    """Who comes in over the port: only under our own names, and with the key."""

    def __init__(self, key: str, hosts: Iterable[str] = ()) -> None:
        self._digest = _digest(key)
        self._hosts = AllowedHosts(hosts)
        self._wrong = WrongKeys(_WRONG_AT_ONCE)
        self._log = LimitedLog(logger)

    def refusal(self, scope: Scope, *, is_api: bool) -> Response | None:
        """The answer to a request that another page, or a foreign name, has sent."""
        headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]
        refused = refusal(headers, self._hosts, method=scope["method"], is_api=is_api)
        if refused is None:
            return None
        self._log.warn("refused requests", "refused a request to the admin port: %s", refused.reason)
        return _answer({"error": {"code": refused.status, "message": refused.reason}}, refused.status)

    async def check_key(self, request: Request) -> None:
        """Raise `UnauthorizedError` or `TooManyRequestsError`, after a pause, unless the request has the key."""
        address = request.client.host if request.client else "unknown"
        self._wrong.check(address, time.monotonic())
        if hmac.compare_digest(_digest(request.headers.get(KEY_HEADER, "")), self._digest):
            self._wrong.right(address)
            return
        self._log.warn(address, "a wrong admin key from %s", address)
        await asyncio.sleep(self._wrong.wrong(address, time.monotonic()))
        raise UnauthorizedError("this is not the admin key")


class AdminSurface:
    """Serves the operations of `admin` as JSON below `/admin/api/`. Without a `guard`, everybody who reaches it comes
    in: that is for a local socket which only its owner may open.
    """

    def __init__(self, admin: ClusterAdmin, guard: AdminGuard | None) -> None:
        self._admin = admin
        self._guard = guard
        self._writes: Mapping[str, Callable[[dict[str, Any]], Awaitable[Any]]] = {
            "kick": lambda body: admin.kick(_text(body, "target")),
            "revoke": lambda body: admin.revoke(_text(body, "key")),
            "drain": lambda body: admin.drain(_text(body, "process") if body.get("process") is not None else None),
            "reload": lambda body: admin.ask("reload", {}),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            response = await self._respond(scope, receive)
            await response(scope, receive, _guarded(send))

    async def _respond(self, scope: Scope, receive: Receive) -> Response:
        path, request = scope["path"], Request(scope, receive)
        is_api = path.startswith(API_PATH)
        if self._guard is not None and (refused := self._guard.refusal(scope, is_api=is_api)) is not None:
            return refused
        if not is_api:
            return _page_file(path, request.method)
        try:
            if self._guard is not None:
                vouch(scope, known=False)
                await self._guard.check_key(request)
                vouch(scope, known=True)
            return _answer(await self._do(path.removeprefix(API_PATH), request))
        except SMCPError as error:
            return _answer(error.payload(), error.code if 400 <= error.code < 600 else 400)
        except Exception:
            # The boundary: an operator gets an answer, and the log has the traceback.
            logger.exception("failed to serve an operator")
            return _answer(InternalError("the server failed; its log says why").payload(), 500)

    async def _do(self, operation: str, request: Request) -> Any:
        if request.method == "GET" and operation == "overview":
            return await self._admin.overview()
        if request.method == "GET" and operation in _READS:
            return await self._admin.ask(operation, _asked(operation, request))
        if request.method == "POST" and (write := self._writes.get(operation)) is not None:
            return await write(await json_object(request, _MOST_BODY))
        raise NotFoundError(f"there is no {request.method} {operation[:50]!r}")


def _asked(operation: str, request: Request) -> dict[str, Any]:
    """What a question asks for, checked: other processes take it as it is."""
    query = request.query_params
    given: dict[str, Any] = {}
    limit = query.get("limit", str(MOST_ROWS))
    if not (limit.isascii() and limit.isdigit() and 1 <= int(limit[:6]) <= MOST_ROWS):
        raise BadRequestError(f"'limit' must be a number from 1 to {MOST_ROWS}", {"field": "limit"})
    given["limit"] = int(limit)
    for name in ("office", "name"):
        if name in query:
            given[name] = query[name][:_LONGEST]
    if "after" in query:
        given["after"] = query["after"][:_LONGEST] if operation == "offices" else _place(query["after"])
    return given


def _place(text: str) -> list[str]:
    """Where a list of members goes on: what `next` of the last answer said."""
    try:
        place = msgspec.json.decode(text, type=tuple[str, str, str, str, str])
    except (msgspec.DecodeError, RecursionError):
        raise BadRequestError("'after' must be the 'next' of an earlier answer, as JSON", {"field": "after"}) from None
    return list(place)


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST:
        raise BadRequestError(f"field {name!r} must be a text of 1 to {_LONGEST} characters", {"field": name})
    return value


def _page_file(path: str, method: str) -> Response:
    if method not in ("GET", "HEAD"):
        return PlainTextResponse("the page is read only\n", 405)
    if (file := page_file(path)) is None:
        return PlainTextResponse("not found; the page is at /admin\n", 404)
    content, kind = file
    return Response(content, media_type=kind)


def _answer(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value), status, media_type="application/json")


def _guarded(send: Send) -> Send:
    """Adds the headers that every answer has, errors included."""
    lines = [
        (name.encode(), value.encode()) for name, value in (*HEADERS.items(), ("content-security-policy", policy()))
    ]

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *lines]}
        await send(message)

    return guarded


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()

"""What a page sends and gets: routes below `/api`, bodies of JSON that are checked first, and the page's session."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from a2c_smcp.computer.console.limits import CONSOLE_LIMITS
from a2c_smcp.computer.console.page_json import PageResponse
from a2c_smcp.computer.console.visitors import PageSession
from a2c_smcp.errors import BadRequestError, UnauthorizedError
from a2c_smcp.web.json_bodies import json_object

__all__ = [
    "VISITOR",
    "ReadEndpoint",
    "WriteEndpoint",
    "number_field",
    "query_field",
    "read_routes",
    "text_field",
    "visitor",
    "write_routes",
]

#: Where the scope of a request has its session.
VISITOR: Final = "a2c.visitor"

ReadEndpoint: TypeAlias = Callable[[Request], Awaitable[Any]]
"""Answers a GET. What it returns is sent as JSON, unless it is a `Response`."""
WriteEndpoint: TypeAlias = Callable[[Request, dict[str, Any]], Awaitable[Any]]
"""Answers a POST, whose JSON object it gets."""


def read_routes(endpoints: Mapping[str, ReadEndpoint]) -> list[Route]:
    def route(path: str, endpoint: ReadEndpoint) -> Route:
        async def answer(request: Request) -> Response:
            return _response(await endpoint(request))

        return Route(f"/api{path}", answer, methods=["GET"])

    return [route(path, endpoint) for path, endpoint in endpoints.items()]


def write_routes(endpoints: Mapping[str, WriteEndpoint], most_bytes: int = CONSOLE_LIMITS.body_bytes) -> list[Route]:
    def route(path: str, endpoint: WriteEndpoint) -> Route:
        async def answer(request: Request) -> Response:
            return _response(await endpoint(request, await _object_body(request, most_bytes)))

        return Route(f"/api{path}", answer, methods=["POST"])

    return [route(path, endpoint) for path, endpoint in endpoints.items()]


def _response(made: Any) -> Response:
    return made if isinstance(made, Response) else PageResponse({} if made is None else made)


async def _object_body(request: Request, most: int) -> dict[str, Any]:
    found = await json_object(request, most)
    if VISITOR in request.scope:
        visitor(request)
    return found


def visitor(request: Request) -> PageSession:
    """The session of a request. Raises `UnauthorizedError` if it ended while the body was on its way."""
    session = request.scope[VISITOR]
    assert isinstance(session, PageSession)
    if session.is_over:
        raise UnauthorizedError("the session of this page has ended")
    return session


def text_field(body: Mapping[str, Any], name: str) -> str:
    """A required text of a body, or `BadRequestError`."""
    if not isinstance(value := body.get(name), str):
        raise BadRequestError(f"field {name!r} must be a text", {"field": name})
    return value


def query_field(request: Request, name: str) -> str:
    """A required text of the query, or `BadRequestError`."""
    if (value := request.query_params.get(name)) is None:
        raise BadRequestError(f"{name!r} is missing", {"field": name})
    return value


def number_field(text: str | None, name: str, default: int, most: int) -> int:
    """A number of the query, from 0 to `most`, or `BadRequestError`."""
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) <= most):
        raise BadRequestError(f"{name!r} must be a number from 0 to {most}", {"field": name})
    return int(text)

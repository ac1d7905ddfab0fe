"""What a page sends: bodies of JSON, bounded and checked before anything looks at them; and which session it has."""

import json
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request

from a2c_smcp.computer.console.visitors import PageSession
from a2c_smcp.errors import BadRequestError, PayloadTooLargeError, UnauthorizedError

__all__ = ["MAX_BODY", "VISITOR", "number_field", "object_body", "text_field", "visitor"]

#: Where the scope of a request has its session.
VISITOR: Final = "a2c.visitor"

#: Bytes of one request; the arguments of a call may be long.
MAX_BODY: Final = 4 * 2**20


async def object_body(request: Request, most: int = MAX_BODY) -> dict[str, Any]:
    """The JSON object of a request, or `BadRequestError`, or `PayloadTooLargeError`."""
    # A form of another site can be posted without asking first, but not as JSON.
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise BadRequestError("the body must be application/json")
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > most:
                raise PayloadTooLargeError(f"a request has at most {most} bytes")
    except ClientDisconnect:
        raise BadRequestError("the body was cut off") from None
    if VISITOR in request.scope:
        visitor(request)
    try:
        found = json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise BadRequestError("the body is not JSON") from None
    if not isinstance(found, dict):
        raise BadRequestError("the body must be one JSON object")
    return found


def visitor(request: Request) -> PageSession:
    """The session of a request, or `UnauthorizedError`: it may have been ended while the body was on its way."""
    session = request.scope[VISITOR]
    assert isinstance(session, PageSession)
    if session.is_over:
        raise UnauthorizedError("this page has no session any more")
    return session


def _no_constant(name: str) -> object:
    raise ValueError(name)


def text_field(body: dict[str, Any], name: str) -> str:
    """A field that must be there, or `BadRequestError`."""
    if not isinstance(value := body.get(name), str):
        raise BadRequestError(f"field {name!r} must be a text", {"field": name})
    return value


def number_field(text: str | None, name: str, default: int, most: int) -> int:
    """A number of a query, from 0 to `most`."""
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) <= most):
        raise BadRequestError(f"{name!r} must be a number from 0 to {most}", {"field": name})
    return int(text)

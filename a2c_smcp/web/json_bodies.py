"""The JSON object in the body of a request: read within a bound, and only if another site could not have sent it."""

import json
from typing import Any

from starlette.requests import ClientDisconnect, Request

from a2c_smcp.errors import BadRequestError, PayloadTooLargeError

__all__ = ["json_object"]


async def json_object(request: Request, most: int) -> dict[str, Any]:
    """The object, of at most this many bytes. Raises `BadRequestError` or `PayloadTooLargeError`."""
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
    try:
        found = json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise BadRequestError("the body is not JSON") from None
    if not isinstance(found, dict):
        raise BadRequestError("the body must be one JSON object")
    return found


def _no_constant(name: str) -> object:
    raise ValueError(name)

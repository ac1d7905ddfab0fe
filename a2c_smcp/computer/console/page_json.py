"""JSON for the page. Words of others may hold what JSON or UTF-8 cannot; the page gets an answer all the same."""

import json
from typing import Any

from starlette.responses import Response

__all__ = ["PageResponse", "encoded"]


def encoded(value: Any) -> bytes:
    """A value as JSON. NaN and infinity become null; half of a surrogate pair becomes a question mark."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str)
    except ValueError:
        text = json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"), default=str)
    return text.encode("utf-8", "replace")


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


class PageResponse(Response):
    """An answer of the API."""

    media_type = "application/json"

    def __init__(self, value: Any, status_code: int = 200) -> None:
        super().__init__(encoded(value), status_code)

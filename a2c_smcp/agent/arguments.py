"""A tool's parameters as a person types them."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["read_params"]


def read_params(words: Sequence[str]) -> dict[str, Any]:
    """One JSON object, one `@file` that holds it (`@-` for stdin), or pairs `key=value`.

    Raises `ValueError`, or `OSError` for a file that cannot be read.
    """
    if len(words) == 1 and words[0].startswith("@"):
        return _object(sys.stdin.read() if words[0] == "@-" else Path(words[0][1:]).read_text("utf-8"), words[0])
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        return _object(words[0], "the parameters")
    params: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not key or not equals:
            raise ValueError(f"{word!r} is neither a JSON object, nor @file, nor key=value")
        if key in params:
            raise ValueError(f"{key!r} is given twice")
        params[key] = _value(value)
    return params


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{where}: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{where}: must be a JSON object")
    return value


def _value(text: str) -> Any:
    """JSON where it can be: 3, true, [1, 2]; text where not, and text in JSON's quotes to have a number as text."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except ValueError:
        return text


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")

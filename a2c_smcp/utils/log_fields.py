"""Values beside the words of a log line. A log in JSON has them as keys of its own; a log for people has the words."""

import logging
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["fields_of", "with_fields"]

_NAME: Final = "a2c_fields"


def with_fields(**fields: object) -> dict[str, Any]:
    """What to hand to a logger as `extra`. Values that are empty or `None` are left out."""
    return {_NAME: {name: value for name, value in fields.items() if value not in (None, "")}}


def fields_of(record: logging.LogRecord) -> Mapping[str, object]:
    """The fields of a log line."""
    found: Mapping[str, object] = getattr(record, _NAME, {})
    return found

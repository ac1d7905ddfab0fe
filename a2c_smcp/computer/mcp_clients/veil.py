"""Takes rendered values out of what is said about a server: its stderr, the name of a file that is not there. Pure.

What stood in the config comes in their place, so that whoever wrote it knows what is meant.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from a2c_smcp.computer.utils.placeholder import holds_placeholder

__all__ = ["Veil"]

#: Shorter values are no secrets, and may stand in any text by chance.
_SHORTEST: Final = 6


class Veil:
    """Made from a config as written and as rendered; `veil(text)` is the text as it may be shown."""

    def __init__(self, raw: Any, rendered: Any) -> None:
        found = {value: written for value, written in _stand_ins(raw, rendered) if len(value) >= _SHORTEST}
        # The longest first: a value may be a part of another.
        self._stand_ins = sorted(found.items(), key=lambda item: -len(item[0]))

    def __call__(self, text: str) -> str:
        for value, written in self._stand_ins:
            text = text.replace(value, written)
        return text


def _stand_ins(raw: Any, rendered: Any) -> Iterator[tuple[str, str]]:
    """Each rendered text that a placeholder had a part in, with what was written."""
    if holds_placeholder(raw):
        for text in _texts(rendered):
            yield text, raw
    elif isinstance(raw, Mapping) and isinstance(rendered, Mapping):
        for key in raw.keys() & rendered.keys():
            yield from _stand_ins(raw[key], rendered[key])
    elif isinstance(raw, list) and isinstance(rendered, list):
        for written, value in zip(raw, rendered, strict=False):
            yield from _stand_ins(written, value)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for child in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(child)

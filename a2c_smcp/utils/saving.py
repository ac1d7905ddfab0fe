"""Images and other bytes in what a tool or a document answered: what they are, and keeping them in files."""

import base64
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from a2c_smcp.errors import BadRequestError
from a2c_smcp.utils.values import file_path

__all__ = ["describe", "save"]


def save(items: Iterable[Mapping[str, Any]], name: str | Path) -> list[tuple[Path, str]]:
    """Write the bytes among contents in MCP's JSON form; where each went, and what it is.

    The first goes to the file of this name, the next to `name-2`, with the same ending. Raises `BadRequestError` when
    there are none, or the file cannot be written.
    """
    file = file_path(name)
    saved: list[tuple[Path, str]] = []
    for number, (item, key) in enumerate(_blobs(items), 1):
        path = file if number == 1 else file.with_stem(f"{file.stem}-{number}")
        try:
            path.write_bytes(base64.b64decode(item[key], validate=True))
        except ValueError:  # not only binascii's own: it is another one for what is not ASCII
            raise BadRequestError("nothing is saved: what came is not base64") from None
        except OSError as error:
            raise BadRequestError(f"{path} cannot be written: {error.strerror}") from None
        saved.append((path, describe(item, key)))
    if not saved:
        raise BadRequestError("nothing is saved: there is no image or other binary content in it")
    return saved


def describe(item: Mapping[str, Any], key: str) -> str:
    """What the bytes under a key are, and how many: they are not for a terminal."""
    try:
        size = len(base64.b64decode(item.get(key) or "", validate=True))
    except ValueError:
        size = len(item[key])
    return f"{item.get('mimeType') or item.get('type') or 'binary'}, {size} bytes"


def _blobs(items: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], str]]:
    for item in items:
        resource = item.get("resource")
        for holder, key in ((item, "data"), (item, "blob"), (resource, "blob")):
            if isinstance(holder, Mapping) and isinstance(holder.get(key), str):
                yield holder, key

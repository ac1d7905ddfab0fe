"""Images and other bytes in the answers of tools and documents: describing them, and saving them in files."""

import base64
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from a2c_smcp.errors import BadRequestError
from a2c_smcp.utils.values import file_path

__all__ = ["describe", "save"]


def save(items: Iterable[Mapping[str, Any]], name: str | Path) -> list[tuple[Path, str]]:
    """Save the binary contents, which are in MCP's JSON form. Returns where each went, and what it is.

    The first goes to the file of this name, the next to `name-2` with the same ending. Raises `BadRequestError` if
    there are none, or if a file cannot be written.
    """
    file = file_path(name)
    saved: list[tuple[Path, str]] = []
    for number, (item, key) in enumerate(_blobs(items), 1):
        path = file if number == 1 else file.with_stem(f"{file.stem}-{number}")
        try:
            path.write_bytes(base64.b64decode(item[key], validate=True))
        except ValueError:  # not only binascii's error: text that is not ASCII raises another one
            raise BadRequestError("nothing is saved: what came is not base64") from None
        except OSError as error:
            raise BadRequestError(f"{path} cannot be written: {error.strerror}") from None
        saved.append((path, describe(item, key)))
    if not saved:
        raise BadRequestError("nothing is saved: there is no image or other binary content in it")
    return saved


def describe(item: Mapping[str, Any], key: str) -> str:
    """The type and the number of the bytes under a key: they are not for a terminal."""
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

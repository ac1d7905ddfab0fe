"""Results of tools as files: images, sounds, long texts and linked resources are saved in a folder of the caller, and
the result links to the files. The words of strangers become harmless file names.
"""

import asyncio
import base64
import logging
import mimetypes
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from a2c_smcp.errors import BadRequestError, PayloadTooLargeError
from a2c_smcp.utils.text import in_log

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock

__all__ = ["LONG_TEXT", "SaveBounds", "folder_for", "saved_result"]

logger = logging.getLogger(__name__)

#: A text of more characters is saved. A shorter one stays in the result.
LONG_TEXT: Final = 20_000
#: Reads the contents of a linked resource, in MCP's JSON form.
ReadLink = Callable[[str], Awaitable[list[dict[str, Any]]]]


@dataclass(frozen=True, slots=True)
class SaveBounds:
    """How much of one result is saved. The computer decides how many links a result has, and how large they are."""

    seconds: float
    """How long reading all that the result links to may take."""
    files: int = 1000
    """Files of one result. A part that cannot be saved counts as one."""
    bytes: int = 256 * 2**20
    """Bytes of all files together."""


_ODD: Final = re.compile(r"[^A-Za-z0-9._-]+")
#: Characters of a file's name.
_MOST_NAME: Final = 80
#: How many files of one name a folder may have: `image.png`, `image-2.png` and so on.
_MOST_ALIKE: Final = 10_000


@dataclass(frozen=True, slots=True)
class _FileBody:
    """What becomes a file."""

    data: bytes
    name: str
    mime_type: str | None


def folder_for(save_to: "str | os.PathLike[str]") -> Path:
    """The folder, made if it is missing. Raises `BadRequestError` if nothing can be written there, so that a call fails
    before it runs and not after.
    """
    folder = Path(save_to).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadRequestError(f"{folder} cannot be used for results: {error.strerror}", {"field": "save_to"}) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BadRequestError(f"{folder} cannot be used for results: it is not writable", {"field": "save_to"})
    return folder.resolve()


async def saved_result(result: "CallToolResult", folder: Path, read: ReadLink, bounds: SaveBounds) -> "CallToolResult":
    """The result with links to files in place of what is large. What cannot be read or written within the bounds stays
    as it is.
    """
    content: list[ContentBlock] = []
    problems: list[str] = []
    files, room = bounds.files, bounds.bytes
    deadline = asyncio.get_running_loop().time() + bounds.seconds
    for item in result.content:
        try:
            async with asyncio.timeout_at(deadline):
                bodies = await _bodies(item, read) if files > 0 and room > 0 else []
            if len(bodies) > files or sum(len(body.data) for body in bodies) > room:
                raise PayloadTooLargeError("the files of this result are too many, or too large")
            content += [await asyncio.to_thread(_save, body, folder) for body in bodies] or [item]
        except Exception as error:
            # The tool has run: its result must not be lost, whatever strangers wrote into it.
            problems.append(str(error) or type(error).__name__)
            content.append(item)
            files -= 1
        else:
            files, room = files - len(bodies), room - sum(len(body.data) for body in bodies)
    if problems:
        logger.warning("%d parts of a result were not saved: %s", len(problems), in_log(problems[0]))
    return result.model_copy(update={"content": content})


async def _bodies(item: "ContentBlock", read: ReadLink) -> list[_FileBody]:
    """The files that a content becomes; empty if it stays in the result."""
    match item.type:
        case "text":
            return [_FileBody(item.text.encode(), "text", "text/plain")] if len(item.text) > LONG_TEXT else []
        case "image" | "audio":
            return [_FileBody(base64.b64decode(item.data, validate=True), item.type, item.mime_type)]
        case "resource_link":
            contents = await read(item.uri)
            return [_of_resource(each, item.name or item.uri) for each in contents]
        case _:
            body = _of_resource(item.resource.model_dump(by_alias=True), item.resource.uri)
            is_short_text = hasattr(item.resource, "text") and len(body.data) <= LONG_TEXT
            return [] if is_short_text else [body]


def _of_resource(contents: Mapping[str, Any], name: str) -> _FileBody:
    text, blob = contents.get("text"), contents.get("blob")
    data = base64.b64decode(blob, validate=True) if isinstance(blob, str) else str(text or "").encode()
    kind = contents.get("mimeType")
    default = None if isinstance(blob, str) else "text/plain"
    return _FileBody(data, name, kind if isinstance(kind, str) and kind else default)


def _save(body: _FileBody, folder: Path) -> "ContentBlock":
    from mcp_types import ResourceLink

    path = _written(body, folder)
    return ResourceLink(name=path.name, uri=path.as_uri(), mime_type=body.mime_type, size=len(body.data))


def _written(body: _FileBody, folder: Path) -> Path:
    name = Path(_file_name(body))
    for number in range(1, _MOST_ALIKE):
        path = folder / (name if number == 1 else name.with_stem(f"{name.stem}-{number}"))
        try:
            # Never over another file, and not through a link that somebody put there.
            with open(path, "xb") as file:
                file.write(body.data)
        except FileExistsError:
            continue
        return path
    raise OSError(f"{folder} has too many files called {name}")


def _file_name(body: _FileBody) -> str:
    """A harmless name: the last part of the given one, with an ending that fits the type."""
    last = unquote(urlsplit(body.name).path or body.name).rstrip("/").rpartition("/")[2].rpartition("\\")[2]
    name = _ODD.sub("-", last).strip("-.")[:_MOST_NAME] or "result"
    ending = mimetypes.guess_extension((body.mime_type or "").partition(";")[0]) or ""
    return name if Path(name).suffix else f"{name}{ending}"

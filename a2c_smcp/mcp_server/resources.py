"""What a room of resources offers to the server, and how the lists of several rooms become one paged list."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import mcp_types as types

from a2c_smcp.errors import NotFoundError

__all__ = ["BadCursorError", "Completions", "Contents", "Listing", "ResourceRoom", "UnknownResourceError", "list_page"]

Contents = types.TextResourceContents | types.BlobResourceContents


class UnknownResourceError(NotFoundError):
    """No resource has this URI. A `ResourceRoom` raises it; the client gets MCP's error for it."""

    def __init__(self, uri: str) -> None:
        super().__init__(f"Unknown resource: {uri[:200]}")


class BadCursorError(ValueError):
    """This server did not give out this cursor."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A part of a room's resources, and whether more follow."""

    resources: Sequence[types.Resource]
    more: bool = False


@dataclass(frozen=True, slots=True)
class Completions:
    """Values that complete a person's input, and whether there are more of them."""

    values: Sequence[str] = ()
    more: bool = False
    total: int | None = None
    """How many there are, if it is known."""


class ResourceRoom(Protocol):
    """A part of the server's resources, such as its windows. Give rooms of your own to `ContextServer(resources=…)`."""

    def owns(self, uri: str) -> bool:
        """Whether this room answers for this URI."""
        ...

    def topic(self, uri: str) -> str:
        """The URI whose changes a client hears of when it subscribes to this one."""
        ...

    async def listing(self, offset: int, limit: int) -> Listing:
        """At most `limit` resources, beginning with number `offset`."""
        ...

    async def read(self, uri: str) -> Sequence[Contents] | types.ReadResourceResult:
        """The contents of a resource, or MCP's result with its `_meta`. Raise `UnknownResourceError`, or another
        `SMCPError`, if there are none.
        """
        ...

    async def templates(self) -> Sequence[types.ResourceTemplate]:
        """The URI templates of this room, for clients that show them."""
        ...

    async def complete(self, template: str, name: str, typed: str, known: Mapping[str, str]) -> Completions:
        """Values for a template's argument that begin with the typed text. `known` has the other arguments."""
        ...


async def list_page(
    rooms: Sequence[ResourceRoom], cursor: str | None, size: int
) -> tuple[list[types.Resource], str | None]:
    """One page of the resources of all rooms, and the cursor of the next page."""
    room, offset = _read_cursor(cursor, len(rooms))
    found: list[types.Resource] = []
    while room < len(rooms):
        wanted = size - len(found)
        if wanted == 0:
            return found, f"{room}.{offset}"
        listing = await rooms[room].listing(offset, wanted)
        found += listing.resources
        if listing.more and listing.resources:
            offset += len(listing.resources)
        else:
            room, offset = room + 1, 0
    return found, None


def _read_cursor(cursor: str | None, rooms: int) -> tuple[int, int]:
    if cursor is None:
        return 0, 0
    room, dot, offset = cursor.partition(".")
    if not (
        dot and cursor.isascii() and room.isdigit() and offset.isdigit() and len(cursor) < 30 and int(room) < rooms
    ):
        raise BadCursorError("this server did not give out this cursor")
    return int(room), int(offset)

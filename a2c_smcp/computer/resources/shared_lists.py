"""What servers share with agents: their resources, templates and prompts, in MCP's own form, and page by page. Pure.

An item is kept as its JSON text. A hundred thousand of them would keep the garbage collector busy as objects.
"""

import base64
import binascii
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from a2c_smcp.computer.mcp_clients.item_lists import ItemList
from a2c_smcp.computer.mcp_clients.resource_lists import Share
from a2c_smcp.computer.resources.uri_templates import MatchedUri, UriTemplate, parse_template
from a2c_smcp.computer.watching.change_journal import MOST_NOTED
from a2c_smcp.errors import BadRequestError
from a2c_smcp.types import SERVER_NAME
from a2c_smcp.wire import codec

__all__ = ["MAX_LISTED", "MAX_PAGE", "SharedCounts", "SharedItems", "SharedPage", "page_of", "uris_of"]

#: How many items all pages together have. An agent takes 10,000, and would refuse them all if there were more. So the
#: servers share this number: one with a long list does not push out the others.
MAX_LISTED: Final = 9500

#: How many items a page has at most. All together have about `_PAGE_VALUES` values at most.
MAX_PAGE: Final = 500
_PAGE_BYTES: Final = 1024 * 1024
_PAGE_VALUES: Final = 20_000
#: How many characters the templates of one server may have that are compared with a URI. That takes 9 ms at most.
_TEMPLATE_CHARACTERS: Final = 20_000
#: How many characters of a cursor are read.
_LONGEST_CURSOR: Final = 2000


@dataclass(frozen=True, slots=True)
class SharedCounts:
    """How much a server shares, for people."""

    share: Share
    resources: int
    templates: int
    prompts: int

    def __str__(self) -> str:
        numbers = {"resources": self.resources, "templates": self.templates, "prompts": self.prompts}
        said = ", ".join(f"{number} {kind}" for kind, number in numbers.items() if number)
        return f"{self.share}: {said}" if said else self.share


@dataclass(frozen=True, slots=True)
class SharedItems:
    """What one server shares. Two of these are equal if agents would see no difference."""

    resources: tuple[bytes, ...] = ()
    templates: tuple[bytes, ...] = ()
    prompts: tuple[bytes, ...] = ()
    uris: frozenset[int] = field(default=frozenset(), compare=False)
    """The hashes of the URIs of the resources."""
    patterns: tuple[UriTemplate, ...] = field(default=(), compare=False)
    prompt_names: frozenset[str] = field(default=frozenset(), compare=False)

    def with_resources(self, listed: ItemList) -> "SharedItems":
        return replace(self, resources=tuple(listed.items), uris=frozenset(map(hash, listed.names)))

    def with_templates(self, listed: ItemList) -> "SharedItems":
        """Only the first templates are compared with URIs: those with 20,000 characters together."""
        lengths = itertools.accumulate(len(name) for name in listed.names)
        compared = [name for name, total in zip(listed.names, lengths, strict=True) if total <= _TEMPLATE_CHARACTERS]
        patterns = tuple(pattern for name in compared if (pattern := parse_template(name)) is not None)
        return replace(self, templates=tuple(listed.items), patterns=patterns)

    def with_prompts(self, listed: ItemList) -> "SharedItems":
        return replace(self, prompts=tuple(listed.items), prompt_names=frozenset(listed.names))

    def counts(self, share: Share) -> SharedCounts:
        return SharedCounts(share, len(self.resources), len(self.templates), len(self.prompts))

    def changed(self, other: "SharedItems") -> set[bytes]:
        """The resources and templates that only one of the two has."""
        return {*self.resources, *self.templates} ^ {*other.resources, *other.templates}

    def lists(self, uri: str) -> bool:
        return hash(uri) in self.uris

    def fit(self, uri: MatchedUri) -> int:
        """How many characters of the URI are in the template that fits best; 0 if none fits."""
        return max((len(pattern.prefix) for pattern in self.patterns if pattern.fits(uri)), default=0)


@dataclass(frozen=True, slots=True)
class SharedPage:
    """Some items of each kind, and the cursor of the next page."""

    items: Mapping[str, list[dict[str, Any]]]
    next_cursor: str | None


def uris_of(items: Collection[bytes]) -> list[str] | None:
    """The URIs of resources and templates; `None` if they are too many to be looked at."""
    if len(items) > MOST_NOTED:
        return None
    found = (codec.loads(item) for item in items)
    return [str(item.get("uri") or item.get("uriTemplate") or "") for item in found]


def page_of(
    shared: Mapping[SERVER_NAME, SharedItems], kinds: Sequence[str], cursor: str | None, room: int
) -> SharedPage:
    """The items of these kinds from the cursor on, as many as a page and `room` bytes hold. Each has `mcp_server`.

    Of long lists only the beginning is in the pages; everything in them can be read all the same.
    Raises `BadRequestError` for a cursor that is not one of ours, or whose server does not share anything now.
    """
    shelves = _shelves(shared, kinds)
    at, start = _place(cursor, shelves)
    page: dict[str, list[dict[str, Any]]] = {kind: [] for kind in kinds}
    size = values = count = 0
    for index in range(at, len(shelves)):
        server, kind, items = shelves[index]
        extra = len(codec.dumps({"mcp_server": server}).encode())
        for number in range(start, len(items)):
            item = items[number]
            size += len(item) + extra
            values += _values(item)
            is_full = count >= MAX_PAGE or values > _PAGE_VALUES or size > min(room, _PAGE_BYTES)
            if is_full and count:
                return SharedPage(page, _cursor(server, kind, number))
            page[kind].append({**codec.loads(item), "mcp_server": server})
            count += 1
        start = 0
    return SharedPage(page, None)


def _shelves(
    shared: Mapping[SERVER_NAME, SharedItems], kinds: Sequence[str]
) -> list[tuple[SERVER_NAME, str, Sequence[bytes]]]:
    """The items of each server and kind, those with few items whole."""
    shelves: dict[tuple[SERVER_NAME, str], Sequence[bytes]] = {
        (server, kind): getattr(items, kind) for server, items in shared.items() for kind in kinds
    }
    left = MAX_LISTED
    for number, key in enumerate(sorted(shelves, key=lambda key: len(shelves[key]))):
        shelves[key] = shelves[key][: left // (len(shelves) - number)]
        left -= len(shelves[key])
    return [(server, kind, items) for (server, kind), items in shelves.items()]


def _values(item: bytes) -> int:
    return sum(map(item.count, (b",", b"[", b"{")))


def _cursor(server: SERVER_NAME, kind: str, number: int) -> str:
    return base64.urlsafe_b64encode(codec.dumps([server, kind, number]).encode()).decode()


def _place(cursor: str | None, shelves: Iterable[tuple[SERVER_NAME, str, Sequence[bytes]]]) -> tuple[int, int]:
    """The shelf and the item at which the page begins."""
    if cursor is None:
        return 0, 0
    match _read(cursor):
        case [str(server), str(kind), int(number)] if number >= 0:
            for index, (name, each, _) in enumerate(shelves):
                if (name, each) == (server, kind):
                    return index, number
    raise BadRequestError("field 'cursor': not a cursor of the list as it is now; begin again", {"field": "cursor"})


def _read(cursor: str) -> Any:
    if len(cursor) > _LONGEST_CURSOR:
        return None
    try:
        return codec.loads(base64.b64decode(cursor, b"-_", validate=True))
    except (ValueError, binascii.Error):
        return None

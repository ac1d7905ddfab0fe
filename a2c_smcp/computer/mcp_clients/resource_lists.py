"""The windows and documents in an MCP server's list of resources, taken out a few at a time and within bounds.

mcp makes models of a whole page at once. A page may have a hundred thousand resources, most of them of no use here, so
the pages are taken out of the answers before mcp sees those (`Pages`), and looked through in slices (`ResourceList`).
"""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from mcp_types import Resource
from pydantic import ValidationError

from a2c_smcp.computer.utils.pool import slices
from a2c_smcp.utils.dpe_uri import is_dpe_uri
from a2c_smcp.utils.window_uri import is_window_uri

__all__ = ["MAX_DOCUMENTS", "MAX_WINDOWS", "ListedDocument", "ListedResource", "Pages", "ResourceList"]

#: How many of one server are looked at.
MAX_WINDOWS: Final = 10_000
MAX_DOCUMENTS: Final = 100_000

_WINDOWS: Final = "windows"
_DOCUMENTS: Final = "documents"
_MOST: Final[Mapping[str, int]] = {_WINDOWS: MAX_WINDOWS, _DOCUMENTS: MAX_DOCUMENTS}

_MAX_OTHERS: Final = 10_000

_PAGE: Final = "a2c-smcp/page"
_PAGES_KEPT: Final = 4


class Pages:
    """Pages on their way past mcp. Only the last few are kept: the callers of the others have given up."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._waiting: dict[int, list[Any]] = {}

    def take_out(self, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """An answer to `resources/list` without its resources, and a number to ask for them; others as they are."""
        resources = result.get("resources")
        if not isinstance(resources, list):
            return result
        number = next(self._numbers)
        self._waiting[number] = resources
        self._waiting.pop(number - _PAGES_KEPT, None)
        meta = result.get("_meta")
        return {**result, "resources": [], "_meta": {**(meta if isinstance(meta, dict) else {}), _PAGE: number}}

    def of(self, meta: Mapping[str, Any] | None) -> list[Any]:
        """The resources of the answer that has this `_meta`."""
        return self._waiting.pop((meta or {}).get(_PAGE, 0), [])


class ListedDocument(msgspec.Struct, frozen=True, gc=False):
    """What a list says of a document. No model: the garbage collector would look at each of a hundred thousand."""

    uri: str
    name: str
    description: str | None = None


ListedResource: TypeAlias = Resource | ListedDocument


class ResourceList:
    """A server's windows and documents, page by page; what is over the bounds, or no resource, is only counted."""

    def __init__(self) -> None:
        self.resources: list[ListedResource] = []
        self.others: set[int] = set()
        """The hashes of the first other URIs, which are of no use here but to tell that they are listed."""
        self._found: Counter[str] = Counter()
        self._invalid = 0

    async def add(self, page: Sequence[Any]) -> None:
        async for items in slices(page):
            for item in items:
                self._add(item)

    def _add(self, item: Any) -> None:
        uri = item.get("uri") if isinstance(item, dict) else None
        if not isinstance(uri, str):
            self._invalid += 1
            return
        kind = _WINDOWS if is_window_uri(uri) else _DOCUMENTS if is_dpe_uri(uri) else None
        if kind is None:
            if len(self.others) < _MAX_OTHERS:
                self.others.add(hash(uri))
            return
        self._found[kind] += 1
        if self._found[kind] > _MOST[kind]:
            return
        resource = _window(item) if kind is _WINDOWS else _document(item)
        if resource is None:
            self._invalid += 1
        else:
            self.resources.append(resource)

    @property
    def is_full(self) -> bool:
        """Whether more pages would change nothing."""
        return all(self._found[kind] > most for kind, most in _MOST.items())

    @property
    def ignored(self) -> str | None:
        """What is not looked at, in words."""
        over = [
            f"{self._found[kind] - most} {kind} over the first {most}"
            for kind, most in _MOST.items()
            if self._found[kind] > most
        ]
        invalid = [f"{self._invalid} that are no MCP resources"] if self._invalid else []
        return " and ".join([*over, *invalid]) or None


def _window(item: Mapping[str, Any]) -> Resource | None:
    try:
        return Resource.model_validate(item, by_name=False)
    except ValidationError:
        return None


def _document(item: Mapping[str, Any]) -> ListedDocument | None:
    name, description = item.get("name"), item.get("description")
    if not isinstance(name, str) or not isinstance(description, str | None):
        return None
    return ListedDocument(item["uri"], name, description)

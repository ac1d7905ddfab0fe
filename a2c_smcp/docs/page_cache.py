"""The pages that were read last, within a bound of memory. Pure."""

from typing import Any, TypeAlias

from a2c_smcp.mcp_server.documents import Page
from a2c_smcp.utils.bounded import BoundedDict

__all__ = ["PageCache", "page_cache"]

PageCache: TypeAlias = BoundedDict[tuple[Any, ...], Page]


def page_cache(most_bytes: int) -> PageCache:
    """A cache for pages of about so many bytes. Read it with `use`: then the pages that are not used go first."""
    return BoundedDict(heaviest=most_bytes, weigh=_size_of)


def _size_of(page: Page) -> int:
    return 200 + sum(300 + 2 * len(str(element.content)) for element in page.elements)

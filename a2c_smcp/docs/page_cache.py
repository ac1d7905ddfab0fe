"""The pages that were read last, within a bound of memory. Pure."""

from typing import Any

from a2c_smcp.mcp_server.documents import Page
from a2c_smcp.utils.bounded import BoundedDict

__all__ = ["PageCache"]


class PageCache:
    """The pages that were read last, up to a number of bytes."""

    def __init__(self, most_bytes: int) -> None:
        self._pages: BoundedDict[tuple[Any, ...], Page] = BoundedDict(heaviest=most_bytes, weigh=_size_of)

    @property
    def bytes(self) -> int:
        """About how much memory the pages take."""
        return self._pages.weight

    def get(self, key: tuple[Any, ...]) -> Page | None:
        if key in self._pages:
            self._pages.touch(key)
        return self._pages.get(key)

    def put(self, key: tuple[Any, ...], page: Page) -> None:
        self._pages.put(key, page)


def _size_of(page: Page) -> int:
    """About how much memory a page takes."""
    return 200 + sum(300 + 2 * len(str(element.content)) for element in page.elements)

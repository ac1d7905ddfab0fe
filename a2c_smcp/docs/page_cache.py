"""The pages that were read last, within a bound of memory. Pure."""

from collections import OrderedDict
from typing import Any

from a2c_smcp.mcp_server.documents import Page

__all__ = ["PageCache"]


class PageCache:
    """The pages that were read last, up to a number of bytes."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._pages: OrderedDict[tuple[Any, ...], tuple[Page, int]] = OrderedDict()
        self.bytes = 0

    def get(self, key: tuple[Any, ...]) -> Page | None:
        if key not in self._pages:
            return None
        self._pages.move_to_end(key)
        return self._pages[key][0]

    def put(self, key: tuple[Any, ...], page: Page) -> None:
        size = _size_of(page)
        if key in self._pages:
            self.bytes -= self._pages.pop(key)[1]
        self._pages[key] = page, size
        self.bytes += size
        while self.bytes > self._most and self._pages:
            self.bytes -= self._pages.popitem(last=False)[1][1]


def _size_of(page: Page) -> int:
    """About how much memory a page takes."""
    return 200 + sum(300 + 2 * len(str(element.content)) for element in page.elements)

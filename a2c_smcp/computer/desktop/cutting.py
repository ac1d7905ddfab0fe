"""How much of its windows a desktop shows: a part of each large one, and as many as fit into one message. Pure."""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mcp_types import BlobResourceContents, ReadResourceResult, TextResourceContents

from a2c_smcp.types import Desktop
from a2c_smcp.wire import DEFAULT_MAX_MESSAGE, codec, size_of

__all__ = ["MAX_WINDOW", "DesktopLimits", "Room", "cut_window", "text_bytes", "windows_within"]

#: How many bytes of one window's text a desktop shows by default.
MAX_WINDOW: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class DesktopLimits:
    """How many bytes one window of a desktop may have, and how many the whole desktop."""

    window: int = MAX_WINDOW
    message: int = DEFAULT_MAX_MESSAGE

    @property
    def shown(self) -> int:
        """How much of one window is shown. At least eight windows fit into one message."""
        return min(self.window, self.message // 8)


def text_bytes(result: ReadResourceResult) -> int:
    """How many bytes of text a window holds."""
    return sum(size_of(content.text) for content in result.contents if isinstance(content, TextResourceContents))


def cut_window(result: ReadResourceResult, most: int) -> ReadResourceResult:
    """A window with at most `most` bytes of text, and a mark if something is missing. Blobs are emptied."""
    total, left = text_bytes(result), most
    contents: list[TextResourceContents | BlobResourceContents] = []
    for content in result.contents:
        if isinstance(content, BlobResourceContents):
            contents.append(content.model_copy(update={"blob": ""}))
        elif total <= most:
            contents.append(content)
        elif left > 0:
            text = _first_bytes(content.text, left)
            left = left - size_of(text) if text == content.text else 0
            contents.append(content.model_copy(update={"text": text}))
    if total > most:
        mark = f"[cut: {most} of {total} bytes are shown; ask for this window alone to have it whole]"
        contents.append(TextResourceContents(uri=result.contents[0].uri, text=mark))
    return result.model_copy(update={"contents": contents})


def _first_bytes(text: str, most: int) -> str:
    """As many characters from the beginning as fit."""
    text = text[:most]  # a character has at least one byte
    return text if size_of(text) <= most else text.encode("utf-8", "surrogatepass")[:most].decode("utf-8", "ignore")


def windows_within(desktops: Sequence[Desktop], most: int) -> list[Desktop]:
    """The first windows that fit into `most` bytes of JSON. The most important windows come first."""
    fit: list[Desktop] = []
    most -= 1  # two brackets, and one comma less than there are windows
    for desktop in desktops:
        most -= size_of(codec.dumps(desktop)) + 1
        if most < 0:
            break
        fit.append(desktop)
    return fit


class Room:
    """Decides which windows to keep while others are still being read.

    A more important window may come later. Then the least important one that was kept has to go.
    """

    def __init__(self, most: int) -> None:
        self._left = most
        self._kept: list[tuple[int, int]] = []
        self._full_from: float = math.inf

    def takes(self, rank: int) -> bool:
        """Whether there may be room for a window of this rank, 0 being the most important one."""
        return rank < self._full_from

    def keep(self, rank: int, size: int) -> list[int]:
        """Keep a window of this rank and size. Returns the ranks that have to go for it."""
        heapq.heappush(self._kept, (-rank, size))
        self._left -= size
        gone = []
        while self._left < 0:
            negative, freed = heapq.heappop(self._kept)
            self._left += freed
            self._full_from = min(self._full_from, -negative)
            gone.append(-negative)
        return gone

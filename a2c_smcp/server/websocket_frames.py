"""Where websocket frames end. Pure."""

__all__ = ["FrameFinder"]


class FrameFinder:
    """Finds where websocket frames end. Reads only their headers (RFC 6455, 5.2)."""

    def __init__(self) -> None:
        self._left = 0

    def end_of(self, data: bytes, start: int, most: int) -> tuple[int, bool]:
        """Where the first `most` frames end, and whether there are more. Half a header is left for later."""
        size = len(data)
        at = min(start + self._left, size)
        self._left -= at - start
        while at + 2 <= size:
            if most == 0:
                return at, True
            length, head = data[at + 1] & 0x7F, 2
            if length > 125:
                wide = 2 if length == 126 else 8
                head += wide
                if at + head > size:
                    break
                length = int.from_bytes(data[at + 2 : at + head], "big")
            if data[at + 1] & 0x80:
                head += 4
            most -= 1
            end = at + head + length
            at, self._left = min(end, size), max(0, end - size)
        return at, False

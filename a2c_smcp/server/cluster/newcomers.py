"""Frames of processes that the copy of the membership does not show yet. Pure: the clock is handed in.

A process may write before the others have heard of its lease: NATS may deliver the frame first. Anybody may write in
the name of a process that does not exist. So there is little room, for all of them together, and for a short time.
"""

from collections import deque

from a2c_smcp.server.cluster import tuning
from a2c_smcp.server.cluster.seal import DroppedFrameError, OpenedFrame

__all__ = ["Newcomers"]


class Newcomers:
    """Keeps frames in the order in which they came."""

    def __init__(self) -> None:
        self._frames: deque[tuple[float, str, OpenedFrame]] = deque()
        self._size = 0

    def __len__(self) -> int:
        return len(self._frames)

    def add(self, sender: str, opened: OpenedFrame, now: float) -> None:
        """Keep a frame; raises `DroppedFrameError` when there is no room."""
        if (
            len(self._frames) >= tuning.BOUNDS.newcomer_frames
            or self._size + len(opened.frame) > tuning.BOUNDS.newcomer_bytes
        ):
            raise DroppedFrameError("unknown")
        self._frames.append((now, sender, opened))
        self._size += len(opened.frame)

    def senders(self) -> set[str]:
        return {sender for _, sender, _ in self._frames}

    def take(self, sender: str) -> list[OpenedFrame]:
        """The frames of a process that is known now. They are not kept any longer."""
        taken = [opened for _, name, opened in self._frames if name == sender]
        self._keep([entry for entry in self._frames if entry[1] != sender])
        return taken

    def expire(self, now: float) -> int:
        """Forget those that have waited for too long, and say how many they were."""
        before = len(self._frames)
        self._keep([entry for entry in self._frames if now - entry[0] < tuning.TIMES.newcomer])
        return before - len(self._frames)

    def clear(self) -> None:
        self._keep([])

    def _keep(self, frames: list[tuple[float, str, OpenedFrame]]) -> None:
        self._frames = deque(frames)
        self._size = sum(len(opened.frame) for _, _, opened in frames)

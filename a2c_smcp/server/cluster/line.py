"""The way to one other process: frames and chunked texts to it, and what is known of it."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from a2c_smcp.server.cluster import tuning
from a2c_smcp.server.cluster.bus import BusObserver
from a2c_smcp.server.cluster.bus_frames import CHUNK_BYTES, BusFrame, FrameText, encode, kind_of
from a2c_smcp.server.cluster.clock import now as elapsed
from a2c_smcp.server.cluster.peers import ProcessHealth, RemoteClock
from a2c_smcp.server.cluster.post import ChunkWindow, Letter, Post
from a2c_smcp.server.cluster.seal import FrameSeal

__all__ = ["REMEMBERED_FOR_CUTS", "ProcessLine", "Subjects"]

#: Seconds for which is remembered what has to be said again after a cut. Who was cut off for longer has lost its lease.
REMEMBERED_FOR_CUTS: Final = 20.0


class Subjects:
    """Where the frames of processes go, and how their senders are told."""

    def __init__(self, prefix: str) -> None:
        self._prefix = f"{prefix}.p."

    def all_of(self, process: str) -> str:
        """What a process subscribes to."""
        return f"{self._prefix}{process}.>"

    def inbox_of(self, process: str) -> str:
        return f"{self._prefix}{process}.m"

    def reply(self, sender: str, receiver: str, number: int) -> str:
        """Where NATS says that nobody took a frame; the number is that of an `AskFrame`, or 0."""
        return f"{self._prefix}{sender}.r.{receiver}.{number}"

    def read_reply(self, subject: str) -> tuple[str, str, int]:
        """Sender, receiver and number, or `ValueError`."""
        sender, _, receiver, number = subject.removeprefix(self._prefix).split(".")
        return sender, receiver, int(number)


class ProcessLine:
    """Everything that is sent to one process, and how it answers."""

    def __init__(
        self, me: str, process: str, subjects: Subjects, post: Post, seal: FrameSeal, observer: BusObserver
    ) -> None:
        self.process = process
        self.health = ProcessHealth()
        self.clock = RemoteClock()
        self.window = ChunkWindow(tuning.BOUNDS.chunks)
        self._me = me
        self._subjects = subjects
        self._inbox = subjects.inbox_of(process)
        self._no_number = subjects.reply(me, process, 0)
        self._post = post
        self._seal = seal
        self._observer = observer
        self._queued = 0
        self._cuts = 0

    def send(self, frame: BusFrame, text: FrameText = b"", *, keep: float = 0.0) -> None:
        """Send a frame; if NATS is out of reach, keep it for so many seconds."""
        self.send_encoded(kind_of(frame), encode(frame, text), keep=keep)

    def send_encoded(
        self,
        kind: str,
        payload: bytes,
        *,
        number: int = 0,
        keep: float = 0.0,
        undelivered: Callable[[], None] | None = None,
    ) -> None:
        reply = self._subjects.reply(self._me, self.process, number) if number else self._no_number
        keep_until = asyncio.get_running_loop().time() + keep if keep else 0.0
        sealed = self._seal.sign(self._me, self.process, payload, elapsed())
        self._post.post(Letter(self._inbox, sealed, reply, keep_until, undelivered))
        self._observer.sent_across(kind)

    @contextmanager
    def room_for(self, size: int) -> Iterator[bool]:
        """Room for a text to wait in until it is sent, inside the block; `False` when too much waits already."""
        if size > CHUNK_BYTES and self._queued + size > tuning.BOUNDS.queued_bytes:
            yield False
            return
        self._queued += size
        try:
            yield True
        finally:
            self._queued -= size

    async def send_chunks(self, data: bytes, frame_at: Callable[[int], BusFrame | None], *, keep: float = 0.0) -> bool:
        """Send a text in chunks, each in the frame that is made for its place when its turn comes. Returns `False` when
        it was not sent to its end: no frame was made, the receiver counts as gone, or one of the two was cut off.
        """
        cuts, view = self._cuts, memoryview(data)
        for start in range(0, len(data), CHUNK_BYTES):
            if not await self.window.take() or self._cuts != cuts:
                return False
            if (frame := frame_at(start)) is None:
                self.window.give()
                return False
            self.send(frame, view[start : start + CHUNK_BYTES], keep=keep)
        return True

    def cut(self) -> None:
        """One of the two was cut off from NATS: chunks that were on their way are lost, and so is every text of which
        they were a part.
        """
        self._cuts += 1
        self.window.close()

    def count_as_gone(self) -> None:
        """Begin anew with it: what it was is not what it will be."""
        self.clock = RemoteClock()
        self.health.nobody_waits()
        self.window.close()

"""The way to one other process: frames and chunked texts to it, and what is known about it."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from a2c_smcp.server.cluster import tuning
from a2c_smcp.server.cluster.bus import BusObserver
from a2c_smcp.server.cluster.bus_frames import BusFrame, FrameText, encode, kind_of
from a2c_smcp.server.cluster.clock import now as elapsed
from a2c_smcp.server.cluster.peers import ProcessHealth, RemoteClock
from a2c_smcp.server.cluster.post import ChunkWindow, Letter, Post
from a2c_smcp.server.cluster.seal import FrameSeal

__all__ = ["ProcessLine", "Subjects"]


class Subjects:
    """The NATS subjects of processes: where frames go, and where their senders hear that nobody took one."""

    def __init__(self, prefix: str) -> None:
        self._prefix = f"{prefix}.p."

    def all_of(self, process: str) -> str:
        """What a process subscribes to."""
        return f"{self._prefix}{process}.>"

    def probe_of(self, process: str) -> str:
        """By which a process sees whether it hears anything."""
        return f"{self._prefix}{process}.probe"

    def inbox_of(self, process: str) -> str:
        return f"{self._prefix}{process}.m"

    def reply(self, sender: str, receiver: str, number: int) -> str:
        """Where NATS says that nobody took a frame. The number is that of an `AskFrame`, or 0."""
        return f"{self._prefix}{sender}.r.{receiver}.{number}"

    def read_reply(self, subject: str) -> tuple[str, str, int]:
        """The sender, the receiver and the number. Raises `ValueError` for other subjects."""
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
        """Send a frame. If NATS is out of reach, keep the frame for `keep` seconds."""
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
        """Reserve room for a text that waits to be sent, inside the block. Gives `False` if too much waits already."""
        if size > tuning.BOUNDS.chunk_bytes and self._queued + size > tuning.BOUNDS.queued_bytes:
            yield False
            return
        self._queued += size
        try:
            yield True
        finally:
            self._queued -= size

    async def send_chunks(self, data: bytes, frame_at: Callable[[int], BusFrame | None], *, keep: float = 0.0) -> bool:
        """Send a text in chunks. When the turn of a chunk comes, `frame_at` gets its position in the text and makes
        its frame.

        Returns `False` if the text was not sent to its end: `frame_at` returned `None`, the receiver counts as gone, or
        one of the two processes was cut off.
        """
        cuts, view = self._cuts, memoryview(data)
        for start in range(0, len(data), tuning.BOUNDS.chunk_bytes):
            if not await self.window.take() or self._cuts != cuts:
                return False
            if (frame := frame_at(start)) is None:
                self.window.give()
                return False
            self.send(frame, view[start : start + tuning.BOUNDS.chunk_bytes], keep=keep)
        return True

    def cut(self) -> None:
        """One of the two processes was cut off from NATS. Chunks that were on their way are lost, and so are the texts
        that they belong to.
        """
        self._cuts += 1
        self.window.close()

    def count_as_gone(self) -> None:
        """Forget what is known about the process."""
        self.clock = RemoteClock()
        self.health.nobody_waits()
        self.window.close()

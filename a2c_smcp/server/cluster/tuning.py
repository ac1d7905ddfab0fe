"""The numbers by which server processes wait for NATS and for each other, and how much they keep meanwhile."""

from dataclasses import dataclass
from typing import Final

__all__ = ["BOUNDS", "TIMES", "ClusterBounds", "ClusterTimes"]


@dataclass(frozen=True, slots=True)
class ClusterTimes:
    """All in seconds."""

    retry: float = 0.5
    """Between two attempts at something that failed, or that goes on although it was cancelled."""
    nats_connect: int = 2
    """For one attempt to connect to NATS."""
    nats_ping: int = 1
    """Between pings to NATS. With the 120 s of nats-py a silent server would be noticed after minutes."""
    nats_answer: float = 2.0
    """For an answer of NATS. It takes about a millisecond; without a leader it does not come."""
    nats_check: float = 3.0
    """For one step of the doctor."""
    bucket_look: float = 10.0
    """For a look at the whole bucket. Ten thousand keys take 0.15 s."""
    revision: float = 5.0
    """For which a caller waits until a revision is known here."""
    max_silence: float = 3.0
    """After so much silence a process that is waited for counts as gone."""
    quiet: float = 5.0
    """After so much silence this process stops working for another: later than that one has given up. It is
    counted in pings, of a second each."""
    refusals_apart: float = 2.0
    """Two refusals so far apart say that nobody is there: one alone may come upon a process that connects again."""
    refusals_together: float = 10.0
    """Refusals further apart than this have nothing to do with each other."""
    slack: float = 0.1
    """Timers are not exact."""
    clock_is_fresh: float = 60.0
    """How long the other clock is known. Clocks run at slightly different speeds: 60 s make a few milliseconds."""
    longest_exchange: float = 1.0
    """An exchange that took longer says too little of the other clock."""
    fresh_pong: float = 60.0
    """After which a new pong is wanted. A clock that is being corrected runs up to a tenth too fast."""
    newcomer: float = 5.0
    """For which the frames of a process are kept that the copy of the membership does not show yet."""
    chunk: float = 5.0
    """In which at least one chunk must arrive while others wait for their turn."""
    look_for_room: float = 0.05
    """Between looks whether NATS is back, while something waits for it."""
    claim_pauses: tuple[float, float] = (0.01, 0.5)
    """The first and the longest pause before a join looks again at a key that others change meanwhile. While NATS
    elects a leader, it refuses changes for the sake of one that is then lost."""
    flush: float = 1.0
    """For the last answers to leave when a process ends."""


@dataclass(frozen=True, slots=True)
class ClusterBounds:
    """How much is kept, and how much may be under way."""

    newcomer_frames: int = 256
    """Frames of processes that are not known yet, of all of them together."""
    newcomer_bytes: int = 1024 * 1024
    gone: int = 1000
    """Processes that have gone, of which is remembered that nothing more is taken."""
    graves: int = 10_000
    """Revisions of deleted keys that are remembered. A claim at a forgotten one costs a look into the bucket."""
    cancels: int = 10_000
    """Announcements that are repeated each for itself, after a cut."""
    cancels_of_one: int = 1024
    """Of these, those of one session: as many as its calls under way, so that one does not take all places."""
    cancel_characters: int = 1024
    chunks: int = 4
    """Chunks that may be on their way to one process."""
    queued_bytes: int = 64 * 1024 * 1024
    """Bytes of chunked texts that may wait to be sent to one process."""
    unsent_bytes: int = 32 * 1024 * 1024
    """Bytes that may wait for NATS before requests and announcements are refused. As many may be in the connection."""
    held_characters: int = 4 * 1024 * 1024
    """Characters of one session's announcements that wait for its own errands to be sent."""
    changes: int = 64
    """Claims and deletions that NATS is asked for at a time. When thousands come back at once, the last one must not
    find its time for an answer over before it is sent."""
    claim_attempts: int = 20
    """How often a join looks at a key that others change meanwhile."""
    tidied: int = 100
    """Claims of processes that have gone that are deleted at a time."""


TIMES: Final = ClusterTimes()
BOUNDS: Final = ClusterBounds()

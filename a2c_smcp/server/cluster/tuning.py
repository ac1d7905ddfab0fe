"""How long server processes wait for NATS and for each other, and how much they keep meanwhile."""

from dataclasses import dataclass
from typing import Final

__all__ = ["BOUNDS", "TIMES", "ClusterBounds", "ClusterTimes"]


@dataclass(frozen=True, slots=True)
class ClusterTimes:
    """All in seconds."""

    ping: float = 1.0
    """How often a process that waits for another asks whether it is there."""
    remembered_for_cuts: float = 20.0
    """How long announcements and withdrawn requests are remembered: after a cut they must be sent again. A process
    that was cut off for longer has lost its lease."""
    keep_answers: float = 5.0
    """How long an answer may wait for NATS. After that its caller has given up."""
    near_the_end: float = 2.0
    """A request is too late only this near to its deadline: the process that is asked gives up a second early, and
    differences of the clocks and the way cost another second."""
    retry: float = 0.5
    """Between two attempts at something that failed, or between two cancellations of a task that did not end."""
    nats_connect: int = 2
    """For one attempt to connect to NATS."""
    nats_ping: int = 1
    """Between pings to NATS. With the 120 s of nats-py a silent server would be noticed after minutes."""
    nats_answer: float = 2.0
    """For an answer of NATS. It takes about a millisecond. Without a leader it does not come."""
    nats_check: float = 3.0
    """For one step of the doctor."""
    bucket_look: float = 10.0
    """For a look at the whole bucket. Ten thousand keys take 0.15 s."""
    revision: float = 5.0
    """How long a caller that waits for a revision waits for anything new at all."""
    behind: float = 15.0
    """How long it waits while there is something new all the time: when very many join at once, a process needs seconds
    to take their changes in. Clients wait for 20 s."""
    max_silence: float = 3.0
    """A process that is waited for counts as gone after this silence."""
    quiet: float = 5.0
    """After this silence, this process stops working for another one, which has given up by then. It is counted in
    pings."""
    refusals_apart: float = 2.0
    """Two refusals this far apart mean that nobody is there. A single one may come while a process reconnects."""
    refusals_together: float = 10.0
    """Refusals further apart than this are independent of each other."""
    slack: float = 0.1
    """By how much a timer may be wrong."""
    clock_is_fresh: float = 60.0
    """How long a reading of the other clock counts. Clocks differ in speed, by a few milliseconds in 60 s."""
    longest_exchange: float = 1.0
    """An exchange that took longer says too little about the other clock."""
    fresh_pong: float = 60.0
    """After this time a new pong is wanted. A clock that is being corrected runs up to a tenth too fast."""
    newcomer: float = 5.0
    """How long frames are kept if the copy of the membership does not show their sender yet."""
    chunk: float = 5.0
    """Within this time at least one chunk must arrive, while other chunks wait for their turn."""
    look_for_room: float = 0.05
    """Between two checks whether NATS is back, while something waits for it."""
    claim_pauses: tuple[float, float] = (0.01, 0.5)
    """The first and the longest pause before a join looks again at a key that others change meanwhile. While NATS
    elects a leader, it may refuse a change because of another change, which is then lost."""
    flush: float = 1.0
    """How long the last answers may take to leave when a process ends."""


@dataclass(frozen=True, slots=True)
class ClusterBounds:
    """How much is kept, and how much may be under way."""

    notice_characters: int = 128 * 1024
    """Characters of an announcement, which is not cut into chunks: 512 KiB in UTF-8 at most. NATS takes 1 MiB."""
    named: int = 10_000
    """Requests that one ping names."""
    newcomer_frames: int = 256
    """Frames of processes that are not known yet, of all of them together."""
    newcomer_bytes: int = 1024 * 1024
    gone: int = 1000
    """Processes that have gone and are remembered, so that nothing more is taken in their name."""
    graves: int = 10_000
    """Revisions of deleted keys that are remembered. A claim at a forgotten key costs a look into the bucket."""
    cancels: int = 10_000
    """Announcements that do not collapse, and that are repeated after a cut."""
    cancels_of_one: int = 1024
    """How many of these announcements one session may have: one for each call that it may have under way."""
    cancel_characters: int = 1024
    chunk_bytes: int = 128 * 1024
    """Bytes of a text in one frame. A small frame waits for the frames before it on the same connection: it waited
    100 ms for 16 MB in one piece."""
    chunks: int = 4
    """Chunks that may be on their way to one process."""
    queued_bytes: int = 64 * 1024 * 1024
    """Bytes of chunked texts that may wait to be sent to one process."""
    unsent_bytes: int = 32 * 1024 * 1024
    """Bytes that may wait for NATS before requests and announcements are refused. The network may hold as many
    again.
    """
    held_characters: int = 4 * 1024 * 1024
    """Characters of one session's announcements that wait until its own requests are sent."""
    changes: int = 64
    """Claims and deletions that NATS is asked for at a time. When thousands of clients come back at once, the last
    request must not time out before it is sent."""
    claim_attempts: int = 20
    """How often a join looks at a key that others change meanwhile."""
    superseded: int = 10_000
    """Sessions of other processes whose place newer sessions have, and whose last requests may still come."""
    tidied: int = 100
    """Claims of gone processes that are deleted at a time."""


TIMES: Final = ClusterTimes()
BOUNDS: Final = ClusterBounds()

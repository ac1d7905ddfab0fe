"""Where websocket frames end."""

import itertools
import random

from a2c_smcp.server.websocket_frames import FrameFinder
from tests.server.raw import frame


def test_frames_are_found_however_they_arrive() -> None:
    chance = random.Random(7)
    sizes = [chance.choice([0, 1, 125, 126, 200, 65535, 65536, 70000]) for _ in range(60)]
    stream = b"".join(frame(b"x" * size) for size in sizes)
    ends = set(itertools.accumulate(len(frame(b"x" * size)) for size in sizes))
    for longest in (1, 3, 100, 5000, 10**6):
        frames, held, fed, batches = FrameFinder(), b"", 0, 0
        at = 0
        while at < len(stream):
            step = chance.randint(1, longest)
            held += stream[at : at + step]
            at += step
            more = True
            while more:
                end, more = frames.end_of(held, 0, 4)
                fed, held = fed + end, held[end:]
                batches += 1
                if more:
                    assert fed in ends
            assert len(held) < 10
        assert fed == len(stream)

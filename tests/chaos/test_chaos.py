"""Twenty seconds of chaos; `make chaos` has five minutes of it."""

from pathlib import Path

import pytest

from tests.chaos.world import World


@pytest.mark.timeout(300)
def test_nothing_is_lost_run_twice_or_left_over(tmp_path: Path) -> None:
    # A process of a busy machine may stand still for seconds; what is noticed by its silence takes longer still.
    with World(tmp_path, seed=7, whole_seconds=12.0) as world:
        world.run(20)
        problems = world.settle()
    assert problems == [], world.summary()

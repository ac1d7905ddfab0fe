"""A thousand hostile frames for each server; `make fuzz` has twenty thousand."""

from pathlib import Path

import pytest

from tests.fuzz.nats_frames import fuzz_nats
from tests.fuzz.run import fuzz


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["async", "threaded"])
def test_every_event_that_decodes_is_answered_and_nothing_is_kept(tmp_path: Path, kind: str) -> None:
    assert fuzz(tmp_path, kind, 1_000, seed=11) == []


@pytest.mark.timeout(300)
def test_no_frame_on_nats_that_is_not_honest_is_acted_on(tmp_path: Path) -> None:
    assert fuzz_nats(tmp_path, 1_000, seed=11) == []

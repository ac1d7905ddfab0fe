"""A thousand hostile frames for each server, and a few hostile conversations over HTTP; `make fuzz` has many more."""

from pathlib import Path

import pytest

from tests.fuzz.http_surfaces import fuzz_surface
from tests.fuzz.nats_frames import fuzz_nats
from tests.fuzz.run import fuzz


@pytest.mark.timeout(300)
def test_every_event_that_decodes_is_answered_and_nothing_is_kept(tmp_path: Path) -> None:
    assert fuzz(tmp_path, 1_000, seed=11) == []


@pytest.mark.timeout(300)
def test_no_frame_on_nats_that_is_not_honest_is_acted_on(tmp_path: Path) -> None:
    assert fuzz_nats(tmp_path, 1_000, seed=11) == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["console", "kit"])  # the bridge is served as the kit is
def test_a_surface_answers_its_own_session_and_keeps_no_connection(tmp_path: Path, name: str) -> None:
    assert fuzz_surface(tmp_path, name, 150, seed=2) == []

"""How long a join waits for its own change to come back from NATS."""

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest

from a2c_smcp.errors import InternalError
from a2c_smcp.server.cluster import tuning
from a2c_smcp.server.cluster.keys import Entry
from a2c_smcp.server.cluster.watcher import ReplicaWatcher


def watcher() -> ReplicaWatcher:
    """One whose entries come from the test. It looks at no bucket."""
    return ReplicaWatcher(cast(Any, None), lambda changes: None)


async def show(watched: ReplicaWatcher, revisions: range, apart: float) -> None:
    for revision in revisions:
        await asyncio.sleep(apart)
        watched._take(Entry("n.process", revision, b""), 0)


@pytest.fixture
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "TIMES", replace(tuning.TIMES, revision=1.0, behind=4.0))


@pytest.mark.usefixtures("short_times")
async def test_a_revision_is_waited_for_while_others_before_it_are_shown() -> None:
    watched = watcher()
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        tasks.create_task(show(watched, range(1, 7), 0.3))
        await watched.reached(6)  # after 1.8 s; nothing new for 1 s would have ended the wait
    assert watched.revision == 6


@pytest.mark.usefixtures("short_times")
async def test_the_wait_ends_when_nothing_new_is_shown_and_when_it_is_too_far_away() -> None:
    watched = watcher()
    with pytest.raises(InternalError, match="in time"):
        await watched.reached(1)
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        showing = tasks.create_task(show(watched, range(1, 1000), 0.1))
        with pytest.raises(InternalError, match="in time"):
            await watched.reached(1000)
        showing.cancel()
    assert watched.revision > 1

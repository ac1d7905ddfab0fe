"""The harness itself: a pair that is left alone is unharmed, and one whose server is stopped is not."""

import signal
import time
from pathlib import Path

import pytest

from tests.attack.harness import honest_pair, target


@pytest.mark.parametrize("kind", ["async", "threaded"])
def test_a_pair_that_is_left_alone_is_unharmed(tmp_path: Path, kind: str) -> None:
    with target(tmp_path, kind, api_key="secret") as server, honest_pair(server) as pair:
        phase = pair.unharmed_by(lambda: None)
        assert phase.calls > 5


def test_a_server_that_is_frozen_for_a_while_is_noticed(tmp_path: Path) -> None:
    with target(tmp_path) as server, honest_pair(server) as pair:

        def freeze() -> None:
            server.process.signal(signal.SIGSTOP)
            time.sleep(9)  # the agent may be held up, too, and call later
            server.process.signal(signal.SIGCONT)

        assert pair.watch(freeze, at_least=10).slowest > 1.5

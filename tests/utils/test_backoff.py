import pytest

from a2c_smcp.utils.backoff import backoff


@pytest.mark.parametrize(("failures", "pause"), [(0, 0.5), (1, 0.5), (2, 1), (3, 2), (6, 16), (7, 30), (10**9, 30)])
def test_the_pause_doubles_with_every_failure_up_to_the_longest(failures: int, pause: float) -> None:
    assert backoff(failures, 0.5, 30) == pause

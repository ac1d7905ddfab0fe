"""Three hundred hostile answers for an agent; `make fuzz` has ten thousand."""

import pytest

from tests.fuzz.answers import fuzz_answers


@pytest.mark.timeout(300)
def test_an_agent_reads_whatever_a_computer_answers() -> None:
    assert fuzz_answers(300, seed=11) == []

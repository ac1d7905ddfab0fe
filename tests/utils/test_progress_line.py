"""Progress as a line for a terminal."""

import pytest

from a2c_smcp.terminal.progress_line import progress_line


@pytest.mark.parametrize(
    ("progress", "total", "expected"),
    [
        (0, 10, "░" * 20 + "   0%"),
        (5, 10, "█" * 10 + "░" * 10 + "  50%"),
        (9.99, 10, "█" * 19 + "░" + "  99%"),
        (10, 10, "█" * 20 + " 100%"),
        (12, 10, "█" * 20 + " 100%"),
        (-1, 10, "░" * 20 + "   0%"),
        (1234, None, "1,234"),
        (0.5, None, "0.5"),
        (7, 0, "7"),
        (0, None, "0"),
    ],
)
def test_a_bar_where_the_total_is_known_and_a_number_where_it_is_not(
    progress: float, total: float | None, expected: str
) -> None:
    assert progress_line(progress, total, None) == expected


def test_a_message_stands_behind_and_cannot_move_the_cursor() -> None:
    assert progress_line(1, None, "half\x1b[2J\nway") == "1  half\\u001b[2J\\nway"
    assert progress_line(0, None, "waiting\n") == "waiting\\n"
    assert progress_line(0, 2, "waiting") == "░" * 20 + "   0%  waiting"

"""The text of a window, within its budget: a head that says what it is, and a body. Pure."""

import re
from collections.abc import Sequence
from typing import Final, Literal

from a2c_smcp.utils.text import printable

__all__ = ["DEFAULT_BUDGET", "window_text"]

#: Characters that a window shows at most. A screen of 100 columns and 30 rows has 3,000.
DEFAULT_BUDGET: Final = 8_000
#: Joiners between letters that are not ASCII, and braille without dots, which programs draw graphs with.
_JOINED: Final = re.compile("((?<=[^\x00-\x7f])[\u200c\u200d](?=[^\x00-\x7f])|\u2800)")


def window_text(
    head: Sequence[str], body: Sequence[str], budget: int = DEFAULT_BUDGET, *, keep: Literal["start", "end"] = "end"
) -> str:
    """The head, a rule, and as much of the body as fits: its end, or its start. A line that is too long is cut."""
    # Half of the budget is for the body, whatever the head says.
    top = _fitting([_shown(line) for line in head], budget // 2, "…")
    lines = [_shown(line) for line in (body if keep == "start" else reversed(body))]
    which = "more" if keep == "start" else "earlier"
    kept = _fitting(lines, budget - sum(len(line) + 1 for line in top), f"… {{}} {which} lines")
    return "\n".join([*top, "", *(kept if keep == "start" else reversed(kept))])


def _shown(line: str) -> str:
    """The line with escapes for what nobody would see. Emoji and scripts that are written with joiners stay whole."""
    parts = _JOINED.split(line)
    return "".join(part if number % 2 else printable(part) for number, part in enumerate(parts))


def _fitting(lines: Sequence[str], room: int, rest: str) -> list[str]:
    """The first lines that fit. The last line says how many do not."""
    kept: list[str] = []
    room -= len(rest) + 10
    for number, line in enumerate(lines):
        if room <= 1:
            return [*kept, rest.format(len(lines) - number)]
        kept.append(line if len(line) < room else line[: room - 1] + "…")
        room -= len(kept[-1]) + 1
    return kept

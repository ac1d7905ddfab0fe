"""When a wait for a terminal is over. Pure: what the terminal shows is handed in.

Patterns are texts with `*` for anything on the same line. They are not regular expressions: some of those take hours.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from a2c_smcp.windows.terminal_state import TerminalState

__all__ = ["Awaited", "matches"]

_WAITING = (TerminalState.WAITS_FOR_INPUT, TerminalState.WAITS_FOR_PASSWORD, TerminalState.IDLE)


@dataclass(frozen=True, slots=True)
class Awaited:
    """What a caller waits for: the first of these that comes. The end of the program always counts."""

    patterns: Sequence[str] = ()
    silence: float | None = None
    """Seconds without output."""
    for_input: bool = False
    """That the program waits for input, or the shell for a command."""

    def reached(
        self,
        lines: Sequence[str],
        silent: float,
        state: TerminalState,
        exit_words: str | None,
        typed: Iterable[str] = (),
    ) -> str | None:
        """What has come, in words; `None` if the wait goes on. `typed` are lines that the terminal echoes."""
        for pattern in self.patterns:
            printed = _without_echoes(lines, [line for line in typed if matches(pattern, line)])
            if (line := next((line for line in printed if matches(pattern, line)), None)) is not None:
                return f"{pattern!r} is there: {line.strip()}"
        if exit_words is not None:
            return f"the program has ended: {exit_words}"
        if self.for_input and state in _WAITING:
            return f"the terminal {state.words}"
        if self.silence is not None and silent >= self.silence:
            return f"nothing was printed for {self.silence:g} s"
        return None


def _without_echoes(lines: Sequence[str], typed: Sequence[str]) -> list[str]:
    """The lines from the last one on, without the echo of each line that was typed."""
    result = list(reversed(lines))
    for echo in reversed(typed):
        at = next((at for at, line in enumerate(result) if line.rstrip().endswith(echo.rstrip())), None)
        if at is not None:
            result[at] = result[at].rstrip().removesuffix(echo.rstrip())
    return result


def matches(pattern: str, line: str) -> bool:
    """Whether the line holds the pattern, where `*` stands for any characters."""
    start = 0
    for part in pattern.split("*"):
        found = line.find(part, start)
        if found < 0:
            return False
        start = found + len(part)
    return True

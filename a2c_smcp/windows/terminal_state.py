"""What a terminal is doing: its state, and the priority of its window. Pure: others look at the processes."""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from a2c_smcp.utils.pace import Pace

__all__ = ["Foreground", "ShownPriority", "TerminalState", "describe_exit_code", "state_of"]


class TerminalState(Enum):
    """The value is the priority of the window."""

    WAITS_FOR_PASSWORD = 90
    WAITS_FOR_INPUT = 80
    FAILED = 70
    RUNNING = 50
    IDLE = 20
    ENDED = 10

    @property
    def words(self) -> str:
        return _WORDS[self]


_WORDS: Final = {
    TerminalState.WAITS_FOR_PASSWORD: "waits for a password: what is typed is not shown",
    TerminalState.WAITS_FOR_INPUT: "waits for input",
    TerminalState.FAILED: "has failed",
    TerminalState.RUNNING: "is running",
    TerminalState.IDLE: "is idle: the shell waits for a command",
    TerminalState.ENDED: "has ended",
}


@dataclass(frozen=True, slots=True)
class Foreground:
    """What is known of the program that has the terminal now."""

    reads: bool
    """Whether it waits until somebody types."""
    is_idle_shell: bool
    """Whether it is a shell that the terminal was opened with, and waits for the next command."""
    echoes: bool
    """Whether the terminal shows what is typed."""
    by_line: bool
    """Whether the terminal hands on whole lines only. Prompts with line editing read key by key, and so does vim."""


def state_of(exit_code: int | None, foreground: Foreground | None) -> TerminalState:
    """The state of a terminal. `exit_code` is that of the program it was opened with, `None` while that runs."""
    if exit_code is not None:
        return TerminalState.FAILED if exit_code else TerminalState.ENDED
    if foreground is None:
        return TerminalState.RUNNING
    if foreground.by_line and not foreground.echoes:
        return TerminalState.WAITS_FOR_PASSWORD
    if not foreground.reads:
        return TerminalState.RUNNING
    return TerminalState.IDLE if foreground.is_idle_shell else TerminalState.WAITS_FOR_INPUT


def describe_exit_code(exit_code: int) -> str:
    """`exit code 2`, or the signal that ended the program."""
    import signal

    if exit_code >= 0:
        return f"exit code {exit_code}"
    try:
        return f"ended by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"ended by signal {-exit_code}"


@dataclass(frozen=True, slots=True)
class ShownPriority:
    """The priority in a window's URI. It follows the state, but every few seconds at most: each change is a new URI."""

    shown: int
    pace: Pace

    def follow(self, state: TerminalState, now: float) -> "ShownPriority":
        """The priority to show now. Ask again at `pace.due`, if that is set."""
        if state.value == self.shown:
            return replace(self, pace=replace(self.pace, due=None))
        pace = self.pace.change(now)
        if pace.due is not None and pace.due <= now:
            return ShownPriority(state.value, pace.sent(now))
        return replace(self, pace=pace)

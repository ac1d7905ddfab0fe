"""What a command of the computer's command line is, and what commands have in common. Knows no particular command."""

import json
import math
import shutil
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from a2c_smcp.computer.cli.output import table
from a2c_smcp.computer.cli.session import CLISession
from a2c_smcp.errors import BadRequestError

__all__ = ["Action", "Command", "CommandGroup", "Completes", "arguments", "as_json", "first", "number", "page"]

Action: TypeAlias = Callable[[CLISession, list[str]], Awaitable[None]]
Completes: TypeAlias = Callable[[CLISession, Sequence[str]], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    usage: str
    """What follows the name."""
    run: Action
    completes: Completes
    """What may come after the words that stand there, for completion."""
    secret: bool
    """Whether what follows may be one: such a line is never kept."""

    @property
    def help(self) -> str:
        return " ".join((self.run.__doc__ or "").split())


def _nothing(session: CLISession, words: Sequence[str]) -> Iterable[str]:
    return ()


class CommandGroup(dict[str, Command]):
    """Commands by name, in the order of the help; `@group.command(…)` puts a function into it."""

    def command(
        self, name: str, usage: str = "", completes: Completes = _nothing, *, secret: bool = False
    ) -> Callable[[Action], Action]:
        def register(function: Action) -> Action:
            self[name] = Command(name, usage, function, completes, secret)
            return function

        return register


def first(names: Callable[[CLISession], Iterable[str]]) -> Completes:
    """Names that may stand in the first place only."""
    return lambda session, words: () if words else names(session)


def arguments(words: Sequence[str], *names: str) -> list[str]:
    """Exactly these arguments."""
    if len(words) != len(names):
        raise BadRequestError(f"expected {' '.join(names) or 'nothing'} here, not {len(words)} words")
    return list(words)


def number(text: str, name: str) -> float:
    """What an option says; `BadRequestError` for what is no number from 0 up."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise BadRequestError(f"--{name} needs a number, not less than 0")
    return value


def page(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return table(headers, rows, shutil.get_terminal_size().columns)


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)

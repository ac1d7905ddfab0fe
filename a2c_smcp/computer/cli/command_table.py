"""The table of commands at the prompt, and what commands have in common. Knows no particular command."""

import json
import math
import re
import shutil
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from a2c_smcp.computer.cli.output import table
from a2c_smcp.computer.cli.parse import options
from a2c_smcp.computer.cli.session import CLISession
from a2c_smcp.errors import BadRequestError

__all__ = ["COMMANDS", "Action", "Command", "Completes", "as_json", "command", "first", "number", "page"]

#: Called with the session, the words of the command's usage, and its options by name.
Action: TypeAlias = Callable[..., Awaitable[None]]
Completes: TypeAlias = Callable[[CLISession, Sequence[str]], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    usage: str
    """What follows the name. `NAME` is a word, `[ID]` may be left out, `FILE...` is any number of words, and
    `[--lines N]` is an option."""
    action: Action
    completes: Completes
    """The words that may come next, for completion."""
    secret: bool
    """Whether the line may hold a secret. Such a line is never kept."""

    @property
    def help(self) -> str:
        return " ".join((self.action.__doc__ or "").split())

    async def run(self, session: CLISession, words: Sequence[str]) -> None:
        """Carry the command out. Raises `BadRequestError` if the words do not fit the usage."""
        wanted = re.sub(r"\[--[^]]*\]", "", self.usage).split()
        plain, given = options(words, re.findall(r"--([a-z-]+)", self.usage))
        takes_more = any("..." in word for word in wanted)
        least = sum(not (word.startswith("[") or "..." in word) for word in wanted)
        if len(plain) < least or (len(plain) > len(wanted) and not takes_more):
            raise BadRequestError(
                f"`{self.name}` takes {' '.join(wanted) or 'no words'}, not {len(plain)} words; "
                "a word with blanks needs quotes"
            )
        await self.action(session, *plain, **{name.replace("-", "_"): value for name, value in given.items()})


def _nothing(session: CLISession, words: Sequence[str]) -> Iterable[str]:
    return ()


#: Every command by its name. The modules with commands fill it when they are imported.
COMMANDS: Final[dict[str, Command]] = {}


def command(
    name: str, usage: str = "", completes: Completes = _nothing, *, secret: bool = False
) -> Callable[[Action], Action]:
    """Puts a function into the table of commands."""

    def register(function: Action) -> Action:
        COMMANDS[name] = Command(name, usage, function, completes, secret)
        return function

    return register


def first(names: Callable[[CLISession], Iterable[str]]) -> Completes:
    """Completes the first word with these names."""
    return lambda session, words: () if words else names(session)


def number(text: str, name: str) -> float:
    """The number that an option was given, or `BadRequestError` if it is not a number from 0 up."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise BadRequestError(f"--{name} needs a number that is not less than 0")
    return value


def page(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return table(headers, rows, shutil.get_terminal_size().columns)


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)

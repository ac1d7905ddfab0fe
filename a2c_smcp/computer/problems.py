"""What is wrong with a configuration, and where. Names places, never values: a value may be a secret."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from a2c_smcp.errors import BadRequestError
from a2c_smcp.utils.text import printable

__all__ = ["InvalidConfigError", "Problem", "field_path"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong. `str()` says which file, which server or input, which field, and what."""

    message: str
    field: str = ""
    subject: str = ""
    """The entry it is in: `server 'files'`, `input 'key'`; empty where the file as a whole is meant."""
    file: str = ""

    def __str__(self) -> str:
        # On one line, whatever a key in the file holds: a log line or an error of ours cannot be forged with it.
        return printable(": ".join(filter(None, (self.file, self.subject, self.field, self.message))))

    def within(self, subject: str) -> "Problem":
        """The same problem in the entry that only the caller knows."""
        return replace(self, subject=self.subject or subject)


class InvalidConfigError(BadRequestError):
    """A configuration that cannot be used; `problems` has every reason, not only the first."""

    title = "Invalid Configuration"

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(map(str, problems)), {"problems": [asdict(problem) for problem in problems]})

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything that is wrong, in the order of the files."""
        return tuple(Problem(**problem) for problem in self.details.get("problems", ()))


def field_path(parts: Iterable[Any]) -> str:
    """A place inside a config as people write it: `server_parameters.args[0]`."""
    path = ""
    for part in parts:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    return path

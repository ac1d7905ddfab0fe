"""The console of a command: opened when it is asked for, and imported only then."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from anyio.abc import TaskGroup

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.config_writer import ConfigWriter
from a2c_smcp.computer.home import ComputerHome, OfficeDoor
from a2c_smcp.errors import BadRequestError

if TYPE_CHECKING:
    from a2c_smcp.computer.console import Console

__all__ = ["NO_CONSOLE", "ConsoleOpener", "ConsoleOptions"]


@dataclass(frozen=True, slots=True)
class ConsoleOptions:
    address: str | None = None
    """`[HOST:]PORT`; `None` for a command that opens its console later, or never."""
    cert: Path | None = None
    key: Path | None = None


NO_CONSOLE: Final = ConsoleOptions()


class ConsoleOpener:
    """At most one console, in a task group of the command's."""

    def __init__(self, computer: Computer, options: ConsoleOptions, config: ConfigWriter) -> None:
        self._computer = computer
        self._options = options
        self._config = config
        self.offices: OfficeDoor | None = None
        """How a page joins an office; given before the console opens."""
        self._console: Console | None = None

    @property
    def is_open(self) -> bool:
        return self._console is not None

    @property
    def is_wanted(self) -> bool:
        """Whether the command line asks for one."""
        return self._options.address is not None

    def listen(self, address: str | None = None) -> None:
        """Take the port, for `start`; `BadRequestError` says why that cannot be done."""
        from a2c_smcp.computer.console import Console, ConsoleAddress, ConsoleError

        try:
            place = ConsoleAddress.parse(address or self._options.address or "0")
            home = ComputerHome(self._config, self.offices)
            console = Console(self._computer, place, cert=self._options.cert, key=self._options.key, home=home)
            console.listen()
        except (ValueError, ConsoleError) as error:
            raise BadRequestError(str(error)) from None
        self._console = console

    async def start(self, tasks: TaskGroup) -> None:
        """Serve the port that was taken, until the task group is cancelled."""
        assert self._console is not None
        await tasks.start(self._console.run)

    def link(self) -> str:
        """An address that works once."""
        assert self._console is not None
        return self._console.link()

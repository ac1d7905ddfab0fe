"""The console of a command: opened when it is asked for, and imported only then."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from anyio.abc import TaskGroup

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.config.problems import InvalidConfigError, Problem
from a2c_smcp.computer.config.writer import ConfigWriter
from a2c_smcp.computer.home import ComputerHome, OfficeDoor
from a2c_smcp.errors import BadRequestError
from a2c_smcp.utils.state_folder import state_folder

if TYPE_CHECKING:
    from a2c_smcp.computer.console import Console, ConsoleMemory

__all__ = ["ConsoleOpener", "ConsoleOptions"]


@dataclass(frozen=True, slots=True)
class ConsoleOptions:
    address: str | None = None
    """`[HOST:]PORT`; `None` for a command that opens its console later, or never."""
    cert: Path | None = None
    key: Path | None = None


class ConsoleOpener:
    """At most one console, in a task group of the command's. `headless` is a command without a prompt."""

    def __init__(
        self, computer: Computer, options: ConsoleOptions, config: ConfigWriter, *, headless: bool = False
    ) -> None:
        self._computer = computer
        self._options = options
        self._config = config
        self._headless = headless
        self.offices: OfficeDoor | None = None
        """How a page joins an office; given before the console opens."""
        self._console: Console | None = None
        self.notices: tuple[str, ...] = ()
        """What a person should know after `listen`."""

    @property
    def is_open(self) -> bool:
        return self._console is not None

    @property
    def is_wanted(self) -> bool:
        """Whether the command line asks for one."""
        return self._options.address is not None

    def listen(self, address: str | None = None) -> None:
        """Take the port, for `start`; `InvalidConfigError` says why that cannot be done."""
        from a2c_smcp.computer.console import Advice, Console, ConsoleAddress, ConsoleError

        memory, self.notices = None, ()
        try:
            place = ConsoleAddress.parse(address or self._options.address or "0")
            memory = self._memory()
            console = Console(
                self._computer,
                place,
                cert=self._options.cert,
                key=self._options.key,
                memory=memory,
                advice=Advice.SIGNAL if self._headless else Advice.PROMPT,
                home=ComputerHome(self._config, self.offices),
            )
            console.listen()
        except (ValueError, ConsoleError) as error:
            if memory is not None:
                memory.close()
            raise InvalidConfigError([Problem(str(error), "", "the console")]) from None
        self._console = console
        said = (memory.notice if memory is not None else None, console.notice)
        self.notices += tuple(notice for notice in said if notice is not None)

    def _memory(self) -> "ConsoleMemory | None":
        from a2c_smcp.computer.console import ConsoleMemory, NoMemoryError

        try:
            return ConsoleMemory.open(state_folder() / "console", self._computer.name, time.time())
        except BadRequestError as error:
            self.notices = (f"the console remembers nothing: {error.message}",)
        except NoMemoryError as error:
            self.notices = (str(error),)
        return None

    async def start(self, tasks: TaskGroup) -> None:
        """Serve the port that was taken, until the task group is cancelled."""
        assert self._console is not None
        await tasks.start(self._console.run)

    def link(self) -> str:
        """An address that works once."""
        assert self._console is not None
        return self._console.link()

    def picture(self, link: str) -> str:
        """The link as a QR code where another device reaches the console; otherwise nothing."""
        from a2c_smcp.computer.console.qr_codes import qr_text

        assert self._console is not None
        return "" if self._console.is_local else qr_text(link)

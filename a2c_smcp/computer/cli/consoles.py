"""Opens the console of a command. The console is imported only when it is opened."""

import time
from typing import TYPE_CHECKING

from anyio.abc import TaskGroup

from a2c_smcp.computer.cli.run_options import ConsoleOptions
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.config.problems import InvalidConfigError, Problem
from a2c_smcp.computer.config.writer import ConfigWriter
from a2c_smcp.computer.home import ComputerHome, OfficeDoor
from a2c_smcp.errors import BadRequestError
from a2c_smcp.utils.state_folder import state_folder

if TYPE_CHECKING:
    from a2c_smcp.computer.console import Console, ConsoleMemory

__all__ = ["ConsoleOpener"]


class ConsoleOpener:
    """Opens at most one console. `headless` is a command without a prompt."""

    def __init__(
        self, computer: Computer, options: ConsoleOptions, config: ConfigWriter, *, headless: bool = False
    ) -> None:
        self._computer = computer
        self._options = options
        self._config = config
        self._headless = headless
        self.offices: OfficeDoor | None = None
        """How a page joins an office. Set it before the console opens."""
        self._console: Console | None = None
        self.notices: tuple[str, ...] = ()
        """What to tell the person after `listen`."""

    @property
    def is_open(self) -> bool:
        return self._console is not None

    @property
    def is_wanted(self) -> bool:
        """Whether the command line asks for a console."""
        return self._options.console is not None

    def listen(self, address: str | None = None) -> None:
        """Take the port; call `start` next. Raises `InvalidConfigError` if the console cannot be opened."""
        from a2c_smcp.computer.console import Advice, Console, ConsoleAddress, ConsoleError

        memory, self.notices = None, ()
        try:
            place = ConsoleAddress.parse(address or self._options.console or "0")
            memory = self._memory()
            console = Console(
                self._computer,
                place,
                cert=self._options.console_cert,
                key=self._options.console_key,
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
        """Serve, after `listen`, until the task group is cancelled."""
        assert self._console is not None
        await tasks.start(self._console.run)

    def link(self) -> str:
        """A fresh link to the page. It works once."""
        assert self._console is not None
        return self._console.link()

    def picture(self, link: str) -> str:
        """The link as a QR code, if other devices reach the console; otherwise an empty text."""
        from a2c_smcp.computer.console.qr_codes import qr_text

        assert self._console is not None
        return "" if self._console.is_local else qr_text(link)

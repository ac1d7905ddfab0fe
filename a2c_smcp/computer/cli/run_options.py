"""What `a2c computer run` was told, for a prompt and for a service."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from a2c_smcp.computer.cli.consoles import ConsoleOptions
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.config.files import ConfigFiles
from a2c_smcp.link.interface import LinkOptions

__all__ = ["RunOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of a computer that runs."""

    name: str
    office: str | None
    """Joined at the start, if there is one."""
    link: LinkOptions
    files: tuple[Path, ...]
    """Config files, and files with inputs."""
    home_file: Path | None
    """The config file that gets the servers that are added in the console."""
    yes: bool
    """Whether every call may run. Without it a person is asked about calls of tools that are not `auto_apply`, and a
    service refuses them."""
    auto_connect: bool
    auto_reconnect: bool
    prefix_tools: bool
    console: ConsoleOptions
    factory: Callable[..., Computer]
    """Makes the Computer, called like the class."""

    def new_computer(self, files: ConfigFiles) -> Computer:
        """The Computer, with what its config files hold."""
        computer = self.factory(
            self.name,
            inputs=files.inputs,
            mcp_servers=files.servers,
            auto_connect=self.auto_connect,
            auto_reconnect=self.auto_reconnect,
        )
        computer.decisions.allow_all = self.yes
        return computer

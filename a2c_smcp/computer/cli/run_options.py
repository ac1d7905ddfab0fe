"""What the options of `a2c computer run` say. Imports nothing of a computer, so that `--help` stays quick."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from a2c_smcp.computer.computer import Computer
    from a2c_smcp.computer.config.files import ConfigFiles
    from a2c_smcp.link.interface import LinkOptions

__all__ = ["ConsoleOptions", "RunOptions"]


@dataclass(frozen=True, slots=True)
class ConsoleOptions:
    """The console's options, as a group for typer."""

    console: Annotated[
        str | None,
        typer.Option(
            metavar="[HOST:]PORT",
            help="Open a page in the browser to watch and to decide. 0 is the port of the last run. A HOST needs TLS.",
        ),
    ] = None
    console_cert: Annotated[Path | None, typer.Option(metavar="FILE", help="The console's certificate chain, PEM.")] = (
        None
    )
    console_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Its private key, PEM, if that is in another file.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of a computer that runs, at a prompt or as a service."""

    name: str
    office: str | None
    """The office to join at the start. A service always has one."""
    link: "LinkOptions"
    files: tuple[Path, ...]
    """Config files and files with inputs."""
    home_file: Path | None
    """The config file to which the console writes new servers."""
    rules: Path | None
    """The file with the rules. Rules that are made on a card are written there; `None`: they last until the end."""
    needs_rules: bool
    """Whether that file must be there: somebody has named it."""
    yes: bool
    """Run every call that no rule is about. Otherwise a person confirms the calls of tools that are not `auto_apply`;
    where nobody can, they are refused."""
    auto_connect: bool
    auto_reconnect: bool
    prefix_tools: bool
    json_lines: bool
    """Whether a prompt prints `@a2c` lines as well."""
    console: ConsoleOptions
    factory: "Callable[..., Computer]"
    """Makes the Computer; called like the class."""

    def new_computer(self, files: "ConfigFiles") -> "Computer":
        """A Computer with the servers, inputs and rules of these files. Raises `InvalidConfigError` if the rules file
        has a mistake, or is not there although somebody has named it.
        """
        # A factory of somebody else may take no more arguments than those below.
        folders = {"skills": files.skills, "uploads": files.uploads}
        computer = self.factory(
            self.name,
            inputs=files.inputs,
            mcp_servers=files.servers,
            auto_connect=self.auto_connect,
            auto_reconnect=self.auto_reconnect,
            **{key: folder for key, folder in folders.items() if folder is not None},
        )
        computer.decisions.allow_all = self.yes
        computer.decisions.rules.use_config(files.rules)
        if self.rules is not None:
            computer.decisions.rules.open(self.rules, needed=self.needs_rules)
        return computer

"""Config files that a Computer follows while it runs: their changes are applied, each server by itself.

Knows the Computer, but neither the command that runs it nor terminals.
"""

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import anyio

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.config.files import ConfigFiles, read_config_files
from a2c_smcp.computer.config.writer import ConfigWriter
from a2c_smcp.computer.inputs import servers_referencing
from a2c_smcp.computer.mcp_clients.model import MCPServerInput
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.computer.rules.store import SETTLES
from a2c_smcp.computer.utils.following import follow_folders
from a2c_smcp.errors import NotFoundError, SMCPError
from a2c_smcp.types import SERVER_NAME

__all__ = ["FollowedFiles"]

logger = logging.getLogger(__name__)

#: How often files are read again whose rules change all the time.
_TRIES: Final = 20
_DOWN: Final = (ServerState.FAILED, ServerState.BACKING_OFF)


class FollowedFiles:
    """Config files whose changes a Computer applies while it runs."""

    def __init__(
        self, computer: Computer, paths: Sequence[Path], files: ConfigFiles, *, prefix_tools: bool = False
    ) -> None:
        self.paths = tuple(paths)
        self.prefix_tools = prefix_tools
        self._computer = computer
        self._read = files
        self._touched = self._times()
        #: The configs from the files that the Computer has now. A config that was refused is not among them.
        self._servers = _by_name(files)
        self._inputs = {definition.id for definition in files.inputs}
        #: The configs that are being applied: a server may wait for a person who gives an input.
        self._changing: dict[SERVER_NAME, dict[str, Any]] = {}
        #: The files that were applied last, or are being applied.
        self._latest = files

    async def follow(self) -> None:
        """Apply every change, until cancelled."""
        folders = {path.absolute().parent for path in self.paths}
        try:
            # Beside earlier ones: a server that waits for an input holds up no other.
            await follow_folders(folders, self.reload)
        except* (OSError, RuntimeError):
            # The servers that run are worth more than later changes.
            logger.exception("changes of the config files are no longer followed")

    def read(self) -> ConfigFiles:
        """The files as they are now."""
        return read_config_files(*self.paths, prefix_tools=self.prefix_tools)

    async def reload(self) -> None:
        """Apply the files if they were written since the last time. Problems are logged: a server whose entry is wrong
        stays as it was. If a file cannot be read, everything stays as it was.
        """
        before, self._read = (self._touched, self._read), self.read()
        self._touched = self._times()
        # Other files in these folders, such as logs, change as well.
        if (self._touched, self._read) == before or not await self._has_settled():
            return
        for warning in self._read.warnings:
            logger.warning("%s", warning)
        for problem in self._read.problems:
            logger.error("%s", problem)
        if self._read.unusable:
            logger.error("the config files are not applied; the servers stay as they are")
            return
        for name, outcome in (await self.take_over(self._read)).items():
            logger.error("MCP server %s %s", name, outcome)

    async def _has_settled(self) -> bool:
        """Wait, as for a rules file, until a change that lifts a rule was read twice. `False` if the files changed
        meanwhile: the reload for that change applies them.
        """
        for _ in range(_TRIES):
            read = self._read
            if read.unusable or not self._computer.decisions.rules.lifts(read.rules):
                return True
            await anyio.sleep(SETTLES)
            if self._read != read:
                return False
            self._read, self._touched = self.read(), self._times()
            if self._read.rules == read.rules:
                return True
        logger.error("the config files are not applied: somebody changes their rules all the time")
        return False

    async def take_over(self, files: ConfigFiles) -> dict[SERVER_NAME, str]:
        """Apply these files to the Computer. Returns the servers that were refused, and why.

        A server whose entry is wrong stays as it was, and so do servers and inputs that were never in a file. A server
        that has failed or is backing off is started again, even if its entry has not changed.
        """
        self._latest = files
        self._computer.decisions.rules.use_config(files.rules)
        wanted = _by_name(files)
        there = self._states()
        refused: dict[SERVER_NAME, SMCPError] = {}
        for name in {**self._servers, **self._changing}.keys() - wanted.keys() - files.wrong:
            await self._remove(name)
        affected = self._define(files.inputs, wanted)
        async with anyio.create_task_group() as tasks:
            for name, raw in wanted.items():
                if self._changing.get(name) == raw:
                    continue
                if self._servers.get(name) != raw or name not in there:
                    tasks.start_soon(self._update, name, raw, refused)
                elif name in affected or there[name] in _DOWN:
                    tasks.start_soon(self._restart, name, refused)
        if self._latest is files and not files.problems:
            self._forget_inputs(files.inputs)
        states = self._states()
        return {name: f"{_outcome(states.get(name))}: {error}" for name, error in refused.items()}

    def adopt(self, files: ConfigFiles) -> None:
        """Note that the Computer has the servers and inputs of these files already: the console changed both."""
        for name, raw in _by_name(files).items():
            if self._computer.server_config(name) == raw:
                self._servers[name] = raw
        self._inputs |= {definition.id for definition in files.inputs} & self._computer.inputs.definitions.keys()

    def writer(self, home_file: Path | None) -> ConfigWriter:
        """A writer of these files for the console. New servers go into `home_file`."""
        return ConfigWriter(self.paths, home_file, prefix_tools=self.prefix_tools, on_written=self.adopt)

    def _states(self) -> dict[SERVER_NAME, ServerState]:
        return {status.server: status.state for status in self._computer.statuses}

    def _times(self) -> list[int | None]:
        """When each file was written last, in nanoseconds; `None` for a file that is not there."""
        return [_written(path) for path in self.paths]

    def _forget_inputs(self, inputs: Iterable[MCPServerInput]) -> None:
        """Remove the inputs that the files defined before and do not define now."""
        left = {definition.id for definition in inputs}
        for input_id in (self._inputs - left) & self._computer.inputs.definitions.keys():
            self._computer.inputs.remove(input_id)
        self._inputs = left

    def _define(self, inputs: Iterable[MCPServerInput], servers: dict[SERVER_NAME, Any]) -> set[SERVER_NAME]:
        """Define the inputs that are new or have changed. Returns the servers that use one of them."""
        store = self._computer.inputs
        changed = [definition for definition in inputs if store.definitions.get(definition.id) != definition]
        for definition in changed:
            store.put(definition)
            self._inputs.add(definition.id)
        return {name for definition in changed for name in servers_referencing(definition.id, servers)}

    async def _remove(self, name: SERVER_NAME) -> None:
        self._servers.pop(name, None)
        self._changing.pop(name, None)
        with suppress(NotFoundError):  # a person has removed it
            await self._computer.remove_server(name)
            logger.info("MCP server %s is removed", name)

    async def _update(self, name: SERVER_NAME, raw: dict[str, Any], refused: dict[SERVER_NAME, SMCPError]) -> None:
        self._changing[name] = raw
        try:
            await self._computer.add_or_update_server(raw, keeps_new=True)
        except SMCPError as error:
            if self._changing.get(name) is raw:  # otherwise a later change has replaced this one
                refused[name] = error
        finally:
            if self._computer.server_config(name) == raw:
                self._servers[name] = raw
            if self._changing.get(name) is raw:
                del self._changing[name]

    async def _restart(self, name: SERVER_NAME, refused: dict[SERVER_NAME, SMCPError]) -> None:
        """Restart a server at once: without a prompt nobody can be asked."""
        if self._states().get(name) in (ServerState.DISABLED, ServerState.STOPPED, None):
            return
        try:
            await self._computer.restart_server(name)
        except SMCPError as error:
            refused[name] = error


def _outcome(state: ServerState | None) -> str:
    """What became of a server whose change was refused."""
    match state:
        case None:
            return "is not added"
        case ServerState.FAILED | ServerState.BACKING_OFF | ServerState.STARTING:
            return "does not start"
        case _:
            return "stays as it was"


def _written(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def _by_name(files: ConfigFiles) -> dict[SERVER_NAME, dict[str, Any]]:
    return {raw["name"]: raw for raw in files.servers}

"""`a2c computer run --headless`: a Computer as a service that follows its config files until a signal says stop.

Asks nobody: inputs come from the environment, from commands or from their defaults.
"""

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio
from watchfiles import awatch

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.config_files import ConfigFiles, load_config_files, read_config_files
from a2c_smcp.computer.inputs import servers_referencing
from a2c_smcp.computer.mcp_clients.mcp_connection import ServerState
from a2c_smcp.computer.mcp_clients.model import MCPServerInput
from a2c_smcp.computer.socketio import SMCPComputerClient
from a2c_smcp.errors import ConnectionLostError, NameTakenError, NotFoundError, RequestTimeoutError, SMCPError
from a2c_smcp.types import SERVER_NAME
from a2c_smcp.utils.link import Disconnected, LinkEvent, LinkOptions, RejoinFailed
from a2c_smcp.utils.loops import fast_command_loop

__all__ = ["HeadlessOptions", "run_headless"]

logger = logging.getLogger(__name__)

#: How long to wait for the servers before joining, so that an agent does not find an empty computer.
_BOOT_SECONDS: Final = 5.0
#: Between attempts to reach a server that is not there yet, or that still holds the name for an old session of ours.
_RETRY_SECONDS: Final = 1.0
#: Editors write a file in several steps; in milliseconds.
_DEBOUNCE: Final = 200


@dataclass(frozen=True, slots=True)
class HeadlessOptions:
    name: str
    office: str
    link: LinkOptions
    files: tuple[Path, ...]
    """Config files, and files with inputs."""
    yes: bool = False
    """Whether every call may run; otherwise those that are not `auto_apply` are refused."""
    auto_connect: bool = True
    auto_reconnect: bool = True
    prefix_tools: bool = False
    factory: Callable[..., Computer] = Computer
    """Makes the Computer, called like the class."""


def run_headless(options: HeadlessOptions) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises `InvalidConfigError` before anything is started, or the refusal of a server that will not have it.
    """
    files = load_config_files(*options.files, prefix_tools=options.prefix_tools)
    for warning in files.warnings:
        logger.warning("%s", warning)
    with asyncio.Runner(loop_factory=fast_command_loop) as runner:
        runner.run(_Service(options, files).run())


async def _yes(*_: object) -> bool:
    return True


class _Service:
    def __init__(self, options: HeadlessOptions, files: ConfigFiles) -> None:
        self._options = options
        self._computer = options.factory(
            options.name,
            inputs=files.inputs,
            mcp_servers=files.servers,
            auto_connect=options.auto_connect,
            auto_reconnect=options.auto_reconnect,
            confirm_callback=_yes if options.yes else None,
        )
        self._client = SMCPComputerClient(self._computer, options.link, on_event=self._heard)
        self._files = FollowedFiles(self._computer, options.files, files, prefix_tools=options.prefix_tools)
        self._booted = asyncio.Event()
        self._stopped = asyncio.Event()
        self._refusal: SMCPError | None = None

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopped.set)
        if not self._options.yes:
            logger.warning("calls of tools that are not auto_apply are refused (4005); --yes runs them all")
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._boot)
                tasks.start_soon(self._join)
                tasks.start_soon(self._files.follow)
                await self._stopped.wait()
                tasks.cancel_scope.cancel()
        finally:
            await self._client.disconnect()
            await self._computer.shutdown()
        if self._refusal is not None:
            raise self._refusal

    async def _boot(self) -> None:
        await self._computer.boot_up()
        self._booted.set()

    async def _join(self) -> None:
        """Be in the office, however long the server takes to be there; a refusal ends the service."""
        with anyio.move_on_after(_BOOT_SECONDS):
            await self._booted.wait()
        said = ""
        while True:
            try:
                await self._client.connect()
                await self._client.join_office(self._options.office)
            except (ConnectionLostError, RequestTimeoutError, NameTakenError) as error:
                if str(error) != said:
                    said = str(error)
                    logger.warning("not in the office yet, trying on: %s", said)
                await anyio.sleep(_RETRY_SECONDS)
            except SMCPError as error:
                self._stop(error)
                return
            else:
                print(
                    f"a2c computer {self._options.name} is in office {self._options.office}",
                    file=sys.stderr,
                    flush=True,
                )
                return

    def _heard(self, event: LinkEvent) -> None:
        match event:
            case RejoinFailed(error=error, final=True):
                self._stop(error)
            case Disconnected(reason=reason, final=True):
                self._stop(ConnectionLostError(reason))
            case Disconnected(reason=reason):
                logger.warning("the connection to the server was lost: %s", reason)

    def _stop(self, refusal: SMCPError) -> None:
        if not self._stopped.is_set():
            self._refusal = refusal
            self._stopped.set()


class FollowedFiles:
    """Config files whose changes a Computer takes over while it runs, each server on its own."""

    def __init__(
        self, computer: Computer, paths: Sequence[Path], files: ConfigFiles, *, prefix_tools: bool = False
    ) -> None:
        self.paths = tuple(paths)
        self.prefix_tools = prefix_tools
        self._computer = computer
        self._read = files
        #: What the Computer took over from the files, which is not all that they say where a config was refused.
        self._servers = _by_name(files)
        self._inputs = {definition.id for definition in files.inputs}

    async def follow(self) -> None:
        """Until cancelled."""
        # Folders, because editors and container hosts put another file, or link, in the place of the old one.
        folders = {path.absolute().parent for path in self.paths}
        # Its thread takes no notice of a cancellation, and would go on waiting for a change for seconds.
        stop = anyio.Event()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_set_when_cancelled, stop)
                async for _ in awatch(
                    *folders, watch_filter=None, recursive=False, debounce=_DEBOUNCE, stop_event=stop
                ):
                    await self.reload()
        except* (OSError, RuntimeError):
            # Too many watches on this machine, or the like: what runs is worth more than what may change.
            logger.exception("changes of the config files are not followed any more")

    def read(self) -> ConfigFiles:
        """What the files say now."""
        return read_config_files(*self.paths, prefix_tools=self.prefix_tools)

    async def reload(self) -> None:
        """Take over what the files say now; files with a problem are reported, and change nothing."""
        before, self._read = self._read, self.read()
        if self._read == before:
            return
        for warning in self._read.warnings:
            logger.warning("%s", warning)
        for problem in self._read.problems:
            logger.error("%s", problem)
        if self._read.problems:
            logger.error("the config files are not taken over; what runs stays")
            return
        for name, error in (await self.take_over(self._read)).items():
            logger.error("MCP server %s is left as it is: %s", name, error)

    async def take_over(self, files: ConfigFiles) -> dict[SERVER_NAME, SMCPError]:
        """Make the Computer what files without problems say; the servers that would not change, and why.

        Servers and inputs that never were in a file are left alone.
        """
        wanted = _by_name(files)
        there = {status.server for status in self._computer.statuses}
        refused: dict[SERVER_NAME, SMCPError] = {}
        for name in [name for name in self._servers if name not in wanted]:
            await self._remove(name)
        affected = self._define(files.inputs, wanted)
        async with anyio.create_task_group() as tasks:
            for name, raw in wanted.items():
                if self._servers.get(name) != raw or name not in there:
                    tasks.start_soon(self._update, name, raw, refused)
                elif name in affected:
                    tasks.start_soon(self._restart, name, refused)
        inputs = {definition.id for definition in files.inputs}
        for input_id in (self._inputs - inputs) & self._computer.inputs.definitions.keys():
            self._computer.inputs.remove(input_id)
        self._inputs = inputs
        return refused

    def _define(self, inputs: Iterable[MCPServerInput], servers: dict[SERVER_NAME, Any]) -> set[SERVER_NAME]:
        """Define inputs as they are now; the servers that refer to one that has changed."""
        store = self._computer.inputs
        changed = [definition for definition in inputs if store.definitions.get(definition.id) != definition]
        for definition in changed:
            store.put(definition)
        return {name for definition in changed for name in servers_referencing(definition.id, servers)}

    async def _remove(self, name: SERVER_NAME) -> None:
        del self._servers[name]
        with suppress(NotFoundError):  # removed by hand
            await self._computer.remove_server(name)
            logger.info("MCP server %s is removed", name)

    async def _update(self, name: SERVER_NAME, raw: dict[str, Any], refused: dict[SERVER_NAME, SMCPError]) -> None:
        try:
            await self._computer.add_or_update_server(raw)
        except SMCPError as error:
            refused[name] = error
        else:
            self._servers[name] = raw

    async def _restart(self, name: SERVER_NAME, refused: dict[SERVER_NAME, SMCPError]) -> None:
        """Nobody is there to be offered it."""
        state = next(status.state for status in self._computer.statuses if status.server == name)
        if state in (ServerState.DISABLED, ServerState.STOPPED):
            return
        try:
            await self._computer.restart_server(name)
        except SMCPError as error:
            refused[name] = error


async def _set_when_cancelled(event: anyio.Event) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        event.set()


def _by_name(files: ConfigFiles) -> dict[SERVER_NAME, dict[str, Any]]:
    return {raw["name"]: raw for raw in files.servers}

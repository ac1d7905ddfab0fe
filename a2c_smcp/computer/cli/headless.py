"""`a2c computer run --headless`: a Computer as a service, which follows its config files until a signal ends it.

Without a console it asks nobody: inputs come from the environment, from commands or from their defaults. With a
console, SIGUSR1 prints a fresh link.
"""

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace

import anyio

from a2c_smcp.computer.cli.consoles import ConsoleOpener
from a2c_smcp.computer.cli.followed_files import FollowedFiles
from a2c_smcp.computer.cli.run_options import RunOptions
from a2c_smcp.computer.cli.session import BOOT_SECONDS, link_to
from a2c_smcp.computer.config.files import ConfigFiles, usable_config_files
from a2c_smcp.computer.mcp_clients.masking import masked_url
from a2c_smcp.computer.socketio import SMCPComputerClient
from a2c_smcp.errors import ConnectionLostError, SMCPError
from a2c_smcp.link.interface import Disconnected, Joined, LinkEvent, LinkOptions, RejoinFailed
from a2c_smcp.relay.passing import RETRY_SECONDS, Passing, passes
from a2c_smcp.terminal.screen import say
from a2c_smcp.utils.loops import fast_command_loop
from a2c_smcp.utils.signals import call_on_signals, is_ignored
from a2c_smcp.utils.system import lacking

__all__ = ["run_headless"]

logger = logging.getLogger(__name__)


def run_headless(options: RunOptions) -> None:
    """Serve until SIGTERM, SIGINT, or SIGHUP unless that is ignored (`nohup`).

    Raises `InvalidConfigError` before anything is started, and the server's refusal if it does not let the computer in
    at the start. Once the computer was in its office, it goes on trying after every refusal.
    A wrong entry in a file is reported; the other entries are used.
    """
    files = usable_config_files(*options.files, prefix_tools=options.prefix_tools)
    for problem in files.problems:
        logger.error("%s; the other entries of the config files are used", problem)
    for warning in files.warnings:
        logger.warning("%s", warning)
    for part in lacking():
        logger.warning("%s", part.problem)
    with asyncio.Runner(loop_factory=fast_command_loop) as runner:
        runner.run(_Service(options, files).run())


class _Service:
    def __init__(self, options: RunOptions, files: ConfigFiles) -> None:
        assert options.office is not None
        self._options = options
        self._computer = options.new_computer(files)
        self._link = options.link
        self._office: str | None = options.office
        self._client: SMCPComputerClient | None = self._new_client(options.link, options.office)
        self._joining: anyio.CancelScope | None = None
        """The attempts to join at the start, while they go on."""
        self._turn = asyncio.Lock()
        self._files = FollowedFiles(self._computer, options.files, files, prefix_tools=options.prefix_tools)
        writer = self._files.writer(options.home_file)
        self._consoles = ConsoleOpener(self._computer, options.console, writer, headless=True)
        self._consoles.offices = self
        self._stopped = asyncio.Event()
        self._refusal: SMCPError | None = None
        self._warned = ""

    async def run(self) -> None:
        call_on_signals(
            self._stopped.set, "SIGTERM", "SIGINT", "SIGBREAK", *(() if is_ignored("SIGHUP") else ("SIGHUP",))
        )
        if self._consoles.is_wanted:
            self._consoles.listen()
            for notice in self._consoles.notices:
                logger.warning("%s", notice)
            call_on_signals(self._print_link, "SIGUSR1")
        if not self._options.yes:
            when = " while no page of the console is open" if self._consoles.is_wanted else ""
            logger.warning("calls of tools that are not auto_apply are refused (4005)%s; --yes runs them all", when)
        try:
            async with anyio.create_task_group() as tasks:
                if self._consoles.is_open:
                    await self._consoles.start(tasks)
                    self._print_link()
                tasks.start_soon(self._computer.boot_up)
                tasks.start_soon(self._join)
                tasks.start_soon(self._files.follow)
                tasks.start_soon(self._computer.decisions.rules.follow)
                await self._stopped.wait()
                tasks.cancel_scope.cancel()
        finally:
            if self._client is not None:
                await self._client.disconnect()
            await self._computer.shutdown()
        if self._refusal is not None:
            raise self._refusal

    def _print_link(self) -> None:
        if self._consoles.is_open:
            link = self._consoles.link()
            _say(f"a2c computer {self._options.name} has its console at {link}")

    # --- the office

    @property
    def url(self) -> str:
        return masked_url(self._link.url)

    async def join(self, url: str, office: str, api_key: str | None) -> None:
        """Join another office for a person at the console. A server that cannot be reached changes nothing. After a
        refusal the computer goes back to its old office.
        """
        async with self._turn:
            link, before = link_to(self._link, url, api_key), (self._link, self._office)
            client = self._new_client(link, office)
            try:
                await client.connect()
            except BaseException:
                await client.disconnect()
                raise
            await self._give_up_client()
            self._client, self._link, self._office = client, link, office
            try:
                await client.join_office(office)
            except SMCPError:
                await self._give_up_client()
                await self._go_back(*before)
                raise
            client.keep_trying()

    async def leave(self) -> None:
        """Leave the office. The computer is in none until a person at the console joins one."""
        async with self._turn:
            await self._give_up_client()
            self._office = None

    async def _go_back(self, link: LinkOptions, office: str | None) -> None:
        self._link, self._office = link, office
        if office is None:
            return
        self._client = client = self._new_client(link, office)
        try:
            await client.connect()
            await client.join_office(office)
            client.keep_trying()
        except SMCPError as error:
            logger.error("the computer cannot go back to office %s: %s", office, error)

    async def _give_up_client(self) -> None:
        if self._joining is not None:
            self._joining.cancel()
        client, self._client = self._client, None
        if client is not None:
            await client.disconnect()

    def _new_client(self, link: LinkOptions, office: str) -> SMCPComputerClient:
        def heard(event: LinkEvent) -> None:
            if self._client is client:  # the end of a client that was given up does not end the service
                self._heard(event)

        client = SMCPComputerClient(self._computer, replace(link, office=office), on_event=heard)
        return client

    async def _join(self) -> None:
        """Join the office, and try until the server is there. A refusal at the start ends the service."""
        if (client := self._client) is None:
            return
        with anyio.CancelScope() as self._joining:
            with anyio.move_on_after(BOOT_SECONDS):
                await self._computer.ready()
            await self._keep_joining(client, self._office or "")

    async def _keep_joining(self, client: SMCPComputerClient, office: str) -> None:
        said = ""
        while True:
            try:
                await client.connect()
                await client.join_office(office)
            except SMCPError as error:
                if not passes(error):
                    self._stop(error)
                    return
                if str(error) != said:
                    said = str(error)
                    logger.warning("not in the office yet, trying again: %s", said)
                await anyio.sleep(RETRY_SECONDS[Passing.SOON])
            else:
                # From here on the key was right and the name was free. A server that refuses them now may be one that
                # was restarted with a mistake in its settings, and nobody is here to start this computer again.
                client.keep_trying()
                _say(f"a2c computer {self._options.name} is in office {office}")
                return

    def _heard(self, event: LinkEvent) -> None:
        match event:
            case RejoinFailed(error=error, final=True):
                self._stop(error)
            case Disconnected(reason=reason, final=True):
                self._stop(ConnectionLostError(reason))
            case RejoinFailed(error=error):
                self._warn(f"the server refuses this computer, trying again: {error}")
            case Disconnected(reason=reason):
                self._warn(f"not connected to the server, trying again: {reason}")
            case Joined():
                self._warned = ""

    def _warn(self, text: str) -> None:
        """Log a problem, but not the same again until the computer is in its office."""
        if text != self._warned:
            self._warned = text
            logger.warning("%s", text)

    def _stop(self, refusal: SMCPError) -> None:
        if not self._stopped.is_set():
            self._refusal = refusal
            self._stopped.set()


def _say(line: str) -> None:
    """Print a line on stderr. A full disk, or a reader that has gone, does not end the service."""
    with suppress(OSError):
        say(line, err=True, one_line=True)

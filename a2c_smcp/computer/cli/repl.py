"""`a2c computer run` at a prompt: starts the computer, then takes commands."""

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable

import anyio

from a2c_smcp.computer.cli import commands
from a2c_smcp.computer.cli.consoles import ConsoleOpener
from a2c_smcp.computer.cli.editing import CommandCompleter, command_history
from a2c_smcp.computer.cli.followed_files import FollowedFiles
from a2c_smcp.computer.cli.input_commands import secret_start
from a2c_smcp.computer.cli.office_commands import show_link
from a2c_smcp.computer.cli.output import Output
from a2c_smcp.computer.cli.prompts import CliInputResolver
from a2c_smcp.computer.cli.run_options import RunOptions
from a2c_smcp.computer.cli.session import BOOT_SECONDS, CLISession
from a2c_smcp.computer.cli.terminal import Terminal
from a2c_smcp.computer.cli.terminal_answers import TerminalAnswers
from a2c_smcp.computer.config.files import ConfigFiles, usable_config_files
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.errors import InternalError, SMCPError
from a2c_smcp.utils.loops import command_loop
from a2c_smcp.utils.signals import call_on_signals

__all__ = ["is_terminal", "run_repl"]

logger = logging.getLogger(__name__)


def run_repl(options: RunOptions, configure_logging: Callable[[], None]) -> None:
    """Take commands until `quit`, Ctrl-D or a signal. Raises `InvalidConfigError` before anything is started.

    `configure_logging` is called once the terminal is shared: log lines then leave the line that is typed intact.
    """
    files = usable_config_files(*options.files, prefix_tools=options.prefix_tools)
    # Not uvloop: it makes the terminal non-blocking, for every other program that writes there as well.
    with asyncio.Runner(loop_factory=command_loop) as runner:
        runner.run(_run(options, files, configure_logging))


async def _run(options: RunOptions, files: ConfigFiles, configure_logging: Callable[[], None]) -> None:
    await _Repl(options, files).run(configure_logging)  # made in the loop


class _Repl:
    def __init__(self, options: RunOptions, files: ConfigFiles) -> None:
        self._options = options
        self._said = (*files.problems, *files.warnings)
        """What is wrong with the config files, for the person."""
        self._terminal = Terminal(
            history=command_history(commands.is_kept),
            completer=CommandCompleter(lambda line: commands.completions(self._session, line)),
            secret_start=lambda line: secret_start(self._session, line),
        )
        self._output = Output(self._terminal.write, json_lines=options.json_lines)
        self._terminal.on_lost = self._tell_lost
        resolver = CliInputResolver(terminal_output=self._terminal.output, turn=self._terminal.turn)
        self._computer = options.new_computer(files)
        self._answers = TerminalAnswers(self._computer.decisions, self._terminal, self._output, resolver)
        followed = FollowedFiles(self._computer, options.files, files, prefix_tools=options.prefix_tools)
        self._session = CLISession(
            self._computer,
            self._output,
            options.link,
            options.office,
            followed,
            resolver.resolve,
            ConsoleOpener(self._computer, options.console, followed.writer(options.home_file)),
            self._terminal.busy,
        )
        self._session.consoles.offices = self._session
        self._scope = anyio.CancelScope()
        self._command: anyio.CancelScope | None = None

    async def run(self, configure_logging: Callable[[], None]) -> None:
        if self._session.consoles.is_wanted:
            self._session.consoles.listen()
        call_on_signals(self._scope.cancel, "SIGTERM", "SIGHUP")
        call_on_signals(self._interrupt, "SIGINT")
        with self._terminal.owned():
            configure_logging()
            try:
                with self._scope, self._answers.attend():
                    await self._work()
            finally:
                self._output.text("stopping")
                await self._session.close()
        configure_logging()  # the terminal is not shared any more

    def _tell_lost(self, lines: int) -> None:
        text = f"! {lines} lines are not shown: the terminal was stopped"
        self._output.event("output_lost", text, lines=lines)

    def _interrupt(self) -> None:
        """Ctrl-C while no line is typed ends the command that runs. If none runs, it ends everything."""
        (self._command or self._scope).cancel()

    async def _work(self) -> None:
        for warning in self._said:
            self._output.text(f"! {warning}")
        async with anyio.create_task_group() as tasks:
            self._session.tasks = tasks
            await tasks.start(self._session.report)
            tasks.start_soon(self._computer.decisions.rules.follow)
            if self._session.consoles.is_open:
                # Before the servers start: the page can be asked for their inputs.
                await self._session.consoles.start(tasks)
                show_link(self._session)
            # As a task: one server may wait for an input, while the office and the other servers go on.
            tasks.start_soon(self._computer.boot_up)
            async with self._terminal.busy(self._starting):
                with anyio.move_on_after(BOOT_SECONDS):
                    await self._computer.ready()
                if self._options.office is not None:
                    await self._attempt(
                        self._session.connect, self._options.link, self._options.name, self._options.office
                    )
                await self._computer.ready()
            await self._attempt(commands.run, self._session, "servers list")
            await self._take_commands()
            tasks.cancel_scope.cancel()

    def _starting(self) -> str:
        names = [status.server for status in self._computer.statuses if status.state is ServerState.STARTING]
        return f"starting {', '.join(names)}" if names else ""

    async def _take_commands(self) -> None:
        while True:
            try:
                line = await self._terminal.line()
                await self._attempt(commands.run, self._session, line)
            except (EOFError, commands.Quit):
                return

    async def _attempt(self, work: Callable[..., Awaitable[None]], *arguments: object) -> None:
        """Do something. If it fails or is interrupted, tell the person."""
        try:
            with anyio.CancelScope() as self._command:
                await work(*arguments)
            if self._command.cancelled_caught:
                self._output.event("error", "✗ interrupted", code=0, message="interrupted", details={})
        except SMCPError as error:
            self._session.show_error(error)
        except commands.Quit:
            raise
        except Exception:
            # A boundary: an error in one command must not stop the servers.
            logger.exception("the command failed")
            self._session.show_error(InternalError("the command failed; the log says why"))
        finally:
            self._command = None


def is_terminal() -> bool:
    """Whether stdin and stdout are a terminal, where a person may sit."""
    return sys.stdin.isatty() and sys.stdout.isatty()

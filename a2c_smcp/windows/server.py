"""One MCP server for everything that is open: its parts are chosen by options, and end with it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from a2c_smcp import __version__
from a2c_smcp.mcp_server.server import ContextServer
from a2c_smcp.windows.browser.chromium import BrowserOptions
from a2c_smcp.windows.looks import LookOptions, follow_files, watch_commands, watch_tmux
from a2c_smcp.windows.masking import SecretMask, without_secrets
from a2c_smcp.windows.terminal import TerminalSetup
from a2c_smcp.windows.terminals import Terminals
from a2c_smcp.windows.watched_command import WatchedCommand
from a2c_smcp.windows.window_texts import DEFAULT_BUDGET

__all__ = ["WindowsOptions", "windows_server"]

_INSTRUCTIONS = """Windows of this server show what is open on the machine: terminals, tabs, files, commands.
They change by themselves. Read the desktop instead of asking for a screen again. A `+` before a line marks what came in
the last seconds."""


@dataclass(frozen=True, slots=True)
class WindowsOptions:
    """What to show. Each part stands on its own."""

    folder: Path
    """Where terminals and commands start."""
    terminals: bool = False
    wrapper: Sequence[str] = ()
    """A command that runs each terminal's program, such as a sandbox."""
    browser: BrowserOptions | None = None
    tmux: bool = False
    tmux_session: str | None = None
    """The one session to show; `None` shows all."""
    tmux_type: bool = False
    files: Sequence[Path] = ()
    commands: Sequence[str] = ()
    every: float = 10.0
    """Seconds between two runs of a command."""
    errors_first: bool = False
    mask: Sequence[str] = ()
    """Regular expressions of the person's; what they match is hidden."""
    keep_env: Sequence[str] = ()
    """Variables that programs get although they are named like a secret."""
    budget: int = DEFAULT_BUDGET
    environment: dict[str, str] = field(default_factory=dict, repr=False)


def windows_server(options: WindowsOptions, host: str = "local.windows") -> ContextServer:
    """The server. Raises `ValueError` for options that cannot work. Whatever it starts ends when it stops."""
    mask = SecretMask(options.mask)
    environment = without_secrets(options.environment, options.keep_env, mask) | {
        "TERM": "xterm-256color",
        "COLORTERM": "",
        "PAGER": options.environment.get("PAGER", "less"),
    }
    looks = LookOptions(mask, options.budget, options.errors_first)

    @asynccontextmanager
    async def running(server: ContextServer) -> AsyncIterator[None]:
        async with AsyncExitStack() as parts:
            closing: list[asyncio.Future[None]] = []
            parts.push_async_callback(_wait_for, closing)
            if tabs is not None:
                await parts.enter_async_context(tabs.running())
            tasks = await parts.enter_async_context(anyio.create_task_group())
            if options.files:
                tasks.start_soon(follow_files, server, options.files, looks)
            if options.commands:
                commands = [
                    WatchedCommand(command, options.every, options.folder, environment) for command in options.commands
                ]
                tasks.start_soon(watch_commands, server, commands, looks)
            if options.tmux:
                tasks.start_soon(_tmux, server, options, looks)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()
                # At the same time as the browser: who stops a server may not wait for one after the other.
                if terminals is not None:
                    closing.append(asyncio.ensure_future(terminals.close_all()))

    server = ContextServer(
        "windows", host=host, version=__version__, title="Windows", instructions=_INSTRUCTIONS, lifespan=running
    )
    setup = TerminalSetup(options.folder, environment, mask, options.budget, options.wrapper)
    terminals = Terminals(server, setup) if options.terminals else None
    tabs = None
    if options.browser is not None:
        from a2c_smcp.windows.browser.tabs import BrowserTabs

        # The name of a file, which a browser on the screen needs.
        kept = [*options.keep_env, "XAUTHORITY"]
        tabs = BrowserTabs(
            server, options.browser, without_secrets(options.environment, kept, mask), mask, options.budget
        )
    return server


async def _wait_for(closing: "list[asyncio.Future[None]]") -> None:
    with anyio.CancelScope(shield=True):
        await asyncio.gather(*closing)


async def _tmux(server: ContextServer, options: WindowsOptions, looks: LookOptions) -> None:
    await watch_tmux(server, options.tmux_session, looks, may_type=options.tmux_type)

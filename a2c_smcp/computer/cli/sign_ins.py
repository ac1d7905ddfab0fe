"""`a2c computer login` and `a2c computer logout`: sign in to a remote MCP server ahead of time, and out again."""

import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from a2c_smcp.computer.cli.kept_sign_ins import kept_sign_ins
from a2c_smcp.computer.cli.prompts import CliInputResolver
from a2c_smcp.computer.cli.sign_in_form import PASTE, check_pasted, sign_in_lines
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.config.files import ConfigFiles, usable_config_files
from a2c_smcp.computer.decisions.book import Accepted, Decision, DecisionAnswer, MissingSignIn
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.errors import BadRequestError, NotFoundError, SignInNeededError, SMCPError
from a2c_smcp.terminal.exits import FAILED, REFUSED
from a2c_smcp.terminal.screen import say
from a2c_smcp.terminal.suggestions import did_you_mean
from a2c_smcp.utils.text import printable

__all__ = ["login", "logout"]

_say = partial(say, one_line=True)


def login(paths: Sequence[Path], name: str) -> int:
    """Sign in to a server of these files, and return the exit status."""
    return _run(paths, name, _login)


def logout(paths: Sequence[Path], name: str) -> int:
    """Delete the sign-in at a server of these files, and return the exit status."""
    return _run(paths, name, _logout)


def _run(paths: Sequence[Path], name: str, act: Callable[[Computer, str], Coroutine[Any, Any, int]]) -> int:
    try:
        files = usable_config_files(*paths)
        return asyncio.run(act(_computer(files, name), name))
    except SMCPError as error:
        say(f"a2c computer: {error}", err=True)
        return REFUSED if isinstance(error, NotFoundError | BadRequestError) else FAILED


def _computer(files: ConfigFiles, name: str) -> Computer:
    """A Computer with this server alone."""
    found = [raw for raw in files.servers if raw["name"] == name]
    if not found:
        raise NotFoundError(
            f"no MCP server is called {name!r}{did_you_mean(name, [raw['name'] for raw in files.servers])}"
        )
    if found[0]["type"] == "stdio":
        raise BadRequestError(f"{name!r} is a program on this computer: there is nothing to sign in to")
    return Computer(
        "login",
        inputs=files.inputs,
        mcp_servers=[{**found[0], "disabled": False}],
        auto_connect=False,
        auto_reconnect=False,
        input_resolver=CliInputResolver(),
        sign_in_store=kept_sign_ins(),
    )


async def _login(computer: Computer, name: str) -> int:
    asked: list[MissingSignIn] = []

    async def ask(decision: Decision) -> DecisionAnswer | None:
        assert isinstance(decision, MissingSignIn)
        asked.append(decision)
        for line in sign_in_lines(decision):
            say(line)
        return Accepted(await _pasted(decision))

    with computer.decisions.attend("terminal", {"sign_in"}, ask):
        async with computer, computer.events() as events:
            with suppress(SignInNeededError):
                await computer.start_server(name)
            while (status := computer.statuses[0]).state is not ServerState.RUNNING:
                if status.sign_in_failed or status.state in (ServerState.FAILED, ServerState.STOPPED):
                    say(f"a2c computer: {printable(name)}: {status.reason}", err=True)
                    return FAILED
                await anext(events)
            is_kept = await computer.is_signed_in(name)
    if asked:
        _say(f"{name}: you are signed in")
    else:
        _say(f"{name}: you are signed in already" if is_kept else f"{name} wants no sign-in")
    return 0


async def _logout(computer: Computer, name: str) -> int:
    found = await computer.sign_out(name)
    _say(f"{name}: you are signed out" if found else f"{name}: there was no sign-in")
    return 0


async def _pasted(decision: MissingSignIn) -> str:
    """The address that the person pastes. Where nobody can type, this waits until it is cancelled."""
    while True:
        say(PASTE)
        typed = await _line()
        if typed and (problem := check_pasted(decision, typed)) is None:
            return typed
        if typed:
            say(f"! {problem}")


async def _line() -> str:
    """The next line of stdin. A thread of its own reads it: the command ends while it still waits."""
    loop = asyncio.get_running_loop()
    typed: asyncio.Future[str] = loop.create_future()

    def tell(line: str) -> None:
        if not typed.done():
            typed.set_result(line)

    def read() -> None:
        line = sys.stdin.readline()
        if line:  # otherwise stdin is closed: only the browser can answer
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(tell, line.strip())

    threading.Thread(target=read, daemon=True).start()
    return await typed

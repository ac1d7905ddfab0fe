"""What `a2c agent` does: one function for each command. Each returns the work to do after the office is joined."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from a2c_smcp.agent.client import AsyncSMCPAgentClient
from a2c_smcp.agent.person_at_terminal import PersonAtTerminal
from a2c_smcp.agent.printing import Printer
from a2c_smcp.agent.requests import DEFAULT_WAIT, computers_in, still_starting
from a2c_smcp.agent.seat.place import NotSharedError
from a2c_smcp.agent.seat.seat_link import NobodyHoldsItError, shared_seat
from a2c_smcp.agent.server_infos import servers_not_running
from a2c_smcp.agent.types import Change, Disconnected, Joined, LinkEvent, Part, RejoinFailed
from a2c_smcp.agent.view import ComputerView
from a2c_smcp.errors import (
    BadRequestError,
    ConnectionLostError,
    NotFoundError,
    SMCPError,
    ToolNotFoundError,
    UnauthorizedError,
)
from a2c_smcp.link.interface import LinkOptions
from a2c_smcp.results import ERROR_CODE_MARKER, to_wire
from a2c_smcp.smcp import SMCPTool
from a2c_smcp.terminal.exits import FAILED, INTERRUPTED, REFUSED
from a2c_smcp.terminal.options import KEY_ADVICE
from a2c_smcp.terminal.suggestions import did_you_mean
from a2c_smcp.utils.loops import command_loop
from a2c_smcp.utils.saving import save
from a2c_smcp.utils.text import as_one_line
from a2c_smcp.utils.values import Typed

if TYPE_CHECKING:
    from mcp_types import CallToolResult

__all__ = [
    "CommandOptions",
    "Work",
    "at_computer",
    "call",
    "config",
    "desktop",
    "finder",
    "room",
    "run",
    "save_contents",
    "tools",
    "watch",
]

#: The pause between attempts to reach a server that does not run yet.
_RETRY_SECONDS: Final = 0.5
_NO_SERVER: Final = "start it with `a2c server`, or name another with --url; `a2c doctor` says more"


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """Which office to join, at which server, and how to print."""

    link: LinkOptions
    office: str
    name: str
    json: bool
    wait: float = 0
    """How long to try to reach a server that does not run yet."""
    raw: bool = False
    """Print texts of others unchanged, also at a terminal."""


Work: TypeAlias = Callable[[AsyncSMCPAgentClient, Printer], Awaitable[int]]


def run(session: CommandOptions, work: Work, *, live: bool = False) -> int:
    """Join, do the work, and return the exit status.

    A `BrokenPipeError` is raised: when the reader of a command has gone, typer ends the command with 1 and prints
    nothing.
    """
    output = Printer(session.json, raw=session.raw)
    try:
        return _done(session, work, output, live)
    except BrokenPipeError:
        raise
    except OSError as error:  # usually a full disk
        output.unprinted(error)
        return FAILED


def _done(session: CommandOptions, work: Work, output: Printer, live: bool) -> int:
    async def main() -> int:
        agent = await _opened(session, output, live)
        try:
            await agent.join_office(session.office)
            return await work(agent, output)
        finally:
            await agent.close()

    try:
        with asyncio.Runner(loop_factory=command_loop) as runner:
            return runner.run(main())
    except SMCPError as error:
        output.refused(error)
        if isinstance(error, UnauthorizedError):
            output.note(KEY_ADVICE)
        return REFUSED
    except KeyboardInterrupt:
        return INTERRUPTED


async def _opened(session: CommandOptions, output: Printer, live: bool) -> AsyncSMCPAgentClient:
    if (agent := await _through_the_seat(session, live)) is not None:
        return agent
    now = asyncio.get_running_loop().time
    deadline, said = now() + session.wait, False
    link = replace(session.link, office=session.office)
    while True:
        agent = AsyncSMCPAgentClient(link, name=session.name, live=live)
        try:
            await agent.open()
        except ConnectionLostError as error:
            if error.advice:  # a certificate or a password is wrong, and waiting does not help
                raise
            if now() >= deadline:
                raise ConnectionLostError(f"{error.message}; {_NO_SERVER}", error.details) from None
            if not said:
                said = True
                output.note(f"waiting up to {session.wait:g} s for the server")
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            return agent


async def _through_the_seat(session: CommandOptions, live: bool) -> AsyncSMCPAgentClient | None:
    """An agent that shares the seat which this user's `a2c mcp` holds, if there is one."""
    try:
        link = shared_seat(session.link, session.office, session.name, start=False, take_over=live)
        agent = AsyncSMCPAgentClient(session.link, name=session.name, live=live, link=link)
        await agent.open()
    except (NotSharedError, NobodyHoldsItError):
        return None
    return agent


def room() -> Work:
    async def work(agent: AsyncSMCPAgentClient, output: Printer) -> int:
        sessions = await agent.list_room()
        rows = sorted((str(session.get("role", "")), str(session.get("name", ""))) for session in sessions)
        # How long to wait for the states of a computer's MCP servers.
        down = await servers_not_running(agent, sorted(computers_in(sessions)), 5.0)
        output.table(("role", "name"), rows, sessions)
        for computer, lines in down.items():
            for line in lines:
                output.note(f"{computer}: the MCP server {line}")
        return 0

    return work


def tools(computer: str | None) -> Work:
    async def work(agent: AsyncSMCPAgentClient, output: Printer) -> int:
        names = [computer] if computer else sorted(computers_in(await agent.list_room()))
        answers = dict(zip(names, await asyncio.gather(*(_tools_of(agent, name) for name in names)), strict=True))
        # In a pipe a tool is one line, for programs that read lines.
        about = str if sys.stdout.isatty() else as_one_line
        rows = [
            (name, tool["name"], ", ".join(tool["params_schema"].get("properties") or ()), about(tool["description"]))
            for name, answer in answers.items()
            if not isinstance(answer, SMCPError)
            for tool in answer
        ]
        failures = {name: answer for name, answer in answers.items() if isinstance(answer, SMCPError)}
        value = {name: failures[name].payload() if name in failures else answer for name, answer in answers.items()}
        output.table(("computer", "tool", "parameters", "description"), rows, value)
        for name, error in failures.items():
            output.note(f"{name}: {error}{await _meant_computer(agent, name, error)}")
        return REFUSED if failures else 0

    return work


async def _tools_of(agent: AsyncSMCPAgentClient, computer: str) -> list[SMCPTool] | SMCPError:
    """The tools of a computer, or the reason why they cannot be listed: other computers are still shown."""
    try:
        return await agent.get_tools(computer)
    except SMCPError as error:
        return error


async def _meant_computer(agent: AsyncSMCPAgentClient, computer: str, error: SMCPError) -> str:
    """The computer that was probably meant, if the error says that no computer has this name."""
    if not isinstance(error, NotFoundError):
        return ""
    try:
        names = computers_in(await agent.list_room())
    except SMCPError:  # report the first error, not this one
        return ""
    return "" if computer in names else did_you_mean(computer, names)


async def _meant_tool(agent: AsyncSMCPAgentClient, computer: str, tool: str, result: "CallToolResult") -> str:
    """The tool that was probably meant, if the result says that no tool has this name."""
    if (result.meta or {}).get(ERROR_CODE_MARKER) != ToolNotFoundError.default_code:
        return ""
    tools = await _tools_of(agent, computer)
    return "" if isinstance(tools, SMCPError) else did_you_mean(tool, [found["name"] for found in tools])


def at_computer(computer: str, work: Work) -> Work:
    """The work at one computer. If no computer has this name, the error says which one was probably meant."""

    async def suggesting(agent: AsyncSMCPAgentClient, output: Printer) -> int:
        try:
            return await work(agent, output)
        except NotFoundError as error:
            meant = await _meant_computer(agent, computer, error)
            raise NotFoundError(f"{error.message}{meant}", error.details) from None

    return suggesting


def call(
    computer: str,
    tool: str,
    typed: Typed,
    timeout: int,
    file: Path | None = None,
    wait: float = 0,
    approval_timeout: int | None = None,
) -> Work:
    async def work(agent: AsyncSMCPAgentClient, output: Printer) -> int:
        if wait:
            with output.spinner(f"waiting for {tool} on {computer}"):
                await _wait_for_tool(agent, computer, tool, wait)
        params = typed.read(await _schema(agent, computer, tool) if typed.pairs else None)
        on_question = PersonAtTerminal(output).answer if output.at_terminal else None
        with output.calling(f"{tool} on {computer}") as on_progress:
            run = partial(
                agent.call_tool,
                timeout=timeout,
                approval_timeout=approval_timeout,
                on_progress=on_progress,
                on_question=on_question,
            )
            result = await run(computer, tool, params)
            if starting := still_starting(result):
                waits = f"waiting up to {DEFAULT_WAIT:g} s, still starting: {', '.join(starting)}"
                output.note(f"{computer} has no {tool} yet; {waits}")
                with suppress(ToolNotFoundError):  # the call repeats it
                    params = typed.read((await agent.wait_for_tool(computer, tool))["params_schema"])
                result = await run(computer, tool, params)
        wire = to_wire(result)
        output.result(wire)
        if meant := await _meant_tool(agent, computer, tool, result):
            output.note(meant.removeprefix("; "))
        return FAILED if result.is_error or not save_contents(wire["content"], file, output) else 0

    return at_computer(computer, work)


async def _wait_for_tool(agent: AsyncSMCPAgentClient, computer: str, tool: str, seconds: float) -> None:
    """Wait until the tool is there or the time is over. After that the call itself says what is missing."""
    with suppress(TimeoutError, ToolNotFoundError, NotFoundError):
        async with asyncio.timeout(seconds):
            # The server refuses each request for an absent computer and logs a warning.
            with suppress(SMCPError):
                while computer not in computers_in(await agent.list_room()):  # noqa: ASYNC110 - of the server
                    await asyncio.sleep(_RETRY_SECONDS)
            await agent.wait_for_tool(computer, tool, seconds)


def save_contents(contents: Sequence[Mapping[str, Any]], file: Path | None, output: Printer) -> bool:
    """Save what the result holds, if that was asked for. Returns `False` if it could not be saved."""
    try:
        for path, what in save(contents, file) if file else ():
            output.note(f"saved in {path}: {what}")
    except BadRequestError as error:
        output.note(f"a2c agent: {error.message}")
        return False
    return True


async def _schema(agent: AsyncSMCPAgentClient, computer: str, tool: str) -> Mapping[str, Any] | None:
    """The schema of a tool's parameters; `None` if it is unknown: the call will say why."""
    tools = await _tools_of(agent, computer)
    if isinstance(tools, SMCPError):
        return None
    return next((found["params_schema"] for found in tools if found["name"] == tool), None)


def desktop(computer: str, size: int | None, window: str | None) -> Work:
    async def work(agent: AsyncSMCPAgentClient, output: Printer) -> int:
        output.texts(await agent.get_desktop(computer, size=size, window=window))
        return 0

    return at_computer(computer, work)


def finder(computer: str, keywords: Sequence[str] | None, file_type: str | None, offset: int, limit: int) -> Work:
    async def work(agent: AsyncSMCPAgentClient, output: Printer) -> int:
        page = await agent.get_finder(computer, keywords=keywords, file_type=file_type, offset=offset, limit=limit)
        rows = [(doc["title"], doc["file_type"], str(doc["page_count"]), doc["uri"]) for doc in page["documents"]]
        output.table(("title", "type", "pages", "uri"), rows, page)
        if page.get("total_count", 0) > offset + len(rows):
            output.note(f"{len(rows)} of {page['total_count']}; --offset {offset + len(rows)} goes on")
        if note := page.get("note"):
            output.note(note)
        return 0

    return at_computer(computer, work)


def config(computer: str) -> Work:
    async def work(agent: AsyncSMCPAgentClient, output: Printer) -> int:
        output.json(await agent.get_config(computer))
        return 0

    return at_computer(computer, work)


# --- watch


def watch() -> Work:
    async def work(agent: AsyncSMCPAgentClient, output: Printer) -> int:
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def on(name: str) -> Callable[[Callable[[Any], None]], None]:
            """Call this for each event, until printing fails."""

            def register(tell: Callable[[Any], None]) -> None:
                def handle(happened: Any) -> None:
                    try:
                        tell(happened)
                    except OSError as error:  # the agent would log the error and go on
                        if not ended.done():
                            ended.set_exception(error)

                agent.on(name)(handle)

            return register

        @on("enter_office")
        def _(notice: Any) -> None:
            output.line("enter_office", notice.get("computer") or notice.get("agent") or "", "came")

        @on("leave_office")
        def _(notice: Any) -> None:
            output.line("leave_office", notice.get("computer") or notice.get("agent") or "", "went")

        @on("change")
        def _(change: Change) -> None:
            if (view := agent.computers.get(change.computer)) is not None:
                _print_change(output, change, view)

        @on("connection")
        def _(event: LinkEvent) -> None:
            _print_connection(output, event)
            if isinstance(event, Disconnected) and event.final and not ended.done():
                ended.set_exception(ConnectionLostError(event.reason))

        for view in agent.computers.values():
            output.line("present", view.name, "is here")
            if view.tools is not None:
                _print_change(output, Change(view.name, Part.TOOLS), view)
        await ended
        return 0

    return work


def _print_change(output: Printer, change: Change, view: ComputerView) -> None:
    part = change.part.value
    if change.error is not None:
        output.line("change", change.computer, f"{part}: {change.error}", part=part, **change.error.payload())
        return
    value = getattr(view, part)
    output.line("change", change.computer, _summary(part, value), part=part, value=value)


def _summary(part: str, value: Any) -> str:
    match part:
        case "tools":
            return "tools: " + (", ".join(tool["name"] for tool in value) or "none")
        case "desktop":
            return f"desktop: {len(value)} windows"
        case "documents":
            return f"documents: {value.get('total_count', len(value['documents']))}"
        case _:
            return "config: " + (", ".join(value["servers"]) or "no servers")


def _print_connection(output: Printer, event: LinkEvent) -> None:
    match event:
        case Disconnected(reason=reason):
            output.line("disconnected", "", f"disconnected: {reason}", reason=reason)
        case Joined(membership=membership):
            output.line("joined", "", f"back in {membership.office_id}", office_id=membership.office_id)
        case RejoinFailed(error=error):
            output.line("rejoin_failed", "", f"not back in the office: {error}", **error.payload())

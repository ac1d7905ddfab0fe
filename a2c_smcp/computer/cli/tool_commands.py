"""Commands about the tools of this computer."""

import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from mcp_types import TextContent

from a2c_smcp.computer.cli.command_table import command, number, page
from a2c_smcp.computer.cli.output import printable, quoted
from a2c_smcp.computer.cli.session import CLISession
from a2c_smcp.computer.cli.shown_call import ShownCall
from a2c_smcp.computer.cli.terminal_answers import TERMINAL
from a2c_smcp.errors import BadRequestError, ToolNotFoundError
from a2c_smcp.results import ERROR_CODE_MARKER, to_wire
from a2c_smcp.smcp import CallToolRet
from a2c_smcp.terminal.suggestions import did_you_mean
from a2c_smcp.utils.saving import save as save_content
from a2c_smcp.utils.values import file_path, parameters, read_values, signature

__all__: list[str] = []


def _calls(session: CLISession, words: Sequence[str]) -> Iterable[str]:
    """First the tools. Then the parameters of the tool that are not in the line yet."""
    plain: list[str] = []
    rest = iter(words)
    for word in rest:
        if not word.startswith("--"):
            plain.append(word)
        elif "=" not in word:
            next(rest, None)  # the option's value
    if not plain:
        return session.computer.tool_servers
    name, *given = plain
    there = {word.partition("=")[0] for word in given}
    return [f"{parameter}=" for parameter in parameters(_schema(session, name)) if parameter not in there]


@command("tools list")
async def tools_list(session: CLISession) -> None:
    """The tools that can be called now, with their servers and parameters. A parameter with `?` may be left out."""
    servers = session.computer.tool_servers
    rows = [
        (tool["name"], servers[tool["name"]], signature(tool["params_schema"]), tool["description"].partition("\n")[0])
        for tool in session.computer.get_available_tools()
    ]
    session.show_tools(page(("tool", "server", "parameters", "description"), rows))


@command("tools call", "[--timeout SECONDS] [--save FILE] TOOL [JSON|@FILE|KEY=VALUE...]", _calls)
async def tools_call(
    session: CLISession, name: str, *values: str, timeout: str | None = None, save: str | None = None
) -> None:
    """Call a tool and show its result, or save the image in it. Ctrl-C cancels the call."""
    seconds = None if timeout is None else number(timeout, "timeout")
    file = None if save is None else file_path(save)
    params = read_values(values).read(_schema(session, name))
    req_id = uuid.uuid4().hex
    shown_call = ShownCall(session.output, req_id, name)
    async with session.busy(shown_call.line), shown_call:
        result = await session.computer.execute_tool(
            req_id, name, params, seconds, shown_call.take, confirmed_by=TERMINAL
        )
    wire = to_wire(result)
    saved, unsaved = _save(wire, file)
    shown = [item.text if isinstance(item, TextContent) else f"[{item.type}]" for item in result.content]
    if (code := (result.meta or {}).get(ERROR_CODE_MARKER)) == ToolNotFoundError.default_code:
        shown[-1] += did_you_mean(name, session.computer.tool_servers)
    shown += [f"saved in {path}: {what}" for path, what in saved]
    session.output.event(
        "tool_call_result",
        f"{'✗' if result.is_error else '✓'} {printable(name)}\n{quoted(chr(10).join(shown))}",
        req_id=req_id,
        tool=name,
        ok=not result.is_error,
        error_code=code,
        result=wire,
        saved=[str(path) for path, _ in saved],
    )
    if unsaved is not None:
        raise unsaved


def _save(result: CallToolRet, file: Path | None) -> tuple[list[tuple[Path, str]], BadRequestError | None]:
    """The files that were written, or why none could be. The result is shown in either case."""
    if file is None or result["isError"]:
        return [], None
    try:
        return save_content(result["content"], file), None
    except BadRequestError as error:
        return [], error


def _schema(session: CLISession, name: str) -> dict[str, Any] | None:
    tools = session.computer.get_available_tools()
    return next((tool["params_schema"] for tool in tools if tool["name"] == name), None)


_CURE: Final = (
    "Rename the tools of one server with tool_prefix in its config, or one tool with tool_meta.TOOL.alias. "
    "--prefix-tools adds a prefix for every server."
)


@command("tools conflicts")
async def tools_conflicts(session: CLISession) -> None:
    """Tool names that two servers have, and what to do about it."""
    conflicts = [(name, clash.servers) for clash in session.computer.tool_conflicts for name in clash.tool_names]
    session.output.event(
        "tool_conflicts",
        page(("tool", "servers"), [(name, ", ".join(servers)) for name, servers in conflicts])
        + (f"\n  {_CURE}" if conflicts else ""),
        conflicts=[{"tool": name, "servers": servers} for name, servers in conflicts],
    )

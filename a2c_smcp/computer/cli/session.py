"""What the commands act on: a Computer, its connection to a server, and the output of both."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup, TaskStatus

from a2c_smcp.computer.cli.consoles import ConsoleOpener
from a2c_smcp.computer.cli.followed_files import FollowedFiles
from a2c_smcp.computer.cli.output import Output, printable
from a2c_smcp.computer.cli.parse import quote
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.mcp_clients.masking import masked_url
from a2c_smcp.computer.mcp_clients.model import MCPServerInput
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.computer.resources.shared_lists import SharedCounts
from a2c_smcp.computer.socketio import SMCPComputerClient
from a2c_smcp.computer.watching.events import (
    ComputerEvent,
    DesktopChanged,
    EventsLost,
    FinderChanged,
    RestartOffered,
    RulesChanged,
    ServerStatus,
    ToolHidden,
    ToolInvalid,
    ToolListChanged,
)
from a2c_smcp.errors import BadRequestError, InvalidConfigError, NotInRoomError, SMCPError
from a2c_smcp.link.interface import (
    Connected,
    Disconnected,
    Joined,
    Left,
    LinkEvent,
    LinkOptions,
    Membership,
    RejoinFailed,
)
from a2c_smcp.login.fresh_tokens import LoginToken, login_for

__all__ = ["BOOT_SECONDS", "CLISession", "link_to", "status_fields"]

#: How long a join waits for the MCP servers, so that an agent does not find an empty computer.
BOOT_SECONDS: Final = 5.0
#: The events that are printed at the prompt.
_REPORTED: Final = (
    ServerStatus,
    ToolListChanged,
    DesktopChanged,
    FinderChanged,
    RestartOffered,
    RulesChanged,
    ToolHidden,
    ToolInvalid,
)
_SIGNS = {ServerState.RUNNING: "✓", ServerState.FAILED: "✗"}


@dataclass(eq=False)
class CLISession:
    """One run of the command line. `report` prints what happens; `close` ends what was started.

    `url`, `join` and `leave` make it the `OfficeDoor` of a page.
    """

    computer: Computer
    output: Output
    link: LinkOptions
    """How the server was reached last."""
    office: str | None
    """The office that `connect` joins if it names none: the last one, unless it was left."""
    files: FollowedFiles
    ask_input: Callable[[MCPServerInput], Awaitable[Any]]
    consoles: ConsoleOpener
    busy: Callable[[Callable[[], str]], AbstractAsyncContextManager[None]]
    """While inside, shows the text that the function returns."""
    tasks: TaskGroup | None = None
    """Runs what a command leaves behind, until the end of this run."""
    connected_to: str | None = None
    membership: Membership | None = None
    windows: Sequence[str] = ()
    """The URIs that were listed last, for completion."""
    documents: Sequence[str] = ()

    def __post_init__(self) -> None:
        self._client: SMCPComputerClient | None = None
        self._connecting = asyncio.Lock()

    # --- the office

    async def connect(self, link: LinkOptions, name: str, office: str | None) -> None:
        """Connect under this name instead of the old connection, and join an office unless it is `None`.

        Raises the server's refusal. If the server cannot be reached, everything stays as it was, also the old
        connection. The prompt and a page may connect at the same time: one waits for the other.
        """
        async with self._connecting:
            await self._connect(link, name, office)

    async def _connect(self, link: LinkOptions, name: str, office: str | None) -> None:
        early: list[LinkEvent] = []  # events of the new connection while the old one is still there
        is_ours = False

        def heard(event: LinkEvent) -> None:
            if is_ours:
                self._link_event(event)
            else:
                early.append(event)

        client = SMCPComputerClient(self.computer, replace(link, office=office), on_event=heard)
        await client.connect()
        await self.disconnect()
        is_ours = True
        for event in early:
            self._link_event(event)
        self._client, self.link, self.office, self.computer.name = client, link, office, name
        if office is not None:
            await self.join_office(office)

    async def disconnect(self) -> bool:
        """End the connection, or the attempt to connect. Returns whether there was one."""
        client, self._client = self._client, None
        self.membership = None
        if client is None:
            return False
        if self.connected_to is None:
            self._link_event(Disconnected("given up by this side", final=True))
        await client.disconnect()
        return True

    async def join_office(self, office: str) -> None:
        if self._client is None:
            raise NotInRoomError("not connected to a server; type `connect` first")
        await self._client.join_office(office)

    async def leave_office(self) -> None:
        if self._client is None or self.membership is None:
            raise NotInRoomError("this computer is in no office")
        self.membership = self.office = None
        await self._client.leave_office()

    # --- for a page

    @property
    def url(self) -> str:
        return masked_url(self.link.url)

    async def join(self, url: str, office: str, api_key: str | None) -> None:
        await self.connect(link_to(self.link, url, api_key), self.computer.name, office)

    async def leave(self) -> None:
        if self.membership is not None:
            with suppress(SMCPError):  # a server that does not answer is left as well
                await self.leave_office()
        await self.disconnect()

    @property
    def joined(self) -> bool:
        """Whether this computer is in its office right now."""
        return self._client is not None and self._client.joined

    async def close(self) -> None:
        with anyio.CancelScope(shield=True):
            await self.disconnect()
            await self.computer.shutdown()

    # --- output

    async def report(self, *, task_status: TaskStatus[None]) -> None:
        """Print the events of the Computer, until cancelled."""
        async with self.computer.events(kinds=_REPORTED) as events:
            task_status.started()
            async for event in events:
                self._computer_event(event)

    def show_error(self, error: SMCPError) -> None:
        self.output.event(
            "error",
            f"✗ {_shown(error)}",
            code=error.code,
            message=error.message,
            details=error.details,
        )

    def show_tools(self, text: str) -> None:
        servers = self.computer.tool_servers
        self.output.event("tool_list_changed", text, tools=list(servers), servers=servers)

    def _computer_event(self, event: ComputerEvent) -> None:
        match event:
            case ServerStatus():
                self.output.event("server_status", _status_text(event), servers=[status_fields(event)], all=False)
            case ToolListChanged():
                self.show_tools("")
            case DesktopChanged():
                self.output.event("desktop_updated", windows=None)
            case FinderChanged():
                self.output.event("finder_updated", documents=None, total_count=None)
            case RestartOffered(server=server, reason=reason):
                command = f"servers restart {quote(printable(server))}"
                text = f"! {printable(server)}: {printable(reason)}; `{command}` applies it"
                self.output.event("restart_offered", text, server=server, reason=reason)
            case RulesChanged(outcome="problem" | "gone" as outcome, says=says):
                self.output.event("rules_changed", f"! {printable(says)}", outcome=outcome, says=says)
            case ToolHidden(error=error):
                self.show_error(error)
            case ToolInvalid(server=server, tool=tool):
                self.show_error(BadRequestError(str(event), {"server_name": server, "tool_name": tool}))
            case EventsLost(count=count):
                self.output.event(
                    "events_lost", f"! {count} events are not shown: there were too many at once", count=count
                )

    def _link_event(self, event: LinkEvent) -> None:
        match event:
            case Connected(url=url):
                self.connected_to = masked_url(url)
                self.output.event("connected", f"✓ connected to {self.connected_to}", url=self.connected_to)
            case Disconnected(reason=reason, final=final):
                self.connected_to = None
                text = f"! disconnected: {printable(reason)}" + ("" if final else "; trying again")
                self.output.event("disconnected", text, reason=reason, final=final)
            case Joined(membership=membership, again=again):
                self.membership, self.office = membership, membership.office_id
                office, name = membership.office_id, membership.name
                text = f"✓ in office {printable(office)} as {printable(name)}"
                self.output.event("joined", text, office=office, name=name, again=again)
            case Left(membership=membership):
                self.membership = None
                office = membership.office_id
                self.output.event("left", f"✓ left office {printable(office)}", office=office, name=membership.name)
            case RejoinFailed(error=error):
                self.show_error(error)


def link_to(known: LinkOptions, url: str, api_key: str | None) -> LinkOptions:
    """The options for the server that a person named. The known server keeps its key and headers. Another server gets
    none of them: the key of one server is never sent to another. Without a key, the token of `a2c login` counts.
    """
    if url in (known.url, masked_url(known.url)):
        link = replace(known, api_key=known.api_key if api_key is None else api_key)
    else:
        link = replace(known, url=url, api_key=api_key, headers={})
    is_personal = link.api_key is None or isinstance(link.api_key, LoginToken)
    return replace(link, api_key=login_for(link.url)) if is_personal else link


def status_fields(status: ServerStatus, shared: SharedCounts | None = None) -> dict[str, object]:
    """The fields of a server in a `server_status` line. `shared` tells what it shares, if it runs."""
    return {
        "name": status.server,
        "state": status.state.value,
        "reason": status.reason,
        "restarts": status.restarts,
        **({"ignored": status.ignored} if status.ignored else {}),
        **({"shared": asdict(shared)} if shared is not None else {}),
    }


def _shown(error: SMCPError) -> str:
    """The message on one line; the problems of a config on one line each, as a compiler shows them."""
    if isinstance(error, InvalidConfigError) and error.problems:
        return "\n  ".join(map(str, error.problems))
    return printable(error.message)


def _status_text(status: ServerStatus) -> str:
    sign = _SIGNS.get(status.state, "·")
    why = f": {printable(status.reason)}" if status.reason else ""
    return f"{sign} {printable(status.server)} {status.state.value}{why}"

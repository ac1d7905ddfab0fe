"""What the commands act on: a Computer, its connection to a server, and the events of both as output."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
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
from a2c_smcp.computer.socketio import SMCPComputerClient
from a2c_smcp.computer.watching.events import (
    ComputerEvent,
    DesktopChanged,
    EventsLost,
    FinderChanged,
    RestartOffered,
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

__all__ = ["BOOT_SECONDS", "CLISession", "status_fields"]

#: How long to wait for the servers before joining an office, so that an agent does not find an empty computer.
BOOT_SECONDS: Final = 5.0
#: What a line at the prompt is printed for.
_REPORTED: Final = (
    ServerStatus,
    ToolListChanged,
    DesktopChanged,
    FinderChanged,
    RestartOffered,
    ToolHidden,
    ToolInvalid,
)
_SIGNS = {ServerState.RUNNING: "✓", ServerState.FAILED: "✗"}


class CLISession:
    """One run of the command line. `report` prints what happens; `close` ends what was started."""

    def __init__(
        self,
        computer: Computer,
        output: Output,
        link: LinkOptions,
        office: str | None,
        files: FollowedFiles,
        ask_input: Callable[[MCPServerInput], Awaitable[Any]],
        consoles: ConsoleOpener,
        busy: Callable[[Callable[[], str]], AbstractAsyncContextManager[None]],
    ) -> None:
        self.computer = computer
        self.output = output
        self.link = link
        """How the server is reached, unless `connect` says otherwise."""
        self.office = office
        """Where `connect` joins, unless it says otherwise: the office that was joined last, and not left."""
        self.files = files
        self.ask_input = ask_input
        self.consoles = consoles
        self.tasks: TaskGroup | None = None
        """What a command leaves running, until the end of this run."""
        self.busy = busy
        """Shows what is under way, as the function says that it is given."""
        self.connected_to: str | None = None
        self.membership: Membership | None = None
        self.windows: list[str] = []
        """The URIs that were listed last, for completion."""
        self.documents: list[str] = []
        self._client: SMCPComputerClient | None = None
        self._connecting = asyncio.Lock()

    # --- the office

    async def connect(self, link: LinkOptions, name: str, office: str | None) -> None:
        """Connect under this name, in the place of a connection that there may be, and join an office if there is one.

        Raises the refusal. A server that cannot be reached leaves everything as it was, the old connection included.
        The prompt and a page may want it at the same time: one comes after the other.
        """
        async with self._connecting:
            await self._connect(link, name, office)

    async def _connect(self, link: LinkOptions, name: str, office: str | None) -> None:
        early: list[LinkEvent] = []  # what is heard of the new connection before the old one has gone
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
            await self.join(office)

    async def disconnect(self) -> bool:
        """End the connection, or the attempt to connect; says whether there was one."""
        client, self._client = self._client, None
        self.membership = None
        if client is None:
            return False
        if self.connected_to is None:
            self._link_event(Disconnected("given up by this side", final=True))
        await client.disconnect()
        return True

    async def join(self, office: str) -> None:
        if self._client is None:
            raise NotInRoomError("not connected to a server; `connect` comes first")
        await self._client.join_office(office)

    async def leave(self) -> None:
        if self._client is None or self.membership is None:
            raise NotInRoomError("in no office")
        self.membership = self.office = None
        await self._client.leave_office()

    @property
    def joined(self) -> bool:
        """Whether the server has this computer in its office right now."""
        return self._client is not None and self._client.joined

    async def close(self) -> None:
        with anyio.CancelScope(shield=True):
            await self.disconnect()
            await self.computer.shutdown()

    # --- output

    async def report(self, *, task_status: TaskStatus[None]) -> None:
        """Print what happens on the Computer, until cancelled."""
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
                text = f"! {printable(server)}: {printable(reason)}; `{command}` takes it over"
                self.output.event("restart_offered", text, server=server, reason=reason)
            case ToolHidden(error=error):
                self.show_error(error)
            case ToolInvalid(server=server, tool=tool):
                self.show_error(BadRequestError(str(event), {"server_name": server, "tool_name": tool}))
            case EventsLost(count=count):
                self.output.event("events_lost", f"! {count} events are not shown: too many at once", count=count)

    def _link_event(self, event: LinkEvent) -> None:
        match event:
            case Connected(url=url):
                self.connected_to = masked_url(url)
                self.output.event("connected", f"✓ connected to {self.connected_to}", url=self.connected_to)
            case Disconnected(reason=reason, final=final):
                self.connected_to = None
                text = f"! disconnected: {printable(reason)}" + ("" if final else "; trying on")
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


def status_fields(status: ServerStatus) -> dict[str, object]:
    """A server in a `server_status` line."""
    return {
        "name": status.server,
        "state": status.state.value,
        "reason": status.reason,
        "restarts": status.restarts,
        **({"ignored": status.ignored} if status.ignored else {}),
    }


def _shown(error: SMCPError) -> str:
    """On one line, but for what a compiler draws."""
    if isinstance(error, InvalidConfigError) and error.problems:
        return "\n  ".join(map(str, error.problems))
    return printable(error.message)


def _status_text(status: ServerStatus) -> str:
    sign = _SIGNS.get(status.state, "·")
    why = f": {printable(status.reason)}" if status.reason else ""
    return f"{sign} {printable(status.server)} {status.state.value}{why}"

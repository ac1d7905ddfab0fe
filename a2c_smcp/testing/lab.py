"""`office`: a server, computers and an agent in one event loop, joined and ready."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, Final

import anyio

from a2c_smcp.agent.client import AsyncSMCPAgentClient
from a2c_smcp.agent.types import AgentHandler
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.mcp_clients.connection_options import Timings
from a2c_smcp.computer.socketio.client import SMCPComputerClient
from a2c_smcp.link.interface import LinkOptions
from a2c_smcp.server.app import create_app
from a2c_smcp.server.auth import AuthenticationProvider, OpenAuthentication
from a2c_smcp.server.limits import Limits
from a2c_smcp.testing.mcp_in_process import LabServer, McpInProcess, configs_of
from a2c_smcp.testing.person import Person, Script
from a2c_smcp.testing.portless_server import Cable, PortlessServer

__all__ = ["Lab", "LabComputer", "office"]

#: The name of the computer of `mcp_servers`.
DEFAULT_COMPUTER: Final = "pc"
#: The name of the office.
OFFICE: Final = "lab"
#: A server that a test has killed starts again at once.
_TIMINGS: Final = Timings(backoff_first=0.01, backoff_most=0.1)


class LabComputer:
    """A computer of the lab, and what can be done to it."""

    def __init__(
        self,
        computer: Computer,
        client: SMCPComputerClient,
        servers: Mapping[str, McpInProcess],
        person: Person,
        cable: Cable,
    ) -> None:
        self.computer = computer
        """The `Computer` itself: its statuses, decisions, events and history."""
        self.client = client
        """Its place in the office."""
        self.servers = servers
        """Its MCP servers in this process, by name: `servers["tools"].kill()`."""
        self.person = person
        """The person at this computer, and what they were asked."""
        self._cable = cable

    @property
    def name(self) -> str:
        """Its name in the office."""
        return self.computer.name

    @property
    def delay(self) -> float:
        """Seconds that each message between this computer and the server takes. Set it at any time."""
        return self._cable.delay

    @delay.setter
    def delay(self, seconds: float) -> None:
        self._cable.delay = seconds

    def lose_connection(self) -> None:
        """Break the connection without a good-bye. The computer connects and joins again by itself."""
        self._cable.lose_connections()

    @contextmanager
    def offline(self) -> Iterator[None]:
        """Keep the computer away from the server for the time of the block. After it the computer comes back."""
        self._cable.is_cut = True
        self._cable.lose_connections()
        try:
            yield
        finally:
            self._cable.is_cut = False


class Lab:
    """An office in this process. `async with office(…) as lab` makes it."""

    agent: AsyncSMCPAgentClient
    """The agent, in its office. Without an agent (`office(agent=None)`) this raises `AttributeError`."""

    def __init__(self, server: PortlessServer, stack: AsyncExitStack) -> None:
        self.office = OFFICE
        """The name of the office that everybody is in."""
        self.server = server.app
        """The server's application; `server.switchboard` has its offices."""
        self.computers: dict[str, LabComputer] = {}
        """The computers by name."""
        self._server = server
        self._stack = stack
        self._agent_cable: Cable | None = None

    def link(self) -> LinkOptions:
        """How a client of your own reaches the server: `AsyncSMCPAgentClient(lab.link(), name="ada")`, also the
        blocking agent, in any thread. Close the client before the lab ends.
        """
        return self._server.cable().options

    async def add_computer(
        self,
        name: str,
        mcp_servers: Iterable[LabServer] = (),
        *,
        approvals: Script = None,
        questions: Script = None,
        **options: Any,
    ) -> LabComputer:
        """Let another computer join. `options` are those of `Computer`; the others are those of `office`."""
        configs, here = configs_of(mcp_servers, auto_apply=approvals is None)
        ways = {server: each.streams for server, each in here.items()}
        computer = Computer(name, mcp_servers=configs, ways=ways, **{"timings": _TIMINGS, **options})
        cable = self._server.cable()
        client = SMCPComputerClient(computer, cable.options)
        person = Person(approvals, questions)
        person.attend(computer.decisions)
        await self._stack.enter_async_context(computer)
        await self._stack.enter_async_context(client)
        await client.join_office(OFFICE)
        self.computers[name] = LabComputer(computer, client, here, person, cable)
        return self.computers[name]

    async def add_agent(self, name: str, handler: AgentHandler | None = None) -> AsyncSMCPAgentClient:
        """Let the agent join. An office has one, and `office` has added it unless it was told not to."""
        self._agent_cable = self._server.cable()
        agent = AsyncSMCPAgentClient(self._agent_cable.options, name=name, handler=handler)
        await self._stack.enter_async_context(agent)
        await agent.join_office(OFFICE)
        await agent.settled()
        self.agent = agent
        return agent

    def lose_connection(self) -> None:
        """Break the connection of the agent without a good-bye. It connects and joins again by itself."""
        assert self._agent_cable is not None, "this lab has no agent of its own"
        self._agent_cable.lose_connections()


@asynccontextmanager
async def office(
    mcp_servers: Iterable[LabServer] = (),
    *,
    computers: Mapping[str, Iterable[LabServer]] | None = None,
    approvals: Script = None,
    questions: Script = None,
    agent: str | None = "agent",
    auth: AuthenticationProvider | None = None,
    limits: Limits | None = None,
) -> AsyncIterator[Lab]:
    """An office in this process, with real code and without ports; everybody has joined when the block begins.

    `mcp_servers` are those of one computer, called `pc`; `computers` has several, by name. A server is a function (a
    fake tool), a `ContextServer` of our kit, a server of mcp's SDK, any of these with config keys (`in_process`), or a
    config of a real server.

    `approvals` is the script of the person at the computer: true, false, the words of a refusal, `NO_ANSWER`, a list of
    these, or a function that gets the `Confirmation`. Without it the servers in this process need no confirmation.
    `questions` likewise answers what tools ask: the fields of the form, or false. If there are several computers, each
    person has the whole list. An error of a script, such as `ScriptEndedError`, is raised when the lab ends. With
    `agent=None` no agent joins.
    """
    if computers is not None and mcp_servers:
        raise ValueError("give mcp_servers for one computer, or computers for several")
    rooms = {DEFAULT_COMPUTER: mcp_servers} if computers is None else computers
    app = create_app(auth or OpenAuthentication(), limits=limits)
    async with PortlessServer(app) as server, AsyncExitStack() as stack:
        lab = Lab(server, stack)
        for name, servers in rooms.items():
            await lab.add_computer(name, servers, approvals=approvals, questions=questions)
        if agent is not None:
            await lab.add_agent(agent)
        try:
            yield lab
        finally:
            # A test that was cancelled or failed leaves nothing behind.
            with anyio.CancelScope(shield=True):
                await stack.aclose()
    for computer in lab.computers.values():
        if computer.person.error is not None:
            raise computer.person.error

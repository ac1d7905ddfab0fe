"""The lab for tests that are not async: its event loop runs in a thread."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal

from a2c_smcp.agent.sync_client import SMCPAgentClient
from a2c_smcp.computer.decisions.book import Decision
from a2c_smcp.testing.lab import Lab, LabComputer, office

__all__ = ["BlockingComputer", "BlockingLab", "blocking_office"]


class BlockingComputer:
    """A computer of the lab. `lab` is the `LabComputer` itself, to be used in the lab's thread: `BlockingLab.run`."""

    def __init__(self, lab: LabComputer, portal: BlockingPortal) -> None:
        self.lab = lab
        self._portal = portal

    @property
    def asked(self) -> list[Decision]:
        """What the person at this computer was asked, in order."""
        return self.lab.person.asked

    def lose_connection(self) -> None:
        """Break the connection without a good-bye. The computer connects and joins again by itself."""
        self._portal.call(self.lab.lose_connection)

    @contextmanager
    def offline(self) -> Iterator[None]:
        """Keep the computer away from the server for the time of the block."""
        block = self.lab.offline()
        self._portal.call(block.__enter__)
        try:
            yield
        finally:
            self._portal.call(block.__exit__, None, None, None)

    def kill(self, server: str) -> None:
        """Kill one of its MCP servers, by its name. The computer starts it again."""
        self._portal.call(self.lab.servers[server].kill)

    def set_delay(self, seconds: float) -> None:
        """How many seconds each message between this computer and the server takes."""
        self.lab.delay = seconds


class BlockingLab:
    """An office in a thread of this process. `with blocking_office(…) as lab` makes it."""

    agent: SMCPAgentClient
    """The agent, in its office. Without an agent (`agent=None`) this raises `AttributeError`."""

    def __init__(self, lab: Lab, portal: BlockingPortal) -> None:
        self.lab = lab
        """The lab itself, to be used in its own thread."""
        self.run = portal.call
        """Runs a function, async or not, in the lab's thread: `lab.run(lab.lab.add_computer, "desk")`."""
        self.office = lab.office
        self.link = lab.link
        self._portal = portal

    @property
    def computers(self) -> dict[str, BlockingComputer]:
        """The computers by name."""
        return {name: BlockingComputer(each, self._portal) for name, each in self.lab.computers.items()}


@contextmanager
def blocking_office(*args: Any, agent: str | None = "agent", **options: Any) -> Iterator[BlockingLab]:
    """`office` for tests that are not async, with the same arguments: its agent is the blocking one."""
    with (
        start_blocking_portal("asyncio") as portal,
        portal.wrap_async_context_manager(office(*args, agent=None, **options)) as lab,
    ):
        blocking = BlockingLab(lab, portal)
        if agent is None:
            yield blocking
            return
        with SMCPAgentClient(lab.link(), name=agent) as client:
            client.join_office(lab.office)
            client.settled()
            blocking.agent = client
            yield blocking

"""What is shipped, brought up: NATS, server processes and nginx; our own clients, who call tools; and restarts."""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from a2c_smcp.agent import AsyncSMCPAgentClient
from a2c_smcp.computer import Computer, SMCPComputerClient
from a2c_smcp.errors import SMCPError
from a2c_smcp.link.interface import LinkOptions
from tests.certificates import Certificate
from tests.computer.fakes.computers import FAST, server
from tests.deploy.nginx import nginx
from tests.nats_server import free_ports
from tests.server.harness import eventually
from tests.server.test_cli import Process

__all__ = ["Load", "Stack", "clients", "stack"]


@dataclass
class Stack:
    """Two server processes behind nginx."""

    url: str
    ports: list[int]
    options: tuple[str, ...]
    processes: list[Process] = field(default_factory=list)

    def start(self, number: int) -> None:
        process = Process("--port", str(self.ports[number]), *self.options)
        if number < len(self.processes):
            self.processes[number] = process
        else:
            self.processes.append(process)

    def restart(self, number: int) -> float:
        """Stop a process as systemd does, and start it again. Returns how many seconds the stop took."""
        began = time.monotonic()
        status, said = self.processes[number].stop(signal.SIGTERM)
        took = time.monotonic() - began
        assert status == 0 and "Traceback" not in said, said
        self.start(number)
        return took

    def end(self) -> None:
        for process in self.processes:
            if process.popen.poll() is None:
                process.popen.kill()
            process.popen.communicate()


@contextmanager
def stack(folder: Path, nats_urls: str, prefix: str, certificate: Certificate, *options: str) -> Iterator[Stack]:
    ports = free_ports(2)
    named = {f"127.0.0.1:700{number + 1}": f"127.0.0.1:{port}" for number, port in enumerate(ports)}
    all_options = ("--api-key", "key", "--nats", nats_urls, "--nats-prefix", prefix, *options)
    with ExitStack() as exits:
        made = Stack("", ports, all_options)
        exits.callback(made.end)
        for number in range(2):
            made.start(number)
        made.url = exits.enter_context(nginx(folder, "cluster.conf", certificate, named))
        yield made


@dataclass
class Load:
    """Calls of one tool, one after the other, several at a time; and how they ended."""

    seconds: float
    done: int = 0
    failed: Counter[str] = field(default_factory=Counter)

    async def call(self, agent: AsyncSMCPAgentClient, stopped: asyncio.Event) -> None:
        while not stopped.is_set():
            try:
                result = await agent.call_tool("pc", "t.sleep", {"seconds": self.seconds}, timeout=60)
                if result.is_error:
                    self.failed[str(result.content)] += 1
                else:
                    self.done += 1
            except SMCPError as error:
                self.failed[f"{type(error).__name__}: {error}"] += 1
                await asyncio.sleep(0.05)


@asynccontextmanager
async def clients(
    url: str, certificate: Certificate, offices: Sequence[str]
) -> AsyncIterator[list[AsyncSMCPAgentClient]]:
    """An agent and a computer in each office."""
    async with AsyncExitStack() as exits:
        agents = []
        for office in offices:
            options = LinkOptions(url, api_key="key", ca=certificate.cert, office=office)
            computer = await exits.enter_async_context(Computer("pc", mcp_servers=[server("t")], timings=FAST))
            client = await exits.enter_async_context(SMCPComputerClient(computer, options))
            await client.join_office(office)
            agent = await exits.enter_async_context(AsyncSMCPAgentClient(options, name="ada"))
            await agent.join_office(office)
            await eventually(lambda agent=agent: "pc" in agent.computers)  # type: ignore[misc]
            agents.append(agent)
        yield agents

"""`python -m tests.chaos.rolling`: what is shipped, three NATS servers, two servers and nginx, under load and faults.

A server is restarted (it drains), a server is killed, a NATS server is killed: in a seeded order, while agents call
tools of 10 ms, 1 s and 5 s. Prints how many calls failed by each fault. Exits with 1 when a restart failed a call, or
calls did not work again soon after a fault.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path

from a2c_smcp.agent import AsyncSMCPAgentClient
from a2c_smcp.errors import SMCPError
from tests.certificates import self_signed
from tests.deploy.rolling import Load, Stack, clients, stack
from tests.nats_server import NatsServer, running_cluster

#: Seconds after a fault within which a call works again, on a busy machine.
SOON = 20.0
OFFICES = ("lab", "plant", "desk", "home")


class Faults:
    """What happens to the parties. Each method returns when the party is back."""

    def __init__(self, servers: Stack, nats: list[NatsServer], random_: random.Random) -> None:
        self._servers = servers
        self._nats = nats
        self._random = random_

    def restart_a_server(self) -> None:
        self._servers.restart(self._random.randrange(2))

    def kill_a_server(self) -> None:
        number = self._random.randrange(2)
        self._servers.processes[number].popen.kill()
        self._servers.processes[number].popen.communicate()
        self._servers.start(number)

    def kill_a_nats_server(self) -> None:
        victim = self._random.choice(self._nats)
        victim.kill()
        time.sleep(self._random.uniform(0.5, 8))
        victim.start()


async def works_again(agent: AsyncSMCPAgentClient) -> None:
    async with asyncio.timeout(SOON):
        while True:
            try:
                if not (await agent.call_tool("pc", "t.sleep", {"seconds": 0.01}, timeout=10)).is_error:
                    return
            except SMCPError:
                await asyncio.sleep(0.05)


async def run(folder: Path, seconds: float, seed: int) -> list[str]:
    """Perform faults for so long, and return the problems."""
    certificate, loads, problems = self_signed(folder, "127.0.0.1"), [Load(0.01), Load(1.0), Load(5.0)], []
    until, stopped, chance = time.monotonic() + seconds, asyncio.Event(), random.Random(seed)
    with (
        running_cluster(folder / "nats") as nats,
        stack(folder, ",".join(each.url for each in nats), "chaos", certificate) as servers,
    ):
        faults = Faults(servers, nats, chance)
        async with clients(servers.url, certificate, OFFICES) as agents, asyncio.TaskGroup() as tasks:
            for agent in agents:
                for load in loads:
                    tasks.create_task(load.call(agent, stopped))
            while time.monotonic() < until:
                fault = chance.choice([faults.restart_a_server, faults.kill_a_server, faults.kill_a_nats_server])
                before, name = failures(loads), fault.__name__.replace("_", " ")
                await asyncio.to_thread(fault)
                try:
                    await asyncio.gather(*map(works_again, agents))
                except TimeoutError:
                    problems.append(f"{name}: calls did not work again within {SOON:g} s")
                await asyncio.sleep(6)  # the calls of 5 s, too, have ended by then
                failed = failures(loads) - before
                print(f"{name}: {failed} calls failed", flush=True)
                if failed and fault == faults.restart_a_server:
                    problems.append(f"{name}: {failed} calls failed: {[dict(load.failed) for load in loads]}")
            stopped.set()
    print("calls that were answered:", {f"{load.seconds:g} s": load.done for load in loads})
    return problems


def failures(loads: list[Load]) -> int:
    return sum(sum(load.failed.values()) for load in loads)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.rolling", description=__doc__)
    parser.add_argument("--seconds", type=float, default=180.0, help="how long things are broken (default: 180)")
    parser.add_argument("--seed", type=int, default=1, help="which things, in which order (default: 1)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        problems = asyncio.run(run(Path(folder), arguments.seconds, arguments.seed))
    for problem in problems:
        print(f"✗ {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

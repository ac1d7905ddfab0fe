"""`python -m bench.simulation`: join storms and lost processes, at growing sizes."""

import argparse
import asyncio
import gc
import itertools
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from a2c_smcp.server.cluster import clock
from bench.simulation.virtual_time import World

# The membership code takes the clock's function when it is imported.
_world = World()
clock.now = lambda: _world.clock()

from a2c_smcp.errors import SMCPError  # noqa: E402
from a2c_smcp.server.cluster.options import ClusterOptions  # noqa: E402
from a2c_smcp.server.cluster.registry import ClusterRegistry  # noqa: E402
from a2c_smcp.server.offices import Grant, MemberChange  # noqa: E402
from a2c_smcp.smcp import EnterOfficeReq  # noqa: E402
from a2c_smcp.types import Role  # noqa: E402
from bench.simulation.calibration import measured_costs  # noqa: E402
from bench.simulation.fake_nats import Costs, FakeConnection, FakeNats  # noqa: E402
from bench.simulation.virtual_time import ProcessLoop  # noqa: E402

OPTIONS = ClusterOptions(("nats://simulated:4222",))
#: Members of an office: one agent and nine computers.
OFFICE = 10
#: CPU seconds of a server process for a client that connects and joins, without the membership. `python -m bench
#: cluster` has about a thousand joins a second.
CLIENT = 0.001


class SimulatedProcess:
    """One server process: its loop, its registry and its clients. It listens to its own registry."""

    def __init__(self, world: World, nats: FakeNats) -> None:
        self._world = world
        self.loop: ProcessLoop = world.new_loop()
        world.current = self.loop
        asyncio.events._set_running_loop(self.loop)
        try:
            self.registry = ClusterRegistry(FakeConnection(nats, self.loop, OPTIONS))  # type: ignore[arg-type]
        finally:
            asyncio.events._set_running_loop(None)
        self.registry.listen(self)
        self.refused = self.cut = 0
        self._numbers = itertools.count()
        self._clients: dict[str, int] = {}
        world.start(self.loop, self.registry.__aenter__())

    @property
    def is_ready(self) -> bool:
        return bool(self.registry.process)

    async def join(self, number: int) -> None:
        """A client connects and joins. After a refusal it does both again a second later, as clients do."""
        while not await self._try_to_join(number):
            self.refused += 1
            await asyncio.sleep(1.0)

    async def _try_to_join(self, number: int) -> bool:
        self.loop.spend(CLIENT)
        sid = f"{number}.{next(self._numbers)}"
        role: Role = "agent" if number % OFFICE == 0 else "computer"
        self._clients[sid] = number
        self.registry.connect(sid, Grant())
        request: EnterOfficeReq = {
            "role": role,
            "name": f"n{number}",
            "office_id": f"office {number // OFFICE}",
            "resume": f"the secret of client {number}",
        }
        try:
            await self.registry.join(sid, request)
        except SMCPError:
            self._clients.pop(sid, None)
            await self.registry.disconnect(sid)
            return False
        return True

    # What the registry tells.

    async def began(self, process: str) -> None:
        pass

    def changed(self, changes: Sequence[MemberChange]) -> None:
        pass

    def ended(self, process: str) -> None:
        for sid in list(self._clients):
            self.lost(sid)

    def lost(self, sid: str) -> None:
        """The connection is closed. A client that had joined comes back."""
        self.cut += 1
        if (number := self._clients.pop(sid, None)) is not None:
            self.loop.create_task(self._come_back(sid, number))

    async def _come_back(self, sid: str, number: int) -> None:
        await self.registry.disconnect(sid)
        await asyncio.sleep(1.0)
        await self.join(number)


@dataclass
class Row:
    """What one size took. Times are seconds of virtual time."""

    processes: int
    members: int
    join_storm: float
    """All members join at once: until every process knows all of them."""
    joins_per_second: float
    messages_per_second: float
    """What NATS sends to the processes meanwhile."""
    join_turn: float
    """The longest time that an event loop was blocked meanwhile."""
    start: float
    """A new process: until it has read the whole bucket and has a lease."""
    start_turn: float
    back: float
    """A process is killed: until those of its clients that come back after a second have their places again."""
    lost: float
    """Until all others know that the rest of its clients has gone."""
    lost_turn: float
    kib_per_member: float
    """Memory of one process for one member."""
    failures: int
    """Joins that were refused, and connections that were closed, in the storm."""


def rss_kib() -> float:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize() / 1024


def turns(processes: Sequence[SimulatedProcess]) -> float:
    longest = max(each.loop.longest_turn for each in processes)
    for each in processes:
        each.loop.longest_turn = 0.0
    return longest


def simulate(count: int, members: int, costs: Costs) -> Row:
    world = _world
    world.__init__()  # type: ignore[misc]
    nats = FakeNats(world, costs)
    # Python's collector looks at everything in this process: twenty times what one server process has.
    gc.disable()
    before = rss_kib()
    processes = [SimulatedProcess(world, nats) for _ in range(count)]
    world.run_until(lambda: all(each.is_ready for each in processes), 60)
    turns(processes)

    began, sent = world.now, nats.deliveries
    for number in range(members):
        process = processes[(number // OFFICE) % count]
        # A process takes one client after the other.
        world.start(process.loop, process.join(number), after=number / count * CLIENT)
    storm = world.run_until(lambda: all(_knows(each) == members for each in processes), 3600) - began
    delivered, join_turn = nats.deliveries - sent, turns(processes)
    kib = (rss_kib() - before) / count / members
    failures = sum(each.refused + each.cut for each in processes)

    began = world.now
    newcomer = SimulatedProcess(world, nats)
    start = world.run_until(lambda: newcomer.is_ready and _knows(newcomer) == members, 600) - began
    start_turn = turns([newcomer])
    rest = world.now + 5
    world.run_until(lambda: world.now >= rest, 30)
    turns([*processes, newcomer])

    victim, others = processes[0], [*processes[1:], newcomer]
    moved = [number for number in range(members) if (number // OFFICE) % count == 0]
    # Every other office of the killed process comes back elsewhere after a second. The rest has gone for ever.
    back = [number for number in moved if number // OFFICE // count % 2 == 0]
    began = world.now
    victim.loop.is_alive = False
    gone = victim.registry.process
    targets: Iterator[SimulatedProcess] = itertools.cycle(others)
    for place, (_, numbers) in enumerate(itertools.groupby(back, lambda number: number // OFFICE)):
        target = next(targets)
        for number in numbers:
            world.start(target.loop, target.join(number), after=1 + place * OFFICE * CLIENT / len(others))
    back_at = world.run_until(lambda: all(_process_of(others[0], number) != gone for number in back), 3600)
    left = members - len(moved) + len(back)
    lost_at = world.run_until(lambda: all(_knows(each) == left for each in others), 120)
    lost_turn = turns(others)
    return Row(
        count, members, storm, members / storm, delivered / storm, join_turn, start, start_turn,
        back_at - began, lost_at - began, lost_turn, kib, failures,
    )  # fmt: skip


def _process_of(process: SimulatedProcess, number: int) -> str:
    """Where a client is, as a process knows it."""
    role: Role = "agent" if number % OFFICE == 0 else "computer"
    holder = process.registry.replica.directory.holder(f"office {number // OFFICE}", role, f"n{number}")
    return holder.process if holder is not None else ""


def _knows(process: SimulatedProcess) -> int:
    return len(process.registry.replica._visible)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.simulation", description=__doc__)
    parser.add_argument("--sizes", default="5x10000,20x10000,20x30000,20x60000,20x100000", help="processes x members")
    parser.add_argument("--json", type=Path, help="where the figures go")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        count, members, costs = json.loads(args.one)
        print(json.dumps(asdict(simulate(count, members, Costs(**costs)))), flush=True)
        os._exit(0)  # thousands of tasks are pending in loops that will not run again
    costs = asdict(measured_costs())
    print("NATS, measured:", {name: f"{1e6 * value:.1f} µs" for name, value in costs.items()}, flush=True)
    rows = []
    for size in args.sizes.split(","):
        count, members = map(int, size.split("x"))
        # A process of its own, because memory is measured.
        command = [sys.executable, "-m", "bench.simulation", "--one", json.dumps([count, members, costs])]
        began = time.perf_counter()
        said = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=3600)
        rows.append(json.loads(said.stdout))
        shown = {name: float(f"{value:.3g}") for name, value in rows[-1].items()}
        print(shown, f"({time.perf_counter() - began:.0f} s of real time)", flush=True)
    if args.json:
        args.json.write_text(json.dumps({"costs": costs, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()

"""An honest agent as a process of its own: calls `echo` again and again, and says how it went.

`honest_agent.py [--live] URL OFFICE COMPUTER [API_KEY]`, with a live view or without. A line `start SECONDS` on stdin
begins a count, with so many seconds between two calls. A line `stop` ends the calls. Both print the count. A line
`also COMPUTER TIMES` calls a tool of another computer so often besides, and then prints how that went.
"""

import asyncio
import json
import sys
import time
from dataclasses import asdict, dataclass, field

from a2c_smcp.agent import AgentHandler, AsyncSMCPAgentClient
from a2c_smcp.agent.types import Disconnected, LinkEvent
from a2c_smcp.errors import SMCPError
from a2c_smcp.smcp import LeaveOfficeNotification


@dataclass
class Count:
    calls: int = 0
    slowest: float = 0.0
    total: float = 0.0
    failures: list[str] = field(default_factory=list)
    departures: list[str] = field(default_factory=list)
    """What left, this agent's connection or a computer."""


class Watcher(AgentHandler):
    def __init__(self) -> None:
        self.count = Count()

    def on_leave_office(self, data: LeaveOfficeNotification) -> None:
        self.count.departures.append(f"computer {data.get('computer')}")

    def on_connection(self, event: LinkEvent) -> None:
        if isinstance(event, Disconnected):
            self.count.departures.append(f"agent: {event.reason}")


async def call(agent: AsyncSMCPAgentClient, computer: str) -> str | None:
    """Why a call failed, if it did."""
    try:
        result = await agent.call_tool(computer, "echo", {"text": "hello"}, 30)
    except SMCPError as error:
        return str(error)
    return "an error result" if result.is_error else None


async def also(agent: AsyncSMCPAgentClient, computer: str, times: int) -> None:
    codes = [(await agent.call_tool(computer, "t", {}, 60)).meta for _ in range(times)]
    print("ALSO " + json.dumps([(meta or {}).get("error_code") for meta in codes]), flush=True)


async def main() -> None:
    live = "--live" in sys.argv
    url, office, computer, *key = [word for word in sys.argv[1:] if word != "--live"]
    besides: set[asyncio.Task[None]] = set()
    watcher = Watcher()
    lines: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    loop.add_reader(sys.stdin.fileno(), lambda: lines.put_nowait(sys.stdin.readline()))
    async with AsyncSMCPAgentClient(
        url, name="honest", api_key=key[0] if key else None, handler=watcher, live=live
    ) as agent:
        await agent.join_office(office)
        while await call(agent, computer):  # noqa: ASYNC110 - it is asked, it does not tell
            await asyncio.sleep(0.1)  # its tools are on the way
        print("READY", flush=True)
        pause: float | None = None
        while True:
            if pause is None or not lines.empty():
                match (await lines.get()).split():
                    case ["start", seconds]:
                        watcher.count, pause = Count(), float(seconds)
                    case ["stop"]:
                        pause = None
                    case ["also", other, times]:
                        besides.add(asyncio.create_task(also(agent, other, int(times))))
                        continue
                    case _:
                        return
                print("COUNT " + json.dumps(asdict(watcher.count)), flush=True)
                continue
            began = time.monotonic()
            failure = await call(agent, computer)
            spent = time.monotonic() - began
            count = watcher.count
            count.calls += 1
            count.total += spent
            count.slowest = max(count.slowest, spent)
            if failure:
                count.failures.append(failure[:200])
            await asyncio.sleep(pause)


if __name__ == "__main__":
    asyncio.run(main())

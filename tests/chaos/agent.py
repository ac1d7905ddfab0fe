"""The agent of the chaos, as a process of its own: it calls all the time and writes down how every call ended.

`agent.py URL OFFICE JOURNAL COMPUTER…`. A line of the journal is `begin REQ_ID`, `again REQ_ID` for a request that is
sent once more after its connection was lost, or `end REQ_ID OUTCOME`. A line `whole` on stdin is answered with `WHOLE`
once every computer is in the view and has answered, a line `view` with the names in the view and in the room. SIGTERM
ends it after its running calls.
"""

import asyncio
import random
import signal
import sys
import uuid
from pathlib import Path

from mcp_types import CallToolResult

from a2c_smcp.agent import AsyncSMCPAgentClient
from a2c_smcp.errors import ConnectionLostError, SMCPError

WORKERS = 4
CALL_SECONDS = 5


class Caller:
    def __init__(self, agent: AsyncSMCPAgentClient, journal: Path, computers: list[str]) -> None:
        self._agent = agent
        self._journal = journal.open("a", buffering=1)
        self._computers = computers
        self.stopping = asyncio.Event()

    async def work(self) -> None:
        while not self.stopping.is_set():
            req_id = uuid.uuid4().hex
            self._journal.write(f"begin {req_id}\n")
            outcome = await self._outcome(req_id, random.choice(self._computers))
            self._journal.write(f"end {req_id} {outcome}\n")
            await asyncio.sleep(0.01 if outcome == "result" else 0.1)

    async def _outcome(self, req_id: str, computer: str) -> str:
        try:
            try:
                return _said(await self._record(computer, req_id))
            except ConnectionLostError:
                if not await self._back():
                    return "error 0"
                self._journal.write(f"again {req_id}\n")
                return _said(await self._record(computer, req_id))
        except SMCPError as error:
            return f"error {error.code}"
        except Exception as error:
            # What chaos is looking for.
            return f"unexpected {type(error).__name__} {error}"

    async def _record(self, computer: str, req_id: str) -> CallToolResult:
        return await self._agent.call_tool(computer, "record", {"token": req_id}, CALL_SECONDS, req_id=req_id)

    async def _back(self) -> bool:
        """Whether the office was reached again soon enough for the request to be worth sending again."""
        for _ in range(300):
            if self._agent.joined:
                return True
            await asyncio.sleep(0.1)
        return False

    async def whole(self) -> None:
        for computer in self._computers:
            while not await self._answers(computer):  # noqa: ASYNC110 - it is asked, it does not tell
                await asyncio.sleep(0.02)
        print("WHOLE", flush=True)

    async def _answers(self, computer: str) -> bool:
        if computer not in self._agent.computers:
            return False
        try:
            return not (await self._record(computer, uuid.uuid4().hex)).is_error
        except SMCPError:
            return False

    async def view(self) -> None:
        """Once nothing moves any more."""
        await self._agent.settled(30)
        room = {session["name"] for session in await self._agent.list_room() if session["role"] == "computer"}
        print(f"VIEW {sorted(self._agent.computers)} ROOM {sorted(room)}", flush=True)


def _said(result: CallToolResult) -> str:
    if not result.is_error:
        return "result"
    code = (result.meta or {}).get("error_code")
    return "cancelled" if code is None else f"error {code}"


async def main() -> None:
    url, office, journal, *computers = sys.argv[1:]
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str] = asyncio.Queue()
    loop.add_reader(sys.stdin.fileno(), lambda: lines.put_nowait(sys.stdin.readline()))
    async with AsyncSMCPAgentClient(url, name="chaos") as agent:
        while True:
            try:
                await agent.join_office(office)
                break
            except SMCPError as error:
                print(f"not in yet: {error}", flush=True)
                await asyncio.sleep(0.1)
        caller = Caller(agent, Path(journal), computers)
        loop.add_signal_handler(signal.SIGTERM, lines.put_nowait, "")
        workers = [asyncio.create_task(caller.work()) for _ in range(WORKERS)]
        print("READY", flush=True)
        questions: set[asyncio.Task[None]] = set()
        while line := (await lines.get()).strip():
            questions.add(asyncio.create_task(caller.whole() if line == "whole" else caller.view()))
        caller.stopping.set()
        await asyncio.wait(workers, timeout=120)
        for question in questions:
            question.cancel()
    print("DONE", flush=True)


if __name__ == "__main__":
    asyncio.run(main())

"""When a silent server is refused its probe, and when it is only slow. With real pipes: `test_connection`."""

from typing import Any

import anyio
from mcp_types import RequestId

from a2c_smcp.computer.mcp_clients.probe import Probe, ProbeTimeouts


class Pipe:
    """What a server was sent, and what is said in its place."""

    def __init__(self, patience: ProbeTimeouts) -> None:
        self.is_read = False
        self.said: list[dict[str, Any]] = []
        self.is_stuck = False
        self.probe = Probe(patience, self.give_up)
        self.unanswered: list[RequestId] = [7]

    def give_up(self) -> None:
        self.is_stuck = True

    async def watch(self) -> None:
        await self.probe.watch(lambda: self.unanswered, lambda: self.is_read, self.answer)

    def answer(self, message: dict[str, Any]) -> None:
        self.said.append(message)
        self.unanswered.remove(message["id"])


async def test_what_was_not_read_is_not_ignored() -> None:
    pipe = Pipe(ProbeTimeouts(probe=0, handshake=0))
    with anyio.move_on_after(0.5) as scope:
        await pipe.watch()
    assert scope.cancelled_caught
    assert pipe.said == []


async def test_what_was_read_and_not_answered_is_refused_once_and_then_given_up() -> None:
    pipe = Pipe(ProbeTimeouts(probe=0, handshake=0))
    pipe.is_read = True
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pipe.watch)
            while not pipe.said:  # noqa: ASYNC110
                await anyio.sleep(0.01)
            await anyio.sleep(0.2)
            assert not pipe.is_stuck, "the handshake was not sent yet"
            pipe.unanswered.append(8)
    assert [(message["id"], message["error"]["code"]) for message in pipe.said] == [(7, -32001)]
    assert pipe.is_stuck


async def test_a_server_that_speaks_is_left_to_mcp() -> None:
    pipe = Pipe(ProbeTimeouts(probe=0, handshake=0))
    pipe.is_read = True
    pipe.probe.heard()
    with anyio.fail_after(20):
        await pipe.watch()
    assert pipe.said == []
    assert not pipe.is_stuck

"""Two hosts, two processes of `a2c mcp`, one seat: one cancels, the holder is killed, and both go on."""

import asyncio
import os
import signal
import socket
from pathlib import Path

import anyio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from a2c_smcp.agent.seat.place import peer_pid
from tests.hosts.conftest import A2C, DEADLINE, Lab


def host(lab: Lab, mode: str) -> Client:
    return Client(StdioServerParameters(command=A2C, args=["mcp"], env=lab.env), mode=mode)


async def echo(client: Client, text: str) -> str:
    result = await client.call_tool("pc__echo", {"text": text})
    return str(result.content[0].text)  # type: ignore[union-attr]


async def echoes(client: Client, text: str) -> None:
    """Until it does. A call waits five seconds for a seat that is being taken, and is refused then."""
    while await echo(client, text) != text:  # noqa: ASYNC110 - it is another process that changes
        await anyio.sleep(0.05)


def holder(lab: Lab) -> int:
    [path] = Path(lab.env["XDG_RUNTIME_DIR"], "a2c").glob("*.sock")
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        pid = peer_pid(connection)
    assert pid is not None
    return pid


async def test_two_hosts_share_a_seat_and_go_on_when_its_holder_is_killed(lab: Lab) -> None:
    with anyio.fail_after(DEADLINE):
        async with host(lab, "legacy") as one, host(lab, "auto") as two:
            await asyncio.gather(echoes(one, "1"), echoes(two, "2"))
            first = await asyncio.to_thread(holder, lab)

            before = lab.noted("waiting"), lab.noted("cancelled")
            mine = asyncio.create_task(one.call_tool("pc__wait", {}))
            other = asyncio.create_task(two.call_tool("pc__wait", {}))
            await asyncio.to_thread(lab.wait_until_noted, "waiting", before[0] + 2)
            mine.cancel()
            await asyncio.to_thread(lab.wait_until_noted, "cancelled", before[1] + 1)
            assert not other.done()

            os.kill(first, signal.SIGKILL)
            result = await other
            assert result.is_error and "may have run" in str(result.content)
            # The server cancels what a lost agent had asked for.
            await asyncio.to_thread(lab.wait_until_noted, "cancelled", before[1] + 2)

            # A call into the dead socket fails, too, until its process has seen the end of it.
            await echoes(one, "3")
            await echoes(two, "4")
            assert await asyncio.to_thread(holder, lab) != first
            assert lab.noted("waiting") == before[0] + 2  # no call ran twice

            looked = await anyio.run_process([A2C, "agent", "room"], env=lab.env)
            assert b"a2c-mcp" in looked.stdout and b"pc" in looked.stdout

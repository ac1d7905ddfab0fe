"""Operators at one process of a cluster see and act on all of them."""

import asyncio
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from a2c_smcp.errors import ConnectionLostError, UnauthorizedError
from a2c_smcp.link.interface import Disconnected, LinkEvent, LinkOptions, Membership
from a2c_smcp.link.office_link import OfficeLink
from a2c_smcp.server.admin.client import AdminClient
from tests.forked import A2C
from tests.nats_server import NatsServer
from tests.server.harness import eventually

KEYS = """
[[keys]]
name = "stays"
key = "the-key-that-stays"

[[keys]]
name = "goes"
key = "the-key-that-goes"
"""


@contextmanager
def process(folder: Path, *args: str) -> Iterator[tuple[str, AdminClient, subprocess.Popen[str]]]:
    """A server process: where it serves, and how operators reach it."""
    socket = folder / "admin.sock"
    popen = subprocess.Popen(
        [A2C, "server", "--port", "0", "--admin-socket", str(socket), *args], stderr=subprocess.PIPE, text=True
    )
    try:
        assert popen.stderr is not None
        lines = []
        for line in popen.stderr:
            lines.append(line)
            if match := re.search(r"ready on ([^\s;]+)", line):
                yield match[1], AdminClient(socket=socket), popen
                return
        raise AssertionError(f"not ready: {lines}")
    finally:
        popen.send_signal(signal.SIGCONT)
        popen.kill()
        popen.communicate()


def came_back(server: AdminClient, session: str) -> bool:
    """Whether there are two members, and none has this old session."""
    sessions = [row["session"] for row in server.get("members")["members"]]
    return len(sessions) == 2 and session not in sessions


async def asked(client: AdminClient, operation: str, **query: Any) -> dict[str, Any]:
    return await asyncio.to_thread(lambda: client.get(operation, **query))


async def told(client: AdminClient, operation: str, **body: Any) -> dict[str, Any]:
    return await asyncio.to_thread(lambda: client.post(operation, **body))


async def test_one_operator_for_two_processes(nats: NatsServer, prefix: str, tmp_path: Path) -> None:
    keys, cluster_key = tmp_path / "keys.toml", tmp_path / "cluster.key"
    keys.write_text(KEYS)
    cluster_key.write_text("the key that these servers share\n")
    options = ["--keys", str(keys), "--nats", nats.url, "--nats-prefix", prefix, "--cluster-key-file", str(cluster_key)]
    events: list[LinkEvent] = []
    with ExitStack() as stack:
        folders = [tmp_path / "one", tmp_path / "two"]
        for folder in folders:
            folder.mkdir()
        (url, here, _), (other_url, _, other) = [stack.enter_context(process(folder, *options)) for folder in folders]
        await eventually(lambda: len(here.get("processes")["processes"]) == 2)
        stays, goes = (
            LinkOptions(at, api_key=f"the-key-that-{name}") for at, name in ((url, "stays"), (other_url, "goes"))
        )
        async with OfficeLink(stays, {}) as agent, OfficeLink(goes, {}, on_event=events.append) as computer:
            await agent.join(Membership("agent", "smith", "o"))
            await computer.join(Membership("computer", "laptop", "o"))

            # Who is at the other process is seen from this one.
            rows = (await asked(here, "members"))["members"]
            assert [(row["name"], row["key"]) for row in rows] == [("smith", "stays"), ("laptop", "goes")]
            assert len({row["process"] for row in rows}) == 2
            [office] = (await asked(here, "offices"))["offices"]
            assert (office["agent"], office["computers"]) == ("smith", 1)
            assert {row["name"]: row["processes"] for row in (await asked(here, "keys"))["keys"]} == {
                "goes": 2,
                "stays": 2,
            }

            # It is kicked there, and comes back by itself.
            session = rows[1]["session"]
            assert (await told(here, "kick", target="laptop/o"))["kicked"]["session"] == session
            await eventually(lambda: any(isinstance(event, Disconnected) for event in events))
            await eventually(lambda: came_back(here, session))

            # Its key is revoked here, and its session ends there. The client is told 401, and does not come back.
            answer = await told(here, "revoke", key="goes")
            assert answer["processes"] == 2 and not answer["silent"]
            await eventually(lambda: any(isinstance(event, Disconnected) and event.final for event in events))
            with pytest.raises(UnauthorizedError):
                async with OfficeLink(goes, {}):
                    pass
            assert [row["name"] for row in (await asked(here, "members"))["members"]] == ["smith"]

            # A process that does not answer is named, after a bounded time.
            other.send_signal(signal.SIGSTOP)
            began = time.monotonic()
            page = await asked(here, "members")
            assert [row["name"] for row in page["members"]] == ["smith"]
            [silent] = page["silent"]
            assert silent["process"] == rows[1]["process"] and "did not answer" in silent["reason"]
            assert time.monotonic() - began < 12  # well before the client gives up
            other.send_signal(signal.SIGCONT)

            # Draining ends the process that is named, and no other.
            await told(here, "drain", process=rows[1]["process"])
            assert await asyncio.to_thread(other.wait, 60) == 0
            assert (await asked(here, "processes"))["processes"]
    with pytest.raises(ConnectionLostError):
        await asked(here, "processes")

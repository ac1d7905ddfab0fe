"""`a2c doctor --nats`: address, JetStream, rights."""

import asyncio
import json
import os
import re
from pathlib import Path

import pytest

from a2c_smcp.server.cluster.checks import examine_nats
from a2c_smcp.server.cluster.nats_keys import server_permissions
from a2c_smcp.server.cluster.options import ClusterOptions
from tests.forked import shared
from tests.nats_server import NatsServer, free_ports, running_nats
from tests.server.cluster.processes import patience, registries, registry
from tests.server.harness import eventually


@pytest.mark.usefixtures("patient")
async def test_a_nats_that_is_well(nats: NatsServer, prefix: str) -> None:
    options = ClusterOptions((nats.url,), prefix=prefix)
    said = await examine_nats(options)
    assert [advice for _, advice in said] == [""] * 4
    assert "the first server makes it" in said[2][0]
    async with registry(options) as here:
        revision = here.registry.revision
        said = await examine_nats(options)
        assert [advice for _, advice in said] == [""] * 4
        assert "can be read and written; copies: 1" in said[2][0]
        # It was looked at, and nothing was written.
        assert here.registry.revision - revision <= 3 and here.registry.replica.revision_of("doctor") == 0
        entry = await here.registry._bucket.read("doctor")
        assert entry.revision == 0


@pytest.mark.usefixtures("patient")
async def test_addresses_are_looked_at_one_by_one_and_passwords_are_not_shown(nats: NatsServer, prefix: str) -> None:
    nobody = f"nats://user:secret@127.0.0.1:{free_ports(1)[0]}"
    said = await examine_nats(ClusterOptions((nobody, nats.url), prefix=prefix))
    assert "does not answer" in said[0][0] and "start nats-server" in said[0][1]
    assert said[1][1] == "" and len(said) == 5
    assert "secret" not in repr(said)


@pytest.mark.usefixtures("patient")
async def test_jetstream_that_is_off(tmp_path: Path) -> None:
    with running_nats(tmp_path, jetstream=False) as nats:
        _, (what, advice) = await examine_nats(ClusterOptions((nats.url,)))
        assert "JetStream" in what and "-js" in advice


CONFIG = """
authorization {
  users = [
    {user: all, password: secret},
    {user: few, password: secret, permissions: {publish: {allow: ["$JS.API.>"]}, subscribe: {allow: ["_INBOX.>"]}}},
    {user: none, password: secret, permissions: {publish: {deny: [">"]}}},
  ]
}
"""


async def test_rights_that_are_missing_are_named(tmp_path: Path, prefix: str) -> None:
    config = tmp_path / "nats.conf"
    config.write_text(CONFIG)
    with running_nats(tmp_path / "nats", ["--config", str(config)]) as nats:

        def options(user: str) -> ClusterOptions:
            return ClusterOptions((nats.url.replace("://", f"://{user}:secret@"),), prefix=prefix)

        [(what, advice)] = await examine_nats(options("stranger"))
        assert "refuses the credentials" in what and "--nats-creds" in advice
        with patience():
            assert [advice for _, advice in await examine_nats(options("all"))] == [""] * 4
        async with registry(options("all")):
            said = await examine_nats(options("few"))
            assert [bool(advice) for _, advice in said] == [False, False, True, True]
            assert f"$kv.{prefix}-members.doctor" in said[2][0] and f"{prefix}.p." in said[3][0]
        assert "may not be used" in (await examine_nats(options("none")))[-1][0]


def documented(kind: str) -> list[str]:
    """The subjects that docs/scaling.md says a server's user needs."""
    text = (Path(__file__).parents[3] / "docs" / "scaling.md").read_text("utf-8")
    block = re.search(r"```\npublish:(?P<publish>.*?)subscribe:(?P<subscribe>.*?)```", text, re.DOTALL)
    assert block is not None
    return [subject.strip() for subject in block[kind].split(",")]


@pytest.mark.usefixtures("patient")
async def test_a_user_with_the_documented_rights_can_do_everything(tmp_path: Path) -> None:
    permissions = server_permissions("a2c")
    assert set(documented("publish")) == set(permissions.publish)
    assert set(documented("subscribe")) == set(permissions.subscribe)
    rights = {kind: {"allow": documented(kind)} for kind in ("publish", "subscribe")}
    config = tmp_path / "nats.conf"
    config.write_text(json.dumps({"authorization": {"users": [{"user": "u", "password": "p", "permissions": rights}]}}))
    with running_nats(tmp_path / "nats", ["--config", str(config)]) as nats:
        options = ClusterOptions((nats.url.replace("://", "://u:p@"),), renewal=0.5)
        assert [advice for _, advice in await examine_nats(options)] == [""] * 4
        async with registries(options, 2) as (here, there):
            assert [advice for _, advice in await examine_nats(options)] == [""] * 4
            await here.join("s1", "computer", "c", "o")
            await here.registry.leave("s1", {"office_id": "o"})
            await there.join("s2", "computer", "c", "o")
            here.registry._watcher.expire()
            await eventually(lambda: here.names("o") == ["c"])


@pytest.mark.usefixtures("patient")
async def test_a_nats_that_takes_small_messages_only_is_no_use(tmp_path: Path, prefix: str) -> None:
    config = tmp_path / "nats.conf"
    config.write_text("max_payload: 65536\n")
    with running_nats(tmp_path / "nats", ["--config", str(config)]) as nats:
        options = ClusterOptions((nats.url,), prefix=prefix)
        [(what, advice)] = await examine_nats(options)
        assert "65536 bytes" in what and "max_payload" in advice
        async with registry(options, ready=False) as here:
            await eventually(lambda: "max_payload" in (here.registry.unavailable() or ""))


def test_the_command_says_it_and_ends_with_1(prefix: str) -> None:
    address = f"nats://127.0.0.1:{free_ports(1)[0]}"
    result = shared().run_text("doctor", "--nats", address, env=os.environ)
    assert result.returncode == 1 and f"✗ {address} does not answer" in result.stdout
    result = shared().run_text("doctor", "--nats", "redis://x", env=os.environ)
    assert result.returncode == 2


async def test_an_old_nats_is_named_with_the_version_that_is_needed() -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"server_id":"old","version":"2.10.22","max_payload":1048576,"headers":true}\r\n')
        async for line in reader:
            if line.startswith(b"PING"):
                writer.write(b"PONG\r\n")
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        ((what, advice),) = await examine_nats(ClusterOptions((f"nats://127.0.0.1:{port}",)))
    assert "2.10.22" in what and advice == "NATS 2.11 or newer is needed"

"""`a2c server nats-setup`: its files, and what a real NATS server makes of them."""

import asyncio
import secrets
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import nats.js.errors
import pytest
from nats.aio.client import Client as NatsClient
from typer.testing import CliRunner

from a2c_smcp.cli import app
from a2c_smcp.server.cluster.checks import examine_nats
from a2c_smcp.server.cluster.nats_keys import Account, Permissions, new_seed, server_permissions
from a2c_smcp.server.cluster.nats_setup import make_files, write_files
from a2c_smcp.server.cluster.options import ClusterOptions
from tests.nats_server import NatsServer, running_nats
from tests.server.cluster.processes import patience, registries
from tests.server.harness import eventually

A2C = str(Path(sys.executable).with_name("a2c"))
FILES = {"auth.conf", "cluster.conf", "server.creds", "cluster.key", "operator.seed", "account.seed"}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the command has made."""
    folder = tmp_path_factory.mktemp("setup") / "new" / "keys"
    command = [A2C, "server", "nats-setup", str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    for words in ("Next:", f"--nats-creds {folder}/server.creds --cluster-key-file {folder}/cluster.key", "a2c doctor"):
        assert words in result.stdout
    return folder


@pytest.fixture(scope="module")
def keyed_nats(keys: Path) -> Iterator[NatsServer]:
    with running_nats(keys.parent / "nats", ["--config", str(keys / "auth.conf")]) as server:
        yield server


def test_the_files_are_for_their_owner_alone_and_are_not_overwritten_unless_asked(keys: Path, tmp_path: Path) -> None:
    assert {file.name for file in keys.iterdir()} == FILES
    assert keys.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in keys.iterdir()} == {0o600}
    (tmp_path / "server.creds").write_text("old")
    with pytest.raises(FileExistsError, match=r"server\.creds"):
        write_files(tmp_path, make_files("a2c", ["n"]))
    assert [file.name for file in tmp_path.iterdir()] == ["server.creds"]
    (tmp_path / "server.creds").chmod(0o644)
    write_files(tmp_path, make_files("a2c", ["n"]), overwrite=True)
    assert {file.name for file in tmp_path.iterdir()} == FILES
    assert (tmp_path / "server.creds").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "server.creds").read_text() != "old"


def test_a_file_that_cannot_be_written_leaves_no_secret_behind(tmp_path: Path) -> None:
    (tmp_path / "auth.conf").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_files(tmp_path, make_files("a2c", ["n"]), overwrite=True)
    assert [file.name for file in tmp_path.iterdir()] == ["auth.conf"]


def test_the_command_says_what_it_cannot_do_and_what_comes_next(keys: Path, tmp_path: Path) -> None:
    before = (keys / "cluster.key").read_text()
    again = CliRunner().invoke(app, ["server", "nats-setup", str(keys)])
    assert again.exit_code == 1 and "exists already" in again.output and "--force" in again.output
    assert (keys / "cluster.key").read_text() == before and before not in again.output
    assert CliRunner().invoke(app, ["server", "nats-setup", str(keys), "--nats-prefix", "a.b"]).exit_code == 2
    made = CliRunner().invoke(app, ["server", "nats-setup", str(tmp_path), "--node", "n", "--nats-prefix", "lab"])
    assert made.exit_code == 0 and "nats://n:4222 " in made.output and "--nats-prefix lab" in made.output


@pytest.mark.usefixtures("patient")
async def test_servers_with_the_credentials_have_all_that_they_need(keys: Path, keyed_nats: NatsServer) -> None:
    options = ClusterOptions((keyed_nats.url,), keys / "server.creds", renewal=0.5)
    assert [advice for _, advice in await examine_nats(options)] == [""] * 4
    async with registries(options, 2) as (here, there):
        assert [advice for _, advice in await examine_nats(options)] == [""] * 4
        await here.join("s1", "computer", "c", "o")
        await here.registry.leave("s1", {"office_id": "o"})
        await there.join("s2", "computer", "c", "o")
        here.registry._watcher.expire()
        await eventually(lambda: here.names("o") == ["c"])


async def test_nobody_comes_in_without_credentials_or_with_those_of_another_system(
    keys: Path, keyed_nats: NatsServer, tmp_path: Path
) -> None:
    write_files(tmp_path, make_files("a2c", ["n"]))
    for creds in (None, tmp_path / "server.creds"):
        with patience():
            [(what, advice)] = await examine_nats(ClusterOptions((keyed_nats.url,), creds))
        assert "refuses the credentials" in what and "--nats-creds" in advice


@asynccontextmanager
async def user(keys: Path, nats: NatsServer, permissions: Permissions) -> AsyncIterator[tuple[NatsClient, list[str]]]:
    """One more user of the same account, and what NATS complains of."""
    complaints: list[str] = []

    async def complain(error: Exception) -> None:
        complaints.append(str(error).lower())

    creds = keys.parent / f"{secrets.token_hex(4)}.creds"
    account = Account((keys / "account.seed").read_text().strip())
    seed = new_seed("user", secrets.token_bytes(32))
    creds.write_text(account.credentials("another", seed, permissions, int(time.time())))
    client = NatsClient()
    await client.connect(nats.url, user_credentials=creds, error_cb=complain, max_reconnect_attempts=1)
    try:
        yield client, complaints
    finally:
        await client.close()


async def test_a_user_of_the_same_account_can_do_what_it_was_given_and_nothing_else(
    keys: Path, keyed_nats: NatsServer
) -> None:
    async with user(keys, keyed_nats, server_permissions("other")) as (client, complaints):

        async def ignore(_: object) -> None: ...

        for subject in ("a2c.p.>", "$KV.a2c-members.>", ">", "$JS.>"):
            await client.subscribe(subject, cb=ignore)
        for subject in ("a2c.p.x.m", "$KV.a2c-members.n.x", "$JS.API.STREAM.DELETE.KV_a2c-members"):
            await client.publish(subject, b"")
        await eventually(lambda: len(complaints) == 7)
        assert all("permissions violation" in complaint for complaint in complaints)
        with pytest.raises((asyncio.TimeoutError, nats.errors.Error)):
            await client.jetstream(timeout=0.3).stream_info("KV_a2c-members")


async def test_what_a_server_may_do_does_not_delete_the_bucket(keys: Path, keyed_nats: NatsServer) -> None:
    async with user(keys, keyed_nats, server_permissions("a2c")) as (client, complaints):
        for what in ("DELETE", "PURGE"):
            await client.publish(f"$JS.API.STREAM.{what}.KV_a2c-members", b"")
        await client.publish("$SYS.REQ.SERVER.PING", b"")
        await eventually(lambda: len(complaints) == 3)

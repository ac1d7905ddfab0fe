"""The files of `deploy/` that cannot be run whole here: their commands are, and what they name must be there."""

import configparser
import contextlib
import os
import re
import shlex
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from a2c_smcp.server.cluster.nats_setup import make_files, write_files
from tests.forked import shared
from tests.nats_server import free_ports, nats_binary
from tests.server.test_cli import Process

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
#: The NATS servers of the compose file, which `a2c server nats-setup` names by itself.
NODES = ("nats-1", "nats-2", "nats-3")


@pytest.fixture(scope="module")
def compose() -> Any:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def unit(name: str) -> configparser.SectionProxy:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(DEPLOY / "systemd" / name)
    return parser["Service"]


@pytest.fixture
def key(tmp_path: Path) -> Path:
    (tmp_path / "api.key").write_text("key\n")
    (tmp_path / "api.key").chmod(0o600)
    return tmp_path / "api.key"


def started(words: list[str], key: Path) -> Process:
    """A server by its options, but for its port and its folders."""
    line = " ".join(words).replace("${A2C_HOST}", "127.0.0.1").replace("%t/a2c-%i", str(key.parent))
    line = re.sub(r"(--api-key-file[= ])\S+", rf"\g<1>{key}", line)
    return Process(*re.sub(r"--port[= ]\S+", "", line).split())


@pytest.mark.parametrize("name", ["server-1", "server-2"])
def test_the_servers_of_the_compose_file_start_and_pass_their_health_check(compose: Any, name: str, key: Path) -> None:
    service = compose["services"][name]
    command, *words = service["command"]
    assert command == "server"
    environment = service["environment"]
    assert set(environment) == {"A2C_NATS", "A2C_NATS_CREDS", "A2C_CLUSTER_KEY_FILE"}, "no key is in there"
    assert int(service["stop_grace_period"].removesuffix("s")) >= drain_of(words) + 2
    mounted = {volume.split(":")[1]: volume.split(":")[0] for volume in service["volumes"]}
    assert {mounted[environment[name]] for name in ("A2C_NATS_CREDS", "A2C_CLUSTER_KEY_FILE")} == {
        "./nats/keys/server.creds",
        "./nats/keys/cluster.key",
    }
    process = started(words, key)
    try:
        kind, _, flag, check = service["healthcheck"]["test"]
        assert (kind, flag) == ("CMD", "-c")
        port = process.url.rpartition(":")[2]
        # As it stands, but with the patience of a machine that has much to do.
        check = check.replace("7000", port).replace("timeout=3", "timeout=30")
        subprocess.run([sys.executable, flag, check], check=True, timeout=60)
    finally:
        assert process.stop()[0] == 0


def test_the_compose_file_mounts_what_there_is_and_names_its_own_services(compose: Any) -> None:
    services = compose["services"]
    for service in services.values():
        assert set(service.get("depends_on", [])) <= set(services)
        for source in [volume.partition(":")[0] for volume in service.get("volumes", [])]:
            if source.startswith("./nats/keys/"):
                assert source.removeprefix("./nats/keys/") in make_files("a2c", NODES), source
            elif source.startswith("./") and source not in ("./certificates", "./api.key"):
                assert (DEPLOY / source).is_file(), source
    assert set(re.findall(r"nats://([\w-]+):4222", services["server-1"]["environment"]["A2C_NATS"])) <= set(services)
    replaced = re.findall(r"s/([\d.:]+)/([\w-]+):\d+ resolve/", " ".join(services["nginx"]["command"]))
    config = (DEPLOY / "nginx" / "cluster.conf").read_text()
    assert len(replaced) == config.count("max_fails=0;") and "zone a2c" in config
    for address, name in replaced:
        assert f"server {address} " in config
        assert name in services


@pytest.fixture
def nats_conf(tmp_path: Path) -> Path:
    """The configuration of a NATS server as it is deployed, with new keys, on ports of its own."""
    config = (DEPLOY / "nats" / "nats.conf").read_text()
    client, route, monitor = free_ports(3)
    for old, new in (
        ("store_dir: /data", f"store_dir: {tmp_path}"),
        ("port: 4222", f"listen: 127.0.0.1:{client}"),
        ("port: 6222", f"listen: 127.0.0.1:{route}"),
        ("127.0.0.1:8222", f"127.0.0.1:{monitor}"),
    ):
        assert old in config
        config = config.replace(old, new)
    write_files(tmp_path / "keys", make_files("a2c", NODES))
    (tmp_path / "nats.conf").write_text(config)
    return tmp_path / "nats.conf"


def test_nats_accepts_its_configuration_and_knows_the_other_servers(nats_conf: Path) -> None:
    command = [nats_binary(), "-t", "-c", str(nats_conf), "--name", "nats-1"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, said.stderr
    routes = re.findall(r"@([\w-]+):6222", (nats_conf.parent / "keys" / "cluster.conf").read_text())
    assert routes == [f"nats-{number}" for number in (1, 2, 3)] == list(NODES)


def test_what_nats_acknowledges_is_on_the_disk_in_every_file_that_we_ship() -> None:
    files = [path for path in DEPLOY.rglob("*") if path.is_file() and "jetstream {" in path.read_text()]
    assert sorted(path.name for path in files) == ["nats.conf", "nats.yaml", "one.conf"]
    for path in files:
        assert re.search(r"jetstream \{[^}]*\bsync_interval: always\n", path.read_text()), path
    assert "`sync_interval: always`, as in the files that we ship" in (DEPLOY.parent / "docs/scaling.md").read_text()


def test_nats_as_it_is_deployed_lets_in_nobody_without_credentials_and_no_other_nats_server(nats_conf: Path) -> None:
    """Without the two files of keys it lets everybody in: so it is they that keep them out."""
    assert greeted(nats_conf) == {"client": "-ERR 'Authorization Violation'", "route": "-ERR 'Authorization Violation'"}
    text = nats_conf.read_text().replace("include ./keys/auth.conf", "")
    nats_conf.write_text(text.replace("include ./keys/cluster.conf", "routes: [nats://127.0.0.1:1]"))
    assert greeted(nats_conf) == {"client": "PONG", "route": "PONG"}


def greeted(config: Path) -> dict[str, str]:
    """What a stranger is told by a running NATS server, as a client and as another server."""
    ports = re.findall(r"listen: 127.0.0.1:(\d+)", config.read_text())
    log = config.with_name("log")
    with log.open("wb") as output:
        nats = subprocess.Popen([nats_binary(), "-c", str(config), "--name", "nats-1"], stdout=output, stderr=output)
    try:
        hello = b'CONNECT {"verbose":false,"name":"x","server_id":"x","cluster":"a2c"}\r\nPING\r\n'
        return {kind: last_word(nats, int(port), hello) for kind, port in zip(("client", "route"), ports, strict=True)}
    finally:
        nats.kill()
        nats.wait()


def last_word(nats: "subprocess.Popen[bytes]", port: int, hello: bytes) -> str:
    deadline = time.monotonic() + 60
    while True:
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), 60) as sock:
            sock.sendall(hello)
            lines = sock.makefile("r", encoding="utf-8")
            return next(line.strip() for line in lines if line.startswith(("-ERR", "PONG")))
        assert nats.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)


def drain_of(words: list[str]) -> int:
    """The seconds that a command gives its drain."""
    return int(re.findall(r"--drain[= ](\d+)", " ".join(words))[0])


def test_the_unit_of_the_server_starts_one(key: Path) -> None:
    service = unit("a2c-server@.service")
    program, command, *words = shlex.split(service["ExecStart"])
    assert (Path(program).name, command) == ("a2c", "server")
    assert int(service["TimeoutStopSec"]) >= drain_of(words) + 2
    loaded = service["LoadCredential"].partition(":")[0]
    assert words[words.index("--api-key-file") + 1] == f"%d/{loaded}"
    assert words[words.index("--admin-socket") + 1] == f"%t/{service['RuntimeDirectory']}/admin.sock"
    process = started(words, key)
    assert process.stop()[0] == 0


def test_the_unit_for_nats_hands_over_the_files_that_nats_setup_makes() -> None:
    text = (DEPLOY / "systemd" / "a2c-server@.service.d" / "nats.conf").read_text()
    loaded = dict(re.findall(r"^LoadCredential=([\w.]+):(\S+)$", text, re.MULTILINE))
    assert set(loaded) <= set(make_files("a2c", NODES)) and set(re.findall(r"%d/([\w.]+)", text)) == set(loaded)


def test_nats_alone_works_as_it_is_deployed_with_the_keys_that_nats_setup_makes(tmp_path: Path, key: Path) -> None:
    config = (DEPLOY / "nats" / "one.conf").read_text()
    client, monitor = free_ports(2)
    for old, new in (
        ("store_dir: /data", f"store_dir: {tmp_path}"),
        ("port: 4222", f"listen: 127.0.0.1:{client}"),
        ("127.0.0.1:8222", f"127.0.0.1:{monitor}"),
    ):
        assert old in config
        config = config.replace(old, new)
    write_files(tmp_path / "keys", make_files("a2c", NODES))
    (tmp_path / "one.conf").write_text(config)
    keys = [("--nats-creds", "server.creds"), ("--cluster-key-file", "cluster.key")]
    options = [word for option, name in keys for word in (option, str(tmp_path / "keys" / name))]
    with (tmp_path / "log").open("wb") as output:
        nats = subprocess.Popen([nats_binary(), "-c", str(tmp_path / "one.conf")], stdout=output, stderr=output)
    try:
        # The line "ready" comes when the server has its lease, so NATS has let it in.
        server = Process("--nats", f"nats://127.0.0.1:{client}", *options)
        assert server.stop()[0] == 0
    finally:
        nats.kill()
        nats.wait()


def test_the_unit_of_the_computer_names_options_that_there_are() -> None:
    _, *words = shlex.split(unit("a2c-computer.service")["ExecStart"])
    clean = {key: value for key, value in os.environ.items() if not key.startswith("A2C_")}
    said = shared().run_text(*words, "--help", env=clean)
    assert said.returncode == 0, said.stderr
    nonsense = shared().run_text(*words, "--nonsense", "--help", env=clean)
    assert nonsense.returncode != 0


def test_the_container_is_built_from_what_there_is() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    lines = re.findall(r"^COPY (?!--from)(.*)$", text, re.MULTILINE)
    copied = {source for line in lines for source in line.split()[:-1]}
    assert {source for source in copied if not (ROOT / source).exists()} == set()
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert set(settings["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]) <= copied
    (extras,) = re.findall(r"'\.\[([\w,]+)\]'", text)
    assert set(extras.split(",")) <= set(settings["project"]["optional-dependencies"])

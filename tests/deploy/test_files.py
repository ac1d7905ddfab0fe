"""The files of `deploy/` that cannot be run whole here: their commands are, and what they name must be there."""

import configparser
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.nats_server import nats_binary
from tests.server.test_cli import A2C, Process

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


@pytest.fixture(scope="module")
def compose() -> Any:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def unit(name: str) -> configparser.SectionProxy:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(DEPLOY / "systemd" / name)
    return parser["Service"]


def started(words: list[str]) -> Process:
    """A server by its options, but for its port."""
    at = words.index("--port")
    return Process(*words[:at], *words[at + 2 :], A2C_API_KEY="key")


@pytest.mark.parametrize("name", ["server-1", "server-2"])
def test_the_servers_of_the_compose_file_start_and_pass_their_health_check(compose: Any, name: str) -> None:
    service = compose["services"][name]
    command, *words = service["command"]
    assert command == "server"
    assert set(service["environment"]) == {"A2C_API_KEY", "A2C_NATS"}
    process = started(words)
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
            if source.startswith("./") and source != "./certificates":
                assert (DEPLOY / source).is_file(), source
    assert set(re.findall(r"nats://([\w-]+):4222", services["server-1"]["environment"]["A2C_NATS"])) <= set(services)
    replaced = re.findall(r"s/([\d.:]+)/([\w-]+):\d+/", " ".join(services["nginx"]["command"]))
    config = (DEPLOY / "nginx" / "cluster.conf").read_text()
    assert len(replaced) == config.count("max_fails=1")
    for address, name in replaced:
        assert f"server {address} " in config
        assert name in services


def test_nats_accepts_its_configuration(tmp_path: Path) -> None:
    config = (DEPLOY / "nats" / "nats.conf").read_text()
    assert "store_dir: /data" in config
    (tmp_path / "nats.conf").write_text(config.replace("/data", str(tmp_path)))
    command = [nats_binary(), "-t", "-c", str(tmp_path / "nats.conf"), "--name", "nats-1"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, said.stderr


def test_the_unit_of_the_server_starts_one() -> None:
    program, command, *words = shlex.split(unit("a2c-server@.service")["ExecStart"])
    assert (Path(program).name, command) == ("a2c", "server")
    process = started(words)
    assert process.stop()[0] == 0


def test_the_unit_of_the_computer_names_options_that_there_are() -> None:
    _, *words = shlex.split(unit("a2c-computer.service")["ExecStart"])
    clean = {key: value for key, value in os.environ.items() if not key.startswith("A2C_")}
    said = subprocess.run([A2C, *words, "--help"], capture_output=True, text=True, timeout=60, env=clean)
    assert said.returncode == 0, said.stderr
    nonsense = subprocess.run([A2C, *words, "--nonsense", "--help"], capture_output=True, timeout=60, env=clean)
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

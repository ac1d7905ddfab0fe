"""`a2c doctor`: a finding a line, what to do about each, and the exit status."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from a2c_smcp.computer.cli import doctor
from a2c_smcp.server import APIKeyAuthentication
from tests.computer.fakes.computers import server
from tests.server.conftest import LIMITS
from tests.server.harness import Running, async_server

A2C = str(Path(sys.executable).with_name("a2c"))


def examine(*arguments: str, **environment: str) -> tuple[int, str]:
    result = subprocess.run(
        [A2C, "doctor", *arguments], capture_output=True, text=True, timeout=60, env={**os.environ, **environment}
    )
    assert result.stderr == ""
    return result.returncode, result.stdout


def write(file: Path, *servers: dict[str, Any], **more: Any) -> str:
    file.write_text(json.dumps({"servers": list(servers), **more}))
    return str(file)


def test_a_machine_that_is_well_ends_with_0(hub: Running, tmp_path: Path) -> None:
    relative = server("relative")
    relative["server_parameters"] = {"command": "./tool", "cwd": str(tmp_path)}
    (tmp_path / "tool").touch(mode=0o755)
    unknown = server("unknown")
    unknown["server_parameters"]["command"] = "${input:command}"
    off = {**server("off"), "disabled": True}
    off["server_parameters"]["command"] = "no-such-command"
    inputs = [{"id": "command", "type": "promptString"}]
    file = write(tmp_path / "config.json", server("a"), relative, unknown, off, inputs=inputs)
    status, said = examine("--config", file, "--url", hub.url)
    assert status == 0, said
    assert "✗" not in said
    for words in ("Python 3", "mcp 2", "server 'a'", "server 'relative'", "depends on inputs", "without a key"):
        assert words in said
    assert "'off'" not in said


def test_what_is_wrong_is_said_with_what_to_do_and_ends_with_1(tmp_path: Path) -> None:
    lost = server("lost")
    lost["server_parameters"]["command"] = "no-such-command"
    nowhere = server("nowhere")
    nowhere["server_parameters"]["cwd"] = str(tmp_path / "nowhere")
    with async_server(APIKeyAuthentication(["right"]), LIMITS) as hub:
        file = write(tmp_path / "config.json", lost, nowhere)
        status, said = examine("--config", file, "--url", hub.url, A2C_API_KEY="hunter2")
        assert status == 1
        assert "'no-such-command' is not found\n    install it" in said
        assert "there is no folder" in said
        assert "refuses the key\n    give the right one with --api-key" in said
        assert "hunter2" not in said
        assert "wants a key" in examine("--url", hub.url)[1]
        assert "accepts the key" in examine("--url", hub.url, "--api-key", "right")[1]
    write(tmp_path / "config.json", {**server("a"), "nonsense": 1})
    status, said = examine("--config", file, "--url", hub.url)
    assert status == 1
    assert "nonsense: unknown key\n    correct it" in said
    assert "does not answer\n    start it with `a2c server`" in said


@pytest.mark.parametrize(
    ("version", "bounds", "well"),
    [
        ("2.3.0", ">=2.3,<3", True),
        ("2.10", ">=2.3,<3", True),
        ("2.2.9", ">=2.3,<3", False),
        ("3.0.0", "<3,>=2.3", False),
        ("3.0.0rc1", "<3,>=2.3", False),
        ("1", "", True),
    ],
)
def test_versions_are_compared_as_numbers(version: str, bounds: str, well: bool) -> None:
    assert doctor._within(version, bounds) is well

"""`a2c computer login` and `logout` on a machine without browser and keyring: the person pastes an address."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.computer.sign_in.protected import DEADLINE, config, protected_server
from tests.oidc.issuer import Issuer, needs_issuer
from tests.oidc.issuer import running_issuer as running_issuer

pytestmark = needs_issuer


@pytest.fixture(scope="module")
def url(running_issuer: Issuer) -> Iterator[str]:
    with protected_server(running_issuer.url) as url:
        yield url


def start(folder: Path, *words: str) -> "subprocess.Popen[str]":
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "XDG_STATE_HOME": str(folder / "state"),
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
    }
    command = [sys.executable, "-m", "a2c_smcp.cli", "computer", *words, "--config", str(folder / "config.json")]
    return subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(folder: Path, *words: str) -> tuple[int, str]:
    process = start(folder, *words)
    said, _ = process.communicate(timeout=DEADLINE)
    return process.returncode, said


def test_a_person_pastes_the_address_and_signs_out_again(url: str, running_issuer: Issuer, tmp_path: Path) -> None:
    servers = [config(url), {"name": "local", "type": "stdio", "server_parameters": {"command": "true"}}]
    (tmp_path / "config.json").write_text(json.dumps({"servers": servers}))
    process = start(tmp_path, "login", "guarded")
    assert process.stdout is not None and process.stdin is not None
    try:
        said = ""
        while "paste the address" not in said:
            line = process.stdout.readline()
            assert line, said
            said += line
        found = re.search(r"^\s+(http\S+)$", said, re.MULTILINE)
        assert found, said
        print("http://127.0.0.1/callback?code=wrong&state=wrong", file=process.stdin, flush=True)
        ended_at = running_issuer.sign_in(found[1])
        rest, _ = process.communicate(ended_at + "\n", timeout=DEADLINE)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, said + rest
    assert "belongs to another sign-in" in rest and "guarded: you are signed in" in rest
    assert rest.count("this system has no keyring") == 1
    assert run(tmp_path, "login", "guarded") == (0, "guarded: you are signed in already\n")
    assert run(tmp_path, "logout", "guarded") == (0, "guarded: you are signed out\n")
    assert run(tmp_path, "logout", "guarded") == (0, "guarded: there was no sign-in\n")
    status, said = run(tmp_path, "login", "guardet")
    assert status == 3 and "did you mean 'guarded'" in said
    status, said = run(tmp_path, "login", "local")
    assert status == 3 and "nothing to sign in to" in said

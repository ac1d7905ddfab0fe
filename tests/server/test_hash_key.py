"""`a2c server hash-key`: what it prints is an entry of a keys file, and the key opens the server."""

import re
import subprocess
from pathlib import Path

import pytest

from a2c_smcp.server.auth import Credentials, SyncAPIKeyAuthentication, load_keys
from tests.forked import A2C


@pytest.mark.parametrize("options", [("--new",), ()])
def test_the_entry_fits_the_key(options: tuple[str, ...], tmp_path: Path) -> None:
    command = [A2C, "server", "hash-key", "--name", 'the "lab"', *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, input="a-key-of-my-own-choice\n")
    assert done.returncode == 0, done.stderr
    made = re.search(r"only now: (\S+)", done.stderr)
    key = made[1] if made else "a-key-of-my-own-choice"
    assert key not in done.stdout
    (tmp_path / "keys.toml").write_text(done.stdout)
    ring = SyncAPIKeyAuthentication(load_keys(tmp_path / "keys.toml"))
    assert ring.authenticate(Credentials({}, key, "")).name == 'the "lab"'


def test_without_a_key_it_is_a_usage_error() -> None:
    done = subprocess.run([A2C, "server", "hash-key"], capture_output=True, text=True, timeout=60, input="\n")
    assert (done.returncode, "--new" in done.stderr) == (2, True)

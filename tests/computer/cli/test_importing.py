"""The configs of hosts on this machine: what is taken over from them, and the entry of an office that they get."""

import json
import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pexpect
import pytest

from a2c_smcp.computer.config.host_entries import HostEntryError, entry_in_json, entry_in_toml
from a2c_smcp.computer.config.jsonc import read_jsonc
from tests.computer.test_foreign_configs import CODEX, GOOSE, ZED

ENTRY = {"command": "/bin/a2c", "args": ["mcp", "--url", "http://h"]}
CLAUDE = """{
  "numStartups": 7,
  "mcpServers": {
    "mail": {"command": "uvx", "args": ["mail", "--key=SECRET", "--token", "SECRET-2"]}
  }
}
"""


def run(home: Path, *words: str, **env: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "a2c_smcp.cli", *words]
    own = {**os.environ, "HOME": str(home), **env}
    return subprocess.run(
        command, env=own, cwd=home, capture_output=True, text=True, timeout=90, check=False, stdin=subprocess.DEVNULL
    )


def value(text: str) -> Any:
    return read_jsonc(text, lambda key, count: None)


def put(home: Path, name: str, text: str) -> Path:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_what_hosts_have_is_shown_and_taken_only_when_told_to(tmp_path: Path) -> None:
    put(tmp_path, ".claude.json", CLAUDE)
    put(tmp_path, ".codex/config.toml", CODEX)
    put(tmp_path, ".config/goose/config.yaml", GOOSE)
    asked = run(tmp_path, "computer", "import")
    assert asked.returncode == 1
    assert "Claude Code" in asked.stdout and "mail: uvx mail" in asked.stdout and "Nothing is written" in asked.stdout
    assert "SECRET" not in asked.stdout
    assert not (tmp_path / "a2c.json").exists()
    done = run(tmp_path, "computer", "import", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    written = tmp_path / "a2c.json"
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    data = json.loads(written.read_text())
    assert set(data["mcpServers"]) == {"mail", "docs", "figma", "fetch", "web"}
    assert data["mcpServers"]["mail"]["args"] == ["mail", "--key=SECRET", "--token", "SECRET-2"]
    assert [each["id"] for each in data["inputs"]] == ["API_KEY"]
    assert run(tmp_path, "computer", "validate", "a2c.json").returncode == 0
    again = run(tmp_path, "computer", "import", "--yes")
    assert (again.returncode, "has them all" in again.stdout) == (0, True)


@pytest.mark.parametrize(("typed", "status"), [("y", 0), ("", 1)])
def test_at_a_terminal_it_asks(tmp_path: Path, typed: str, status: int) -> None:
    put(tmp_path, ".claude.json", CLAUDE)
    words = ["-m", "a2c_smcp.cli", "computer", "import"]
    child = pexpect.spawn(sys.executable, words, env={**os.environ, "HOME": str(tmp_path)}, cwd=tmp_path, timeout=60)
    child.expect_exact("Write 1 of them into a2c.json? [y/N]")
    child.sendline(typed)
    child.expect(pexpect.EOF)
    child.wait()
    assert (child.exitstatus, (tmp_path / "a2c.json").exists()) == (status, status == 0)


def test_what_is_not_taken_over_is_said_before_the_question(tmp_path: Path) -> None:
    put(tmp_path, ".codex/config.toml", '[mcp_servers.docs]\ncommand = "npx"\nenabled_tools = ["read"]\n')
    put(tmp_path, ".claude.json", '{"numStartups": 7, "mcpServers": {"a": {"comand": "x"}, "b": {"command": "y"}}}')
    done = run(tmp_path, "computer", "import")
    assert "  note: server 'docs': enabled_tools: is not taken over: agents may use every tool" in done.stdout
    assert "  not taken: server 'a': comand: unknown key; did you mean 'command'?" in done.stdout
    assert "numStartups" not in done.stdout


def test_an_unknown_host_and_no_host_at_all(tmp_path: Path) -> None:
    assert "did you mean 'cursor'" in run(tmp_path, "computer", "import", "curser").stderr
    assert "No MCP servers of any known host" in run(tmp_path, "computer", "import").stdout


@pytest.mark.parametrize(
    ("host", "file", "before", "key"),
    [
        ("claude-code", ".claude.json", CLAUDE, "mcpServers"),
        ("cursor", ".cursor/mcp.json", None, "mcpServers"),
        ("zed", ".config/zed/settings.json", ZED, "context_servers"),
        ("codex", ".codex/config.toml", CODEX, "mcp_servers"),
    ],
)
def test_a_host_gets_the_entry_and_keeps_everything_else(
    tmp_path: Path, host: str, file: str, before: str | None, key: str
) -> None:
    if before is not None:
        put(tmp_path, file, before)
    words = ("mcp", "--url", "http://127.0.0.1:1", "--office", "my lab", "--install", host)
    done = run(tmp_path, *words, A2C_API_KEY="k-1")
    assert done.returncode == 0, done.stdout + done.stderr
    text = (tmp_path / file).read_text()
    read: Any = tomllib.loads if host == "codex" else value
    entry = read(text)[key]["a2c-my-lab"]
    assert entry["args"] == ["mcp", "--url", "http://127.0.0.1:1", "--office", "my lab"]
    assert (entry["env"], "in clear text" in done.stdout) == ({"A2C_API_KEY": "k-1"}, True)
    if before is None:
        return
    backups = list((tmp_path / file).parent.glob("*.bak"))
    assert [backup.read_text() for backup in backups] == [before]
    assert all(line in text for line in before.splitlines() if line.strip("{}[], \n"))


def test_a_config_that_is_a_link_stays_one(tmp_path: Path) -> None:
    kept = put(tmp_path, "dotfiles/cursor.json", '{"mcpServers": {}}')
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor/mcp.json").symlink_to(kept)
    done = run(tmp_path, "mcp", "--url", "http://h", "--office", "lab", "--install", "cursor")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / ".cursor/mcp.json").is_symlink()
    assert "a2c-lab" in kept.read_text()
    kept.write_bytes(b"\xff\xfe")
    assert "is not UTF-8" in run(tmp_path, "mcp", "--url", "http://h", "--office", "lab", "--install", "cursor").stderr


def test_what_comes_from_the_environment_is_in_the_entry_too(tmp_path: Path) -> None:
    done = run(tmp_path, "mcp", "--install=cursor", A2C_URL="http://127.0.0.1:1", A2C_OFFICE="lab")
    assert done.returncode == 0, done.stdout + done.stderr
    [entry] = json.loads((tmp_path / ".cursor/mcp.json").read_text())["mcpServers"].values()
    assert entry["args"] == ["mcp", "--url", "http://127.0.0.1:1", "--office", "lab"]


def test_yaml_is_not_written_and_the_entry_is_said(tmp_path: Path) -> None:
    done = run(tmp_path, "mcp", "--url", "http://h", "--office", "lab", "--install", "goose")
    assert (done.returncode, "has YAML" in done.stderr, "mcp --url http://h --office lab" in done.stderr) == (
        1,
        True,
        True,
    )


def test_an_entry_of_the_same_name_is_replaced_and_every_other_byte_stays() -> None:
    text = (
        '{\n  // mine\n  "mcpServers": {\n    "x": {"command": "old"}, "y": {"command": "z"},\n  },\n  "theme": 1\n}\n'
    )
    after = entry_in_json(text, "mcpServers", "x", ENTRY)
    assert "// mine" in after and '"y": {"command": "z"},' in after and "old" not in after
    data: Any = value(after)
    assert data["mcpServers"]["x"] == ENTRY
    assert json.loads(entry_in_json("", "servers", "x", ENTRY)) == {"servers": {"x": ENTRY}}


@pytest.mark.parametrize("text", ["[1]", '{"mcpServers": []}', '{"mcpServers": ', '{"a": 1} x'])
def test_json_that_has_no_place_for_it_is_left_alone(text: str) -> None:
    with pytest.raises(HostEntryError):
        entry_in_json(text, "mcpServers", "x", ENTRY)


def test_toml_gets_a_table_at_its_end_and_no_second_one() -> None:
    after = entry_in_toml(CODEX, "mcp_servers", "x y", {**ENTRY, "env": {"A": 'quote " and \\ and 中'}})
    assert after.startswith(CODEX)
    assert tomllib.loads(after)["mcp_servers"]["x y"]["env"] == {"A": 'quote " and \\ and 中'}
    with pytest.raises(HostEntryError, match="already has"):
        entry_in_toml(after, "mcp_servers", "x y", ENTRY)
    with pytest.raises(HostEntryError, match="is not TOML"):
        entry_in_toml("[", "mcp_servers", "x", ENTRY)

"""Which package a command downloads, and what the doctor says of it."""

import os
import stat
import sys
from pathlib import Path

import pytest

from a2c_smcp.computer.cli.checks import examine_config
from a2c_smcp.computer.cli.package_checks import downloaded_package
from a2c_smcp.computer.config.files import read_snippet


@pytest.mark.parametrize(
    ("line", "package"),
    [
        ("npx -y @scope/server --port 1", ("npm", "@scope/server")),
        ("npx server@1.2", ("npm", "server@1.2")),
        ("npx -p server tool", ("npm", "server")),
        ("npx --package=server tool", ("npm", "server")),
        ("uvx --python 3.12 mcp-server-git", ("PyPI", "mcp-server-git")),
        ("uvx --from mcp-server-git git-tool", ("PyPI", "mcp-server-git")),
        ("pipx run mcp-server-git", ("PyPI", "mcp-server-git")),
        ("npx.cmd x", ("npm", "x")),
        ("npx -y", None),
        ("npx ./local", None),
        ("npx github:me/it", None),
        ("npx -y me/it", None),
        ("uvx --from git+https://a.example/x tool", None),
        ("pipx install x", None),
        ("python -m x", None),
    ],
)
def test_the_package_of_a_command_line(line: str, package: tuple[str, str] | None) -> None:
    command, *args = line.split()
    found = downloaded_package(command, args)
    assert (None if found is None else (found.registry, found.name)) == package


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An `npm` and an `npx` that know the package `there`, and ask nobody."""
    for name in ("npm", "npx"):
        program = tmp_path / name
        program.write_text(f"#!{sys.executable}\nimport sys\nsys.exit(sys.argv[1:] != ['view', 'there', 'name'])\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path) + os.pathsep + os.environ["PATH"])


@pytest.mark.usefixtures("npm")
def test_a_registry_is_asked_only_if_told() -> None:
    servers = {name: {"command": "npx", "args": ["-y", name]} for name in ("there", "gone")}
    config = read_snippet({"mcpServers": servers})
    said = [finding for finding in examine_config(config) if "server '" in finding.what]
    assert all(finding.what.endswith("(--ask-registries does)") and not finding.advice for finding in said)
    there, gone = [each for each in examine_config(config, ask_registries=True) if "server '" in each.what]
    assert (there.what.endswith("npm has there"), there.advice) == (True, "")
    assert gone.what.endswith("npm has no gone") and gone.advice

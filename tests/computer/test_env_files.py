"""The `envFile` of a VS Code server."""

import json
from pathlib import Path
from typing import Any

import pytest

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.config.env_files import find_env_file, parse_env_file
from a2c_smcp.computer.config.files import read_config_files


def test_variables_comments_and_quotes() -> None:
    text = """
# a comment
PLAIN=value
export EXPORTED = spaced out   # and a comment
EMPTY=
URL=http://h/#anchor?a=b
SINGLE='as it is \\n # too'
DOUBLE="two\\nlines \\"quoted\\" # kept"
no variable at all
PLAIN=last
"""
    assert parse_env_file(text) == {
        "PLAIN": "last",
        "EXPORTED": "spaced out",
        "EMPTY": "",
        "URL": "http://h/#anchor?a=b",
        "SINGLE": "as it is \\n # too",
        "DOUBLE": 'two\nlines "quoted" # kept',
    }


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("${workspaceFolder}/.env", "/project/.env"),
        (".env", "/project/.env"),
        ("/etc/env", "/etc/env"),
        ("${env:PLACE}/env", "/place/env"),
        ("${userHome}/env", str(Path.home() / "env")),
        ("~/env", str(Path.home() / "env")),
    ],
)
def test_the_workspace_is_the_folder_around_dot_vscode(name: str, found: str) -> None:
    assert find_env_file(name, "/project/.vscode/mcp.json", {"PLACE": "/place"}) == Path(found)


def test_elsewhere_it_is_the_folder_of_the_file() -> None:
    assert find_env_file("${workspaceFolder}/.env", "/project/mcp.json", {}) == Path("/project/.env")


def test_without_a_file_it_is_the_working_directory() -> None:
    assert find_env_file(".env", "", {}) == Path.cwd() / ".env"


@pytest.mark.parametrize("name", ["${input:x}/.env", "${env:NOT_SET}", "${config:x}"])
def test_a_variable_that_is_not_known_is_said(name: str) -> None:
    with pytest.raises(ValueError, match="no value"):
        find_env_file(name, "/project/mcp.json", {})


def test_a_home_that_is_not_known_is_said() -> None:
    with pytest.raises(ValueError, match="home folder is unknown"):
        find_env_file("~nosuchuser/.env", "/project/mcp.json", {})


def test_without_a_home_only_what_needs_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nobody)
    assert find_env_file(".env", "/project/mcp.json", {}) == Path("/project/.env")
    with pytest.raises(ValueError, match="no value"):
        find_env_file("${userHome}/.env", "/project/mcp.json", {})


def written(folder: Path, env: dict[str, Any], variables: str | None) -> Path:
    (folder / ".vscode").mkdir()
    if variables is not None:
        (folder / ".env").write_text(variables)
    file = folder / ".vscode" / "mcp.json"
    file.write_text(json.dumps({"servers": {"fs": {"type": "stdio", "command": "x", **env}}}))
    return file


def test_a_servers_own_env_wins_over_its_file(tmp_path: Path) -> None:
    own = {"envFile": "${workspaceFolder}/.env", "env": {"A": "own"}}
    files = read_config_files(written(tmp_path, own, "A=file\nB=hunter2hunter2"))
    assert (files.problems, files.warnings) == ((), ())
    assert files.servers[0]["server_parameters"] == {"command": "x", "env": {"A": "own", "B": "hunter2hunter2"}}
    assert "hunter2" not in str(Computer("pc", mcp_servers=files.servers).get_config())


def test_a_file_that_is_not_there_is_a_warning(tmp_path: Path) -> None:
    files = read_config_files(written(tmp_path, {"envFile": "missing"}, None))
    assert files.problems == ()
    assert [(warning.field, "cannot be read" in warning.message) for warning in files.warnings] == [("envFile", True)]


@pytest.mark.parametrize(
    ("name", "said"),
    [(5, "must be a text"), ("${input:x}", "no value"), ("~nosuchuser/x", "home"), ("bytes", "not UTF-8")],
)
def test_what_is_no_file_of_variables_is_a_problem(tmp_path: Path, name: Any, said: str) -> None:
    (tmp_path / "bytes").write_bytes(b"A=\xff")
    [problem] = read_config_files(written(tmp_path, {"envFile": name}, None)).problems
    assert problem.field == "envFile"
    assert said in problem.message


def test_a_server_without_a_process_has_no_use_for_one(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"web": {"url": "http://h/mcp", "envFile": ".env"}}}))
    assert [warning.field for warning in read_config_files(file).warnings] == ["envFile"]

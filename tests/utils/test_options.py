"""Keys on the command line, in a file and in the environment: the same for every command."""

from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from a2c_smcp.cli import app as a2c
from a2c_smcp.terminal.options import ApiKeyFileOption, ApiKeyOption, secret_option

app = typer.Typer()


@app.command()
def show(
    api_key: ApiKeyOption = None,
    api_key_file: ApiKeyFileOption = None,
    token: Annotated[str | None, typer.Option(envvar="THE_TOKEN", callback=secret_option)] = None,
) -> None:
    print(f"key={api_key} token={token}")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    made = tmp_path / "key"
    made.write_text("from-file\n")
    made.chmod(0o600)
    return made


def run(*arguments: str, **environment: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, arguments, env={"A2C_API_KEY": None, **environment})
    return result.exit_code, result.stdout, result.stderr


def test_a_key_on_the_command_line_works_and_is_commented_on() -> None:
    code, out, err = run("--api-key", "hunter2")
    assert (code, out) == (0, "key=hunter2 token=None\n")
    assert "list of processes" in err and "--api-key-file FILE" in err and "A2C_API_KEY" in err and "hunter2" not in err


def test_a_key_in_the_environment_is_nobodys_business() -> None:
    assert run(A2C_API_KEY="hunter2") == (0, "key=hunter2 token=None\n", "")
    assert run() == (0, "key=None token=None\n", "")


def test_a_key_in_a_file_is_taken_without_a_word_and_before_that_of_the_environment(file: Path) -> None:
    assert run("--api-key-file", str(file)) == (0, "key=from-file token=None\n", "")
    assert run("--api-key-file", str(file), A2C_API_KEY="other") == (0, "key=from-file token=None\n", "")


def test_a_key_in_a_file_that_others_may_read_is_warned_of(file: Path) -> None:
    file.chmod(0o644)
    code, out, err = run("--api-key-file", str(file))
    assert (code, out) == (0, "key=from-file token=None\n")
    assert f"chmod 600 {file}" in err and "from-file" not in err


def test_two_keys_and_a_file_that_is_not_there_are_bad_usage(file: Path) -> None:
    code, _, err = run("--api-key-file", str(file), "--api-key", "hunter2")
    assert code == 2 and "not both" in err and "hunter2" not in err
    code, _, err = run("--api-key-file", str(file.parent / "none"))
    assert code == 2 and "--api-key-file" in err


def test_another_secret_on_the_command_line_is_commented_on_by_its_own_name() -> None:
    code, out, err = run("--token", "t")
    assert (code, out) == (0, "key=None token=t\n")
    assert err.startswith("hint: --token shows") and "THE_TOKEN does not" in err and "file" not in err


@pytest.mark.parametrize(
    "command",
    ["server", "mcp", "doctor", "computer run"]
    + [f"agent {name}" for name in ("room", "tools", "call", "desktop", "finder", "read", "watch", "config")],
)
def test_every_command_with_a_key_takes_it_from_a_file(command: str) -> None:
    result = CliRunner().invoke(a2c, [*command.split(), "--help"], env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"})
    assert ("--api-key " in result.stdout) == ("--api-key-file" in result.stdout) is True, result.output

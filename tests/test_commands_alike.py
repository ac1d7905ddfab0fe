"""What all commands have in common: help, completion, exit status, and what NO_COLOR means."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest
import typer
from typer.testing import CliRunner

from a2c_smcp.cli import app
from a2c_smcp.computer.cli.main import app as computer_app
from a2c_smcp.utils import exits
from a2c_smcp.utils.suggestions import did_you_mean

ROOT = Path(__file__).parent.parent
A2C = str(Path(sys.executable).with_name("a2c"))


def _commands(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield words
    for name, command in getattr(group, "commands", {}).items():
        yield from _commands(command, (*words, name))


def test_h_is_help_everywhere() -> None:
    for each in (app, computer_app):
        for words in _commands(typer.main.get_command(each)):
            result = CliRunner().invoke(each, [*words, "-h"])
            assert (result.exit_code, "Usage" in result.output) == (0, True), words


def test_bad_usage_is_2_everywhere() -> None:
    for words in _commands(typer.main.get_command(app)):
        assert CliRunner().invoke(app, [*words, "--no-such-option"]).exit_code == 2, words


def test_the_page_says_what_each_status_means() -> None:
    table = (ROOT / "docs" / "cli.md").read_text("utf-8").split("| status | meaning |", 1)[1].split("\n\n", 1)[0]
    said = [int(number) for number in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)]
    assert said == [0, exits.FAILED, 2, exits.REFUSED, exits.INTERRUPTED]


def test_a_shell_learns_to_complete(tmp_path: Path) -> None:
    env = {**os.environ, "HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    installed = subprocess.run(
        [A2C, "--install-completion", "bash"], capture_output=True, text=True, timeout=60, check=False, env=env
    )
    assert installed.returncode == 0, installed.stderr
    assert "a2c" in (tmp_path / ".bashrc").read_text()
    asked = {"_A2C_COMPLETE": "complete_bash", "COMP_WORDS": "a2c agent re", "COMP_CWORD": "2"}
    done = subprocess.run([A2C], capture_output=True, text=True, timeout=60, check=False, env={**env, **asked})
    assert done.stdout.split() == ["read"]


@pytest.mark.parametrize("words", [["agent", "-h"], ["agent", "--no-such-option"]])
def test_no_color_is_no_bold_either(words: list[str]) -> None:
    assert "\x1b[1" in _on_a_terminal(words)
    assert "\x1b" not in _on_a_terminal(words, NO_COLOR="1")


def test_no_color_is_no_bold_in_a_table_either() -> None:
    draw = "from a2c_smcp.agent.printing import Printer; Printer(False).table(['name'], [['a']], None)"
    shown = [_child([sys.executable, "-c", draw], env) for env in ({}, {"NO_COLOR": "1"})]
    assert ["\x1b[1m" in text for text in shown] == [True, False]
    assert "\x1b" not in shown[1] and "name" in shown[1]


def _on_a_terminal(words: list[str], **env: str) -> str:
    return _child([A2C, *words], env)


def _child(command: list[str], env: dict[str, str]) -> str:
    clean = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    whole = {**clean, "TERM": "xterm-256color", **env}
    child = pexpect.spawn(command[0], command[1:], env=whole, timeout=60, encoding="utf-8", dimensions=(40, 120))
    try:
        child.expect(pexpect.EOF)
    finally:
        child.close(force=True)
    return child.before or ""


def test_the_nearest_name_is_suggested_and_none_that_is_far() -> None:
    assert did_you_mean("Gret", ["write_note", "greet"]) == "; did you mean 'greet'?"
    assert did_you_mean("x", ["write_note", "greet"]) == did_you_mean("x", []) == ""

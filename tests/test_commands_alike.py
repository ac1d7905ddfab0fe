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
from a2c_smcp.terminal import exits
from a2c_smcp.terminal.suggestions import did_you_mean

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
            assert (result.exit_code, "Usage" in result.output, "bool" in result.output) == (0, True, False), words


def test_the_help_begins_with_what_people_meet_first() -> None:
    listed = re.findall(r"^│ ([\w-]+) ", CliRunner().invoke(app, ["-h"]).output.split("Commands", 1)[1], re.MULTILINE)
    assert (listed[0], set(listed)) == ("demo", set(typer.main.get_command(app).commands))  # type: ignore[attr-defined]


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
    assert done.stdout.split() == ["read", "resources"]


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


# --- what pages tell people to type

#: A command of ours in a line of its own, after another one, or in a sentence.
_TYPED = re.compile(r"(?:^(?:\$ )?|`|&& )((?:a2c|a2c-computer|smcp-computer) [^`\n&]+)", re.MULTILINE)
_PAGES = [ROOT / "README.md", ROOT / "README.zh-CN.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_command_on_a_page_exists_with_its_options(page: Path) -> None:
    typed = _TYPED.findall(page.read_text("utf-8"))
    assert [line for line in typed if _unknown(line.split())] == []


def _unknown(words: list[str]) -> str | None:
    """The first word that is neither a command nor an option of the command that it stands behind."""
    command: Any = typer.main.get_command(app if words[0] == "a2c" else computer_app)
    for word in words[1:]:
        name = word.lstrip("[").partition("=")[0].rstrip("].,:;)")
        commands = getattr(command, "commands", {})
        if name in commands:
            command = commands[name]
        elif name.startswith("--"):
            options = {spelling for option in command.params for spelling in (*option.opts, *option.secondary_opts)}
            if name not in options | {"--help"}:
                return name
        elif commands and not command.invoke_without_command and re.fullmatch("[a-z-]+", name):
            return name
    return None


def test_the_look_for_commands_finds_one_that_is_not_there() -> None:
    for line in ("a2c sever", "a2c agent rooms", "a2c computer run --confg x", "smcp-computer run --headles"):
        assert _unknown(line.split()), line
    for line in ("a2c computer run --config FILE", "a2c agent call laptop greet text=1", "smcp-computer run [--yes]"):
        assert _unknown(line.split()) is None, line

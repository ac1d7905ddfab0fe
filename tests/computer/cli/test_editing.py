"""Lines that are kept between runs, and those that are not."""

from pathlib import Path
from typing import Any

import pytest

from a2c_smcp.computer.cli.editing import command_history
from a2c_smcp.computer.cli.input_commands import secret_start
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.mcp_clients.model import parse_input

INPUTS = [
    parse_input({"id": "key", "type": "promptString", "password": True}),
    parse_input({"id": "name", "type": "promptString"}),
]


def test_only_lines_that_may_be_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    history = command_history(lambda line: "secret" not in line)
    for line in ("status", "a secret", "help"):
        history.append_string(line)
    assert history.get_strings() == ["status", "help"]
    assert list(command_history(lambda _: True).load_history_strings()) == ["help", "status"]


def test_without_a_place_for_it_the_history_is_of_this_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    history = command_history(lambda _: True)
    history.append_string("status")
    assert history.get_strings() == ["status"]
    assert list(command_history(lambda _: True).load_history_strings()) == []


@pytest.mark.parametrize("loaded", [True, False])
def test_a_history_file_that_does_not_work_is_said_once_and_costs_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, loaded: bool
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "a2c-smcp" / "history").mkdir(parents=True)
    history = command_history(lambda _: True)
    if loaded:
        assert list(history.load_history_strings()) == []
    history.append_string("status")
    history.append_string("help")
    assert history.get_strings() == ["status", "help"]
    assert ["the history of commands is no longer kept" in record.message for record in caplog.records] == [True]


def test_without_a_home_the_history_is_of_this_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "~nosuchuser/state")
    history = command_history(lambda _: True)
    history.append_string("status")
    assert history.get_strings() == ["status"]
    assert ["the history of commands is not kept" in record.message for record in caplog.records] == [True]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("inputs value set key hunter2", "inputs value set key "),
        ("  inputs  value set 'key'  hunter2 and", "  inputs  value set 'key'  "),
        ("inputs value set key @file", "inputs value set key @file"),
        ("inputs value set name hunter2", "inputs value set name hunter2"),
        ("inputs value set nothing x", "inputs value set nothing x"),
        ("inputs value set key", "inputs value set key"),
        ("status", "status"),
    ],
)
def test_the_value_of_a_password_is_what_is_hidden_of_a_line(line: str, shown: str) -> None:
    session: Any = type("Session", (), {"computer": Computer("pc", inputs=INPUTS)})
    assert line[: secret_start(session, line)] == shown

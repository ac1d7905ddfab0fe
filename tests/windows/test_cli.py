"""`a2c windows` as a person types it: what it refuses, the config that it prints, and what is left after it."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.forked import A2C


def run(*words: str, folder: Path, **env: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [A2C, "windows", *words],
        cwd=folder,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def config(*words: str, folder: Path, **env: str) -> Any:
    result = run(*words, "--print-config", folder=folder, **env)
    assert result.returncode == 0, result.stderr
    [server] = json.loads(result.stdout)["servers"]
    return server


def test_a_config_holds_anywhere_and_has_no_secret(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    server = config(
        *("--terminals", "--in", "work", "--follow", "app.log", "--every", "20", "--token", "tell-nobody"),
        folder=tmp_path,
        A2C_WINDOWS_TOKEN="nobody-either",
    )
    assert server["server_parameters"]["args"] == [
        *("windows", "--in", str(tmp_path / "work")),
        *("--terminals", "--follow", str(tmp_path / "app.log"), "--every", "20.0"),
    ]
    assert server["tool_meta"] == {"terminal_wait": {"auto_apply": True}, "terminal_read": {"auto_apply": True}}
    browser = config("--browser", "--browser-arg", "--no-sandbox", folder=tmp_path)
    assert browser["server_parameters"]["args"][-2:] == ["--browser-arg", "--no-sandbox"]
    assert set(browser["tool_meta"]) == {"browser_screenshot", "browser_read"}


def test_the_help_names_an_option_that_takes_the_config(tmp_path: Path) -> None:
    [option] = re.findall(r"`a2c computer run (-+\w+) FILE`", " ".join(run("--help", folder=tmp_path).stdout.split()))
    taken = subprocess.run([A2C, "computer", "run", "--help"], capture_output=True, text=True, timeout=60, check=True)
    assert re.search(rf"\W{option}\W", taken.stdout)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--print-config"], "nothing to show"),
        (["--terminals", "--http", "0", "--token", "t", "--print-config"], "leave --http out"),
        ([], "nothing to show"),
        (["--command", "true", "--mask", "("], "no regular expression"),
        (["--terminals", "--http", "0"], "needs a token"),
        (["--browser", "--http", "0"], "needs a token"),
        (["--tmux-type", "--http", "0"], "needs a token"),
    ],
)
def test_what_cannot_work_or_is_not_safe_is_refused_in_one_line(words: list[str], problem: str, tmp_path: Path) -> None:
    result = run(*words, folder=tmp_path, A2C_WINDOWS_TOKEN="")
    assert result.returncode == 1 and problem in result.stderr and result.stderr.count("\n") == 1


def test_a_sandbox_without_bubblewrap_is_refused(tmp_path: Path) -> None:
    result = run("--terminals", "--sandbox", folder=tmp_path, PATH=str(tmp_path))
    assert result.returncode == 1 and "needs bubblewrap" in result.stderr

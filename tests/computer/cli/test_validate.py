"""`a2c computer validate`, as people run it."""

import json
import os
import subprocess
from pathlib import Path

from tests.forked import shared

CANARY = "canary-2be9"


def validate(*files: Path | str) -> subprocess.CompletedProcess[str]:
    return shared().run_text("computer", "validate", *map(str, files), env={**os.environ, "A2C_INPUT_KEY": CANARY})


def test_prefix_tools_says_what_the_tools_will_be_called(tmp_path: Path) -> None:
    servers = {"one": {"command": "x"}, "two": {"command": "y", "tool_prefix": "2-"}}
    result = validate("--prefix-tools", write(tmp_path / "mcp.json", {"mcpServers": servers}))
    assert result.stdout.splitlines() == [
        "server 'one': the names of its tools begin with one_",
        "server 'two': the names of its tools begin with 2-",
        "valid: 2 servers, 0 inputs",
    ]


def write(file: Path, content: object) -> Path:
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def test_a_good_file_is_valid_and_nothing_is_started_or_resolved(tmp_path: Path) -> None:
    started = tmp_path / "started"
    touch = {"command": "touch", "args": [str(started), "${input:key}", "${input:cmd}"]}
    inputs = [
        {"id": "key", "type": "promptString", "password": True},
        {"id": "cmd", "type": "command", "command": f"touch {started}"},
    ]
    result = validate(write(tmp_path / "mcp.json", {"mcpServers": {"t": touch}, "inputs": inputs}))
    assert (result.returncode, result.stdout, result.stderr) == (0, "valid: 1 server, 2 inputs\n", "")
    assert not started.exists()


def test_warnings_do_not_make_a_file_invalid(tmp_path: Path) -> None:
    file = write(tmp_path / "mcp.json", {"mcpServers": {"t": {"command": "run", "colour": 1}}})
    result = validate(file)
    assert result.returncode == 0
    assert result.stdout.splitlines() == [
        f"warning: {file}: server 't': colour: unknown key, ignored",
        "valid: 1 server, 0 inputs",
    ]


def test_everything_that_is_wrong_is_said_and_the_status_is_1(tmp_path: Path) -> None:
    broken = write(tmp_path / "broken.json", '{"servers": [\n}')
    wrong = write(
        tmp_path / "wrong.json",
        [{"name": "a", "type": "stdio", "colour": CANARY, "server_parameters": {"command": "${input:nope}"}}],
    )
    result = validate(broken, wrong, tmp_path / "missing.json")
    assert result.returncode == 1
    assert result.stdout.splitlines() == [
        f"error: {broken}: invalid JSON at line 2, column 1: expected a value",
        f"error: {wrong}: server 'a': colour: unknown key",
        f"error: {tmp_path}/missing.json: cannot be read: No such file or directory",
        f"error: {wrong}: server 'a': server_parameters.command: there is no input 'nope'",
        "4 errors, 0 warnings",
    ]
    assert CANARY not in result.stdout + result.stderr


def test_a_vrl_program_that_does_not_compile_is_an_error_also_of_a_disabled_server(tmp_path: Path) -> None:
    run = {"type": "stdio", "server_parameters": {"command": "run"}}
    programs = {"good": ".a = 1", "later": "${input:program}", "bad": ".a = ", "off": "no_such_function()"}
    servers = [{**run, "name": name, "vrl": vrl, "disabled": name == "off"} for name, vrl in programs.items()]
    inputs = [{"id": "program", "type": "promptString"}]
    file = write(tmp_path / "vrl.json", {"servers": servers, "inputs": inputs})
    result = validate(file)
    assert result.returncode == 1
    assert f"error: {file}: server 'bad': vrl: VRL syntax error: error[E204]" in result.stdout
    assert f"error: {file}: server 'off': vrl: VRL syntax error: error[E105]" in result.stdout
    drawn = result.stdout.splitlines()
    assert any(line.startswith("    1 │ ") for line in drawn), "the compiler's drawing has its own lines"
    assert any("^" in line for line in drawn)
    assert result.stdout.endswith("2 errors, 0 warnings\n")


def test_without_a_file_it_explains_itself() -> None:
    result = validate()
    assert result.returncode == 2
    assert "FILE" in result.stderr


def test_what_a_file_holds_forges_no_line_and_ends_nothing(tmp_path: Path) -> None:
    servers = {'a\n@a2c {"type":"status"}': {"command": "x"}, "b": {"command": "x", "c\nerror: x": 1, "\ud800": 1}}
    result = validate(write(tmp_path / "mcp.json", {"mcpServers": servers}))
    assert result.returncode == 1
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["error:", "warning:", "warning:", "1"]
    assert "name: must not have control characters or surrounding blanks" in lines[0]

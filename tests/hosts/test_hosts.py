"""Real hosts use an office through `a2c mcp`: they list, call, get an image and an error, and take a call back."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.conftest import DEADLINE, ROOT, Lab, python_of, run

_PEERS = Path(__file__).parent / "peers"
_INSPECTOR = ROOT / ".node-inspector" / "node_modules" / "@modelcontextprotocol" / "inspector-cli" / "build"


@pytest.mark.parametrize(
    ("host", "environment"),
    [("langchain_host", ".venv-mcp1"), ("openai_host", ".venv-hosts"), ("pydantic_host", ".venv-hosts")],
)
def test_a_host_lists_calls_gets_an_image_and_an_error_and_takes_a_call_back(
    lab: Lab, host: str, environment: str, tmp_path: Path
) -> None:
    before = lab.noted("waiting")
    with (
        (tmp_path / "stderr").open("w+") as stderr,
        subprocess.Popen(
            [python_of(environment), str(_PEERS / f"{host}.py")],
            env=lab.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process,
    ):
        assert process.stdin is not None and process.stdout is not None
        try:
            said = process.stdout.readline()
            assert said == "waiting\n", (tmp_path / "stderr").read_text()
            lab.wait_until_noted("waiting", before + 1)
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == "cancelled\n", (tmp_path / "stderr").read_text()
            lab.wait_until_noted("cancelled", before + 1)
            assert process.communicate("\n", timeout=DEADLINE)[0] == "done\n", (tmp_path / "stderr").read_text()
        finally:
            process.kill()
    assert process.returncode == 0, (tmp_path / "stderr").read_text()


def inspect(lab: Lab, *arguments: str) -> Any:
    # From that directory: the inspector looks for its own version beside it.
    done = run(["node", "index.js", "a2c", "mcp", *arguments], lab, cwd=_INSPECTOR)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


needs_node = pytest.mark.skipif(shutil.which("npm") is None, reason="MCP's inspector needs Node.js with npm")


@needs_node
def test_the_inspector_on_its_command_line_lists_and_calls(lab: Lab) -> None:
    listed: set[str] = set()
    while "pc__echo" not in listed:  # the first list waits five seconds for the office, and no longer
        listed = {tool["name"] for tool in inspect(lab, "--method", "tools/list")["tools"]}
    assert "list_computers" in listed
    echo = inspect(lab, "--method", "tools/call", "--tool-name", "pc__echo", "--tool-arg", "text=hi")
    assert (echo["content"], echo.get("isError", False)) == ([{"type": "text", "text": "hi"}], False)
    picture = inspect(lab, "--method", "tools/call", "--tool-name", "pc__picture")
    assert picture["content"] == [{"type": "image", "data": "cGljdHVyZQ==", "mimeType": "image/png"}]
    failed = inspect(lab, "--method", "tools/call", "--tool-name", "pc__fail")
    assert failed["isError"] and failed["content"][0]["text"] == "it went wrong"


@needs_node
def test_a_call_of_an_inspector_that_is_interrupted_ends_at_the_computer(lab: Lab) -> None:
    before = lab.noted("waiting")
    command = ["node", "index.js", "a2c", "mcp", "--method", "tools/call", "--tool-name", "pc__wait"]
    with subprocess.Popen(
        command, cwd=_INSPECTOR, env=lab.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            lab.wait_until_noted("waiting", before + 1)
        finally:
            os.kill(process.pid, signal.SIGINT)
    lab.wait_until_noted("cancelled", before + 1)

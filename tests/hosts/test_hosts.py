"""Real hosts use an office through `a2c mcp`: they list, call, get an image and an error, and take a call back.

Beside the honest computer is a hostile one, with forty tools whose schemas some host cannot read.
"""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.conftest import DEADLINE, NODE_HOSTS, ROOT, Lab, python_of, run
from tests.hosts.fake_model import FakeModel, serving

_PEERS = Path(__file__).parent / "peers"
_INSPECTOR = ROOT / ".node-inspector" / "node_modules" / "@modelcontextprotocol" / "inspector-cli" / "build"

needs_node = pytest.mark.skipif(shutil.which("npm") is None, reason="these hosts need Node.js with npm")


@pytest.mark.parametrize(
    ("host", "environment"),
    [
        ("langchain_host.py", ".venv-mcp1"),
        ("openai_host.py", ".venv-hosts"),
        ("pydantic_host.py", ".venv-hosts"),
        ("fastmcp_host.py", ".venv-hosts"),
        pytest.param("typescript_host.mjs", "node", marks=needs_node),
    ],
)
def test_a_host_lists_calls_gets_an_image_and_an_error_and_takes_a_call_back(
    poisoned_lab: Lab, host: str, environment: str, tmp_path: Path
) -> None:
    lab, program = poisoned_lab, "node" if environment == "node" else python_of(environment)
    before = lab.noted("waiting")
    with (
        (tmp_path / "stderr").open("w+") as stderr,
        subprocess.Popen(
            [program, str(_PEERS / host)],
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


def is_whole(names: Iterable[str]) -> bool:
    """Whether a list has the tools of both computers. They may come one after the other."""
    seen = list(names)
    return any(name.endswith("pc__echo") for name in seen) and sum("evil__" in name for name in seen) == 40


def inspect(lab: Lab, *arguments: str) -> Any:
    # From that directory: the inspector looks for its own version beside it.
    done = run(["node", "index.js", "a2c", "mcp", "--search", "never", *arguments], lab, cwd=_INSPECTOR)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_node
def test_the_inspector_on_its_command_line_lists_and_calls(poisoned_lab: Lab) -> None:
    lab = poisoned_lab
    listed: set[str] = set()
    deadline = time.monotonic() + DEADLINE
    while not is_whole(listed):  # a list waits three seconds for the office, and no longer
        assert time.monotonic() < deadline, sorted(listed)
        listed = {tool["name"] for tool in inspect(lab, "--method", "tools/list")["tools"]}
    assert "list_computers" in listed
    echo = inspect(lab, "--method", "tools/call", "--tool-name", "pc__echo", "--tool-arg", "text=hi")
    assert (echo["content"], echo.get("isError", False)) == ([{"type": "text", "text": "hi"}], False)
    picture = inspect(lab, "--method", "tools/call", "--tool-name", "pc__picture")
    assert picture["content"] == [{"type": "image", "data": "cGljdHVyZQ==", "mimeType": "image/png"}]
    failed = inspect(lab, "--method", "tools/call", "--tool-name", "pc__fail")
    assert failed["isError"] and failed["content"][0]["text"] == "it went wrong"


@needs_node
def test_a_call_of_an_inspector_that_is_interrupted_ends_at_the_computer(poisoned_lab: Lab) -> None:
    lab = poisoned_lab
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


@needs_node
def test_gemini_cli_declares_all_tools_to_its_model_and_calls_one(poisoned_lab: Lab, tmp_path: Path) -> None:
    server = {"command": "a2c", "args": ["mcp", "--search", "never"], "env": _passed(poisoned_lab), "trust": True}
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "telemetry": {"enabled": False},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
        "mcpServers": {"office": server},
    }
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini" / "settings.json").write_text(json.dumps(settings))
    program = NODE_HOSTS / "node_modules" / "@google" / "gemini-cli" / "bundle" / "gemini.js"
    command = ["node", str(program), "--model", "gemini-2.5-flash", "--approval-mode", "yolo", "--prompt", "echo"]
    with serving(FakeModel("pc__echo", {"text": "hi there"})) as model:
        keys = {"HOME": str(tmp_path), "GEMINI_CLI_HOME": str(tmp_path), "GEMINI_API_KEY": "made up"}
        here = Lab({**poisoned_lab.env, **keys, "GOOGLE_GEMINI_BASE_URL": model.url}, poisoned_lab.log)
        deadline = time.monotonic() + DEADLINE
        while not is_whole(model.declared):
            assert time.monotonic() < deadline, sorted(model.declared)
            done = run(command, here, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "hi there" in done.stdout
    # Gemini's API refuses 24 keywords of JSON Schema in `parameters`, and none in this field.
    assert all("parametersJsonSchema" in each for name, each in model.declared.items() if "__" in name)


def _passed(lab: Lab) -> dict[str, str]:
    names = ("PATH", "A2C_URL", "A2C_OFFICE", "A2C_API_KEY", "XDG_RUNTIME_DIR", "XDG_STATE_HOME")
    return {name: lab.env[name] for name in names}

"""docs/agents.md: from nothing to an agent that uses two computers. Every step of the page runs."""

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from a2c_smcp.agent.llm import office_context, office_tools, run_tool_calls
from a2c_smcp.testing import office
from tests.agent.llm import agents
from tests.models import transcript
from tests.models.rules import broken_rules
from tests.models.service import ModelService, Turn, serving
from tests.nats_server import free_ports

PAGE = transcript.PAGE
_ALL = re.MULTILINE | re.DOTALL


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with transcript.two_computers(tmp_path_factory.mktemp("agents"), *free_ports(1)) as env:
        yield env


def test_the_program_runs_and_prints_what_the_page_says(env: dict[str, str], tmp_path: Path) -> None:
    [(code, printed)] = re.findall(
        r"^<!-- agent.py -->\n```python\n(.*?)^```$\n\n```text\n(.*?)^```$", PAGE.read_text("utf-8"), _ALL
    )
    (tmp_path / "agent.py").write_text(code.replace("http://127.0.0.1:7000", env["A2C_URL"]))
    turns = [
        Turn(calls=(("see_desktop", {"computer": "laptop"}),)),
        Turn("It says: Buy milk.", (("desk__write_note", {"text": "Buy milk"}),)),
        Turn("The desk's board says now: Buy milk"),
    ]
    with serving(ModelService(turns)) as service:
        keys = {"OPENAI_BASE_URL": f"{service.url}/v1", "OPENAI_API_KEY": "made up"}
        command = [sys.executable, "-W", "error", "agent.py"]
        result = subprocess.run(
            command, cwd=tmp_path, env={**env, **keys}, capture_output=True, text=True, timeout=90, check=False
        )
    assert result.returncode == 0, result.stderr
    assert result.stdout == printed
    assert service.broken == []
    assert "Buy milk" in str(service.requests[1].body["messages"][-1])
    assert "- desk: 4 tools" in service.requests[0].body["messages"][0]["content"]


def test_the_transcript_is_what_a_person_sees(env: dict[str, str]) -> None:
    def shown(text: str) -> list[str]:
        # Calls that run at the same time end in any order.
        return sorted(re.sub(r"\d+\.\d s", "… s", text).splitlines())

    assert shown(transcript.transcript(env)) == shown(transcript.on_the_page())


async def test_the_smaller_pieces_run() -> None:
    def greet(text: str) -> str:
        """Greets."""
        return f"Hello, {text}!"

    calls = [
        {"type": "tool_use", "id": "c1", "name": "pc__greet", "input": {"text": "Ada"}},
        {"type": "tool_use", "id": "c2", "name": "add_to_cart", "input": {"item": "milk"}},
    ]
    _, *pieces = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), _ALL)
    assert len(pieces) == 2
    async with office(mcp_servers=[greet]) as lab:
        names: dict[str, Any] = {
            "agent": lab.agent,
            "reply": {"role": "assistant", "content": calls},
            "add_to_cart": lambda item: f"{item} is in the cart",
            "question": "Who is there?",
            "messages": [],
            "context": await office_context(lab.agent),
            "office_context": office_context,
            "office_tools": office_tools,
            "run_tool_calls": run_tool_calls,
        }
        for piece in pieces:
            code = compile(piece, "docs/agents.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            await eval(code, names)
    _, answers = names["more"]
    assert [block["content"][0]["text"] for block in answers["content"]] == ["Hello, Ada!", "milk is in the cart"]
    assert broken_rules("openai", {"messages": [], "tools": names["tools"]}) == []
    assert names["messages"] == [{"role": "user", "content": "Who is there?"}]


@pytest.mark.parametrize("style", ["openai", "responses", "anthropic", "gemini"])
def test_the_table_of_requests_has_the_lines_that_are_tested(style: str) -> None:
    """`tests/agent/llm/agents.py` has one agent for each SDK, and the table names its request."""
    source = inspect.getsource(getattr(agents, f"{style}_with"))
    [row] = [line for line in PAGE.read_text("utf-8").splitlines() if re.search(_REQUESTS[style], line)]
    words = re.findall(
        r"office_tools\(agent, \"[a-z-]+\"\)|client\.[a-z_.]+\(|(?:messages|input|contents)=messages", row
    )
    assert len(words) == 3 and all(word in source for word in words)


_REQUESTS = {
    "openai": r"^\| .*client\.chat\.completions\.create",
    "responses": r"^\| .*client\.responses\.create",
    "anthropic": r"^\| .*client\.messages\.create",
    "gemini": r"^\| .*generate_content",
}

"""The READMEs are short, and alike. Their Python, and that of the page on programs, runs and is typed.

A program prints what the comments behind its `print` say, or the text that follows it on the page. It runs as it
stands, but for the port of the server.
"""

import json
import os
import re
import subprocess
import sys
import threading
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from a2c_smcp.agent import SMCPAgentClient

ROOT = Path(__file__).parent.parent
READMES = ("README.md", "README.zh-CN.md")
PROGRAMS = "docs/programs.md"
URL = "http://127.0.0.1:7000"
_ALL = re.MULTILINE | re.DOTALL
_SNIPPET = re.compile(r"^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", _ALL)
_SHELL = re.compile(r"^```sh\n(.*?)^```$", _ALL)
_BLOCK = re.compile(r"^```.*?^```$", _ALL)
_PRINTED = re.compile(r"print\(.*\)  # (.+)$", re.MULTILINE)


class Snippet(NamedTuple):
    code: str
    output: str
    """What follows it on the page; empty where its comments say what it prints."""

    @property
    def printed(self) -> list[str]:
        return self.output.splitlines() or _PRINTED.findall(self.code)


def page(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def snippets(name: str) -> list[Snippet]:
    return [Snippet(*found) for found in _SNIPPET.findall(page(name))]


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What the snippets are told to find: a server, and the computer `laptop` in the office `lab`."""
    config = tmp_path_factory.mktemp("readme") / "mcp.json"
    config.write_text(
        json.dumps(
            {
                "name": "demo",
                "type": "stdio",
                "default_tool_meta": {"auto_apply": True},
                "server_parameters": {"command": sys.executable, "args": ["-m", "a2c_smcp.demo.mcp_server"]},
            }
        )
    )
    env = {key: value for key, value in os.environ.items() if not key.startswith("A2C_")}
    with running(["server", "--port", "0"], r"ready on (\S+)", env) as url:
        place = ["--url", url, "--office", "lab", "--name", "laptop"]
        with running(["computer", "run", "--headless", "--config", str(config), *place], "is in office", env):
            wait_for_everything(url)
            yield url


def wait_for_everything(url: str) -> None:
    """Until the tools, the windows and the documents are there: a busy machine reads them some time after the start."""
    deadline = time.monotonic() + 60
    with SMCPAgentClient(url, name="ada") as agent:
        agent.join_office("lab")
        agent.wait_for_tool("laptop", "greet", 60)
        while not (agent.get_desktop("laptop") and agent.get_finder("laptop")["documents"]):
            assert time.monotonic() < deadline
            time.sleep(0.05)


@contextmanager
def running(args: list[str], ready: str, env: dict[str, str]) -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "a2c_smcp.cli", *args], stderr=subprocess.PIPE, text=True, env=env
    )
    assert process.stderr is not None
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    try:
        found = next(filter(None, (re.search(ready, line) for line in process.stderr)))
        watchdog.cancel()
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield found[found.lastindex or 0]
    finally:
        watchdog.cancel()
        process.terminate()
        process.wait(20)
        process.stderr.close()


@pytest.mark.parametrize(
    "snippet",
    [
        pytest.param(snippet, id=f"{name}-{number}")
        for name in (READMES[0], PROGRAMS)
        for number, snippet in enumerate(snippets(name))
    ],
)
def test_a_snippet_runs_and_prints_what_it_says(snippet: Snippet, office: str) -> None:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", snippet.code.replace(URL, office)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    assert result.returncode == 0, result.stderr
    assert snippet.printed and result.stdout.splitlines() == snippet.printed


@pytest.mark.timeout(300)
def test_the_programs_are_typed_as_in_a_users_project(tmp_path: Path) -> None:
    for number, snippet in enumerate(snippets(READMES[0]) + snippets(PROGRAMS)):
        (tmp_path / f"program_{number}.py").write_text(snippet.code)
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", "--strict", "--cache-dir", str(tmp_path / "cache"), "."],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stdout


def quick_start(name: str) -> list[str]:
    """The commands, one a line; `tests/test_distribution.py` runs them."""
    [lines] = _SHELL.findall(page(name))
    found: list[str] = lines.splitlines()
    return found


@pytest.mark.parametrize("name", [READMES[1], "docs/quickstart.md"])
def test_both_languages_and_the_site_start_alike(name: str) -> None:
    assert quick_start(READMES[0]) == quick_start(name)


# --- a page that can be read


def test_both_languages_show_the_same_code_in_the_same_order_and_lead_to_the_same_pages() -> None:
    english, chinese = map(page, READMES)
    blocks, theirs = _BLOCK.findall(english), _BLOCK.findall(chinese)
    assert blocks[1:] == theirs[1:] and len(blocks) > 5  # the first is the drawing, which has words in it
    for pattern in (r"^#+ ", r"^\| --- ", r"^- \*\*", r"^\|"):
        assert len(re.findall(pattern, english, re.MULTILINE)) == len(re.findall(pattern, chinese, re.MULTILINE))
    assert targets(english) - {READMES[1]} == targets(chinese) - {READMES[0]}


def targets(text: str) -> set[str]:
    """Where links and pictures lead to."""
    return set(re.findall(r"\]\(([^)]+)\)", text)) | set(re.findall(r'(?:src|srcset)="([^"]+)"', text))


@pytest.mark.parametrize("name", READMES)
def test_links_and_pictures_lead_somewhere(name: str) -> None:
    files = {target.partition("#")[0] for target in targets(page(name))}
    assert [file for file in files if not (ROOT / file).is_file()] == []


@pytest.mark.parametrize("name", READMES)
def test_the_first_screen_says_why_shows_a_picture_and_starts(name: str) -> None:
    first = page(name).splitlines()[:60]
    places = [
        next(n for n, line in enumerate(first) if mark in line) for mark in ("<img", "- **", "```sh", "```python")
    ]
    assert places == sorted(places)
    assert len(snippets(name)[1].code.replace("\n\n", "\n").splitlines()) <= 8


@pytest.mark.parametrize("name", READMES)
def test_no_paragraph_is_longer_than_four_lines(name: str) -> None:
    plain = re.sub(r"<picture>.*?</picture>", "", _BLOCK.sub("", page(name)), flags=re.DOTALL)
    paragraphs = [part.splitlines() for part in re.split(r"\n\n+|\n(?=- )", plain) if not part.startswith("|")]
    assert len(paragraphs) > 20
    for lines in paragraphs:
        assert len(lines) <= 4 and max(map(columns, lines), default=0) <= 126, lines


def columns(line: str) -> int:
    """The width of a line without the targets of its links."""
    shown = re.sub(r"\]\([^)]+\)", "]", line)
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in shown)


#: What the Chinese README calls a thing, and what it does not call it. The roles are called as in the specification.
GLOSSARY = {
    "Agent": ["智能体"],
    "Server": ["服务器", "服务端"],
    "Computer": ["计算机", "电脑"],
    "MCP Server": ["MCP server", "MCP 服务"],
    "MCP Host": ["MCP host", "宿主"],
    "办公室": ["房间"],
    "窗口": ["视窗"],
    "配置文件": ["设置文件", "配置档"],
    "密钥": ["秘钥", "口令", "密码"],
    "控制台": ["仪表板", "面板"],
    "确认": ["审批", "批准"],
    "错误码": ["错误代码"],
    "退出码": ["退出状态"],
}


def test_the_chinese_page_has_one_word_for_one_thing() -> None:
    text = _BLOCK.sub("", page(READMES[1]))
    assert [word for word in GLOSSARY if word not in text] == []
    assert [word for others in GLOSSARY.values() for word in others if word in text] == []

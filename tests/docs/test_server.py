"""`a2c docs serve` and `a2c docs check` as people start them, and the whole way from a file to an agent."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pexpect
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import Resource

from a2c_smcp.computer.resources.shown import ResourceTimings
from a2c_smcp.smcp import GET_FINDER_EVENT, READ_RESOURCE_EVENT, UPDATE_FINDER_NOTIFICATION
from a2c_smcp.wire import parse_response
from tests.computer.fakes.offices import watched
from tests.mcp_server.clients import ERAS, connected, data, watching
from tests.mcp_server.clients import eventually as eventually_true
from tests.mcp_server.conftest import hub  # noqa: F401 - a fixture
from tests.server.harness import Running, eventually, heard

HOST = "com.example.garden"
#: How many documents the samples have without the long book.
DOCUMENTS = 12


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-W", "error", "-m", "a2c_smcp.cli", "docs", *map(str, arguments)]


@pytest.fixture
def folder(tmp_path: Path, samples: Path) -> Path:
    """A copy of the samples to write to, without the long book."""
    return Path(shutil.copytree(samples, tmp_path / "garden", ignore=shutil.ignore_patterns("long.pdf")))


async def all_listed(client: Client) -> list[Resource]:
    """Every document of the samples; a busy machine may take longer to read them than the first list waits for it."""
    found: list[Resource] = []

    async def complete() -> bool:
        found[:] = (await client.list_resources()).resources
        return len(found) == DOCUMENTS

    await eventually_true(complete)
    return found


async def test_found_read_searched_and_heard_of_from_a_file_to_an_agent(
    hub: Running,  # noqa: F811
    folder: Path,
    tmp_path: Path,
) -> None:
    program, *arguments = command("serve", folder, "--host", HOST, "--cache", tmp_path / "cache")
    config = {
        "name": "garden",
        "type": "stdio",
        "default_tool_meta": {"auto_apply": True},
        "server_parameters": {"command": program, "args": arguments},
    }
    # What the finder shows is subscribed to, however long that takes: else its change may be heard by nobody.
    patient = ResourceTimings(list=60, subscribe=60, read=60, warm=60)
    async with watched(hub.url, config, resource_timings=patient) as (agent, _):

        async def read(uri: str) -> str:
            answer = parse_response(READ_RESOURCE_EVENT, await agent.ask(READ_RESOURCE_EVENT, uri=uri))
            return str(answer["contents"][0]["text"])

        async def finder(**more: Any) -> list[Any]:
            documents: list[Any] = parse_response(GET_FINDER_EVENT, await agent.ask(GET_FINDER_EVENT, **more))[
                "documents"
            ]
            return documents

        async def listed() -> bool:
            return bool(await finder(keywords=["财务"]))

        await eventually_true(listed)  # a busy machine may take longer to read the folder than the finder waits for it
        [report] = await finder(keywords=["财务"])
        assert (report["title"], report["page_count"], report["file_uri"][-3:]) == ("年度报告", 3, ".md")
        index = json.loads(await read(f"{report['uri']}?depth=pages"))
        assert [page["title"] for page in index["pages"]] == ["年度报告", "季度收入", "风险"]
        page = index["pages"][1]["uri"]
        assert "| 第二季度 | 120 | 82 |" in await read(f"{page}?format=markdown")
        table = json.loads(await read(f"{page}?categories=table"))["elements"][0]
        element = json.loads(await read(f"{report['uri']}/elements/{table['element_id']}"))
        assert element["content"]["headers"] == ["季度", "收入", "成本"]

        async def hits(query: str) -> list[Any]:
            result = await agent.tool("search_documents", query=query)
            found: list[Any] = result["structuredContent"]["hits"]
            return found

        async def indexed() -> bool:
            return bool(await hits("灌溉"))

        await eventually_true(indexed)
        [hit, *_] = await hits("灌溉")
        assert (hit["title"], hit["page_index"]) == ("Water", 1)
        assert "灌溉" in await read(f"{hit['page_uri']}?format=text")
        assert json.loads(await read(hit["element_uri"]))["category"] == "text"

        agent.received.clear()
        (folder / "年度报告.md").write_text("# 新的年度报告\n\n一切都变了。")
        await eventually(lambda: heard(agent, UPDATE_FINDER_NOTIFICATION))

        async def renewed() -> bool:
            return [found["title"] for found in await finder(keywords=["新的年度"])] == ["新的年度报告"]

        await eventually_true(renewed)


@pytest.mark.parametrize("era", ERAS)
async def test_a_saved_file_is_told_to_clients_of_both_eras(era: str, folder: Path, tmp_path: Path) -> None:
    program, *arguments = command("serve", folder, "--host", HOST, "--cache", tmp_path / "cache")
    target = StdioServerParameters(command=program, args=arguments)
    async with connected(target, era) as (client, listening):
        [book] = [each for each in await all_listed(client) if each.name == "The garden handbook"]
        async with watching(client, listening, book.uri):
            (folder / "handbook.md").write_text("# The garden handbook\n\nShorter.")
            await listening.until(lambda: book.uri in listening.heard)
            assert (await data(client, book.uri))["page_count"] == 1
            listening.heard.clear()
            (folder / "new.md").write_text("# New")
            await listening.until(lambda: "resources" in listening.heard)


async def test_it_is_served_over_http_too_and_ends_with_its_signal(folder: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(  # noqa: ASYNC220 - it is only waited for at the end
        command("serve", folder, "--http", "0", "--cache", tmp_path / "cache"), stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        url = next(match[1] for line in process.stderr if (match := re.search(r"ready on (\S+)", line)))
        async with Client(url, cache=None) as client, Client(url, mode="legacy", cache=None) as other:
            assert {each.uri for each in await all_listed(other)} == {each.uri for each in await all_listed(client)}
            assert [tool.name for tool in (await client.list_tools()).tools] == ["search_documents"]
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def test_a_terminal_shows_how_far_the_first_reading_has_come(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"{number}.txt").write_text("words")
    serve = command("serve", tmp_path, "--http", "0", "--cache", tmp_path / ".cache")
    terminal = pexpect.spawn(serve[0], serve[1:], timeout=60, dimensions=(24, 100), env={**os.environ, "TERM": "xterm"})
    try:
        terminal.expect("ready on")
        terminal.expect(r"reading files.*/300")
        terminal.kill(signal.SIGINT)
        terminal.expect(pexpect.EOF)
        terminal.wait()  # its end comes a moment after that of its output
    finally:
        terminal.close(force=True)
    assert terminal.exitstatus == 0


def test_check_lists_what_would_be_served_and_what_cannot_be_read(folder: Path) -> None:
    long = folder / ("a" * 100) / "long.md"
    long.parent.mkdir()
    long.write_text("# A title\n")
    result = subprocess.run(command("check", folder), capture_output=True, text=True, timeout=110, check=False)
    assert result.returncode == 0, result.stderr
    for words in (
        r"handbook\.md +3 +\d+\.\d+ +The garden handbook",
        r"budget\.xlsx +4",
        r"a{100}/long\.md +1 +\d+\.\d+ +A title",  # in a pipe no name is cut
        r"13 documents in .* 0 cannot",
    ):
        assert re.search(words, result.stdout), result.stdout
    for words in (r"build/ +- +- +not served: named by a \.gitignore", r"\.gitignore +- +- +not served: hidden"):
        assert re.search(words, result.stdout), result.stdout
    (folder / "escape\x1b[2J.md").write_text("# A \x1b]0;title\x07 that clears\n")
    (folder / "server.pem").write_text("secret")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    result = subprocess.run(command("check", folder), capture_output=True, text=True, timeout=110, check=False)
    assert result.returncode == 1
    for words in (
        r"broken\.pdf +- +\d+\.\d+ +500 the file is broken",
        r"server\.pem +- +- +not served: may hold a secret",
    ):
        assert re.search(words, result.stdout), result.stdout
    assert "escape" in result.stdout
    assert "\x1b" not in result.stdout
    included = [*command("check", folder), "--include", "*.pem", "--raw"]
    result = subprocess.run(included, capture_output=True, text=True, timeout=110, check=False)
    assert re.search(r"server\.pem +1 ", result.stdout), result.stdout
    assert "\x1b" in result.stdout


@pytest.mark.parametrize("arguments", [["serve", "/nowhere/at/all"], ["check", "/nowhere/at/all"]])
def test_a_folder_that_is_none_is_said_in_a_sentence(arguments: list[str]) -> None:
    result = subprocess.run(command(*arguments), capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stderr) == (1, "a2c docs: /nowhere/at/all is not a folder\n")


@pytest.mark.parametrize(
    "path", ["..%2F..%2Fetc%2Fpasswd", "%2E%2E", "%2Fetc%2Fpasswd", "handbook.md", "garden%2Fhandbook.md", "a%00b"]
)
async def test_a_path_is_no_reference_however_it_is_written(path: str, served: Client) -> None:
    with pytest.raises(Exception, match=r"[Nn]ot found|[Cc]ontrol") as caught:
        await served.read_resource(f"dpe://{HOST}/{path}")
    assert getattr(caught.value, "code", None) or getattr(caught.value, "error", None)


@pytest.fixture(scope="module")
async def served(samples: Path) -> Any:
    from a2c_smcp.docs.library import Library
    from a2c_smcp.docs.server import docs_server

    async with Client(docs_server(Library([samples]), HOST).mcp, cache=None) as client:
        yield client

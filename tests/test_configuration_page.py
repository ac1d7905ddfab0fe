"""docs/configuration.md: every key of the models is there with its default, and every file on the page works."""

import json
import re
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest
from jsonschema import Draft7Validator
from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.config.files import ConfigFiles, load_config_files, read_config_text
from a2c_smcp.computer.config.schema import config_schema
from a2c_smcp.computer.mcp_clients import model
from a2c_smcp.computer.vrl.programs import VRLWorker
from tests.computer.fakes.computers import DEADLINE, call, code, text

PAGE = (Path(__file__).parent.parent / "docs" / "configuration.md").read_text("utf-8")
_MARKED = re.compile(r"^<!-- (\S+) -->\n```json\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILES = dict(_MARKED.findall(PAGE))
#: The heading above the table of each model.
TABLES: dict[str, type[BaseModel]] = {
    "### Every server": model.StdioServerConfig,
    "### `server_parameters` of `stdio`": model.StdioParameters,
    "### `server_parameters` of `streamable`": model.StreamableHttpParameters,
    "### `server_parameters` of `sse`": model.SSEParameters,
    "### `oauth`": model.OAuthParameters,
    "## Tools": model.ToolMeta,
    "### `promptString`": model.PromptStringInput,
    "### `pickString`": model.PickStringInput,
    "### `command`": model.CommandInput,
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the page asks for; and `python` is the one that runs here."""
    bin_folder = str(Path(sys.executable).parent)
    for name, value in {"A2C_INPUT_API_KEY": "k-1234567", "OWNER": "ada", "SEARCH_TOKEN": "t-1234567"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", bin_folder, prepend=":")


def section(heading: str) -> str:
    return PAGE.split(f"\n{heading}\n", 1)[1].split("\n#", 1)[0]


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head."""
    table = section(heading).split("\n| --- ", 1)[1].split("\n\n", 1)[0]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[1:]]


def load(name: str, folder: Path) -> ConfigFiles:
    (folder / name).write_text(FILES[name])
    return load_config_files(folder / name)


@pytest.mark.parametrize("heading", TABLES)
def test_a_table_has_every_key_with_its_default(heading: str) -> None:
    table = {row[0].strip("`"): row[2] for row in rows(heading)}
    properties = TABLES[heading].model_json_schema()["properties"]
    required = TABLES[heading].model_json_schema().get("required", [])
    assert table.keys() == properties.keys()
    for key, said in table.items():
        default = properties[key].get("default")
        meant = "required" if key in required else "none" if default is None else f"`{json.dumps(default)}`"
        assert said == meant, key


@pytest.mark.parametrize("name", FILES)
def test_a_file_on_the_page_is_valid_without_a_warning_and_fits_the_schema(name: str) -> None:
    found = read_config_text(FILES[name])
    assert found.problems == found.warnings == ()
    plain = re.sub(r",(?=\s*[}\]])", "", re.sub(r"^\s*//.*$", "", FILES[name], flags=re.MULTILINE))
    assert [error.message for error in Draft7Validator(config_schema()).iter_errors(json.loads(plain))] == []


def test_every_block_of_json_is_a_file_or_what_a_program_made() -> None:
    blocks = re.findall(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert [block for block in blocks if block not in FILES.values()] == [made for _, made in _scripts()]


@pytest.mark.parametrize("name", ["claude", "vscode"])
def test_a_file_of_another_program_is_what_the_page_says_in_our_own_shape(name: str, tmp_path: Path) -> None:
    theirs, ours = load(f"{name}.json", tmp_path), load(f"{name}-own.json", tmp_path)
    assert theirs.servers == ours.servers != ()
    assert theirs.inputs == ours.inputs


async def test_tools_have_the_names_and_the_meta_that_the_page_says(tmp_path: Path) -> None:
    async with Computer("pc", mcp_servers=load("tools.json", tmp_path).servers) as computer:
        tools = computer.get_available_tools()
        shown = [(tool["name"], json.loads(str((tool["meta"] or {})["a2c_tool_meta"]))) for tool in tools]
        (head, table) = section("## Tools").split("Agents see these tools:")
        assert "forbidden_tools" in head
        said = [[cell.strip("` ") for cell in line.split("|")[1:-1]] for line in re.findall(r"^\| `.*$", table, re.M)]
        assert [(name, meta["auto_apply"], meta["tags"]) for name, meta in shown] == [
            (name, free == "yes", [tags]) for name, _, free, tags in said
        ]
        assert text(await call(computer, "hello", text="world")) == "Hello, world!"
        assert code(await call(computer, "crash")) == 4002


async def test_a_server_gets_the_values_of_its_inputs(tmp_path: Path) -> None:
    files = load("inputs.json", tmp_path)
    async with Computer("pc", mcp_servers=files.servers, inputs=files.inputs) as computer:
        # The name of the module is an input, too: without its value the server would not run.
        assert text(await call(computer, "greet", text="world")) == "Hello, world!"
        shown = computer.get_config()["servers"]["demo"]
        assert "k-1234567" not in json.dumps(shown)


async def test_the_programs_make_of_a_result_what_the_page_says(tmp_path: Path) -> None:
    issue = re.search(r"^`(\{\"title\".*\})`\.$", PAGE, re.MULTILINE)
    assert issue is not None
    calls: list[tuple[str, dict[str, Any], str]] = [
        ("write_note", {"text": "milk"}, "1 notes on the board"),
        ("get_issue", {"number": 7}, issue[1]),
        ("read_log", {"path": "app.log"}, "INFO started\nERROR disk full\nINFO ended"),
    ]
    async with aclosing(VRLWorker(DEADLINE)) as worker:
        for (program, made), (tool, params, answer) in zip(_scripts(), calls, strict=True):
            result = CallToolResult(content=[TextContent(text=answer)])
            after = await worker.transform(program, result, tool, params)
            assert json.loads((after.meta or {})["a2c_vrl_transformed"]) == json.loads(made)
    assert load("vrl.json", tmp_path).servers[0]["vrl"] == _scripts()[0][0].rstrip()


async def test_the_file_with_a_program_runs(tmp_path: Path) -> None:
    async with Computer("pc", mcp_servers=load("vrl.json", tmp_path).servers) as computer:
        meta: dict[str, Any] = {}
        count = 0
        # A busy machine may take longer to start the worker than a program has, and the result stays alone.
        with anyio.fail_after(2 * DEADLINE):
            while "a2c_vrl_transformed" not in meta:
                meta = (await call(computer, "write_note", text="milk")).meta or {}
                count += 1
        assert json.loads(meta["a2c_vrl_transformed"]) == {"notes": count}


def _scripts() -> list[tuple[str, str]]:
    """The VRL programs of the page, each with what it makes."""
    return re.findall(r"^```coffee\n(.*?)^```\n\n```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

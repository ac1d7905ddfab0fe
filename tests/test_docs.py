"""The samples in docs/ run as they stand, and print what the page says."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from a2c_smcp import mcp_server
from a2c_smcp.computer.resources.shown import ResourceTimings
from a2c_smcp.computer.watching.events import DesktopChanged
from a2c_smcp.errors import SMCPError
from tests.computer.fakes.computers import call, running

PAGE = Path(__file__).parent.parent / "docs" / "window-and-document-servers.md"
_SAMPLE = re.compile(r"^<!-- (\S+) -->\n```python\n(.*?)^```$(.*?)(?=^##|^<!--|\Z)", re.MULTILINE | re.DOTALL)
_ALL = re.MULTILINE | re.DOTALL
_PRINTED = re.compile(r"^```text\n(.*?)^```$", _ALL)
#: A busy machine may take longer to list, to subscribe and to read than a request is made to wait.
PATIENT = ResourceTimings(list=60, subscribe=60, read=60, warm=60)
#: Runs a sample as it stands, on a computer that is as patient.
_PATIENTLY = """
import runpy, sys
from a2c_smcp.computer.resources.shown import ResourceTimings
ResourceTimings.__init__.__defaults__ = (60.0,) * 4
runpy.run_path(sys.argv[1], run_name="__main__")
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, list[str]]]:
    """Each sample as a file, and what the page says that it prints."""
    folder = tmp_path_factory.mktemp("docs")
    found = {}
    for name, code, after in _SAMPLE.findall(PAGE.read_text()):
        (folder / name).write_text(code)
        found[name] = folder / name, _PRINTED.findall(after)
    assert set(found) == {"shop.py", "look.py", "library.py", "browse.py"}
    return found


@pytest.mark.parametrize("name", ["look.py", "browse.py"])
def test_a_sample_runs_and_prints_what_the_page_says(name: str, printed: dict[str, tuple[Path, list[str]]]) -> None:
    path, expected = printed[name]
    command = [sys.executable, "-W", "error", "-c", _PATIENTLY, str(path)]
    result = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    assert [result.stdout] == expected


def test_the_page_on_watching_runs_and_prints_what_it_says(tmp_path: Path) -> None:
    ((name, code, after),) = _SAMPLE.findall(PAGE.with_name("watching.md").read_text())
    (tmp_path / name).write_text(code)
    command = [sys.executable, "-W", "error", name]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    assert [result.stdout] == _PRINTED.findall(after)


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_the_window_server_tells_of_its_changes(era: str, printed: dict[str, tuple[Path, list[str]]]) -> None:
    uri = "window://com.example.shop/till"
    async with running(_config(printed["shop.py"][0], era), resource_timings=PATIENT) as (computer, record):
        for text in ("empty", "full"):
            record.events.clear()
            await call(computer, "show", path="till", text=text)
            await record.of(DesktopChanged)
            assert await computer.get_desktop(window=uri) == [f"{uri}\n\n{text}"]


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_the_document_server_says_what_is_wrong(era: str, printed: dict[str, tuple[Path, list[str]]]) -> None:
    library = "dpe://com.example.library"
    async with running(_config(printed["library.py"][0], era), resource_timings=PATIENT) as (computer, _):
        codes = {"/thoreau": 4201, "/walden/pages/2": 4202, "/walden/elements/x": 4203, "/walden/2": 4204}
        for path, code in codes.items():
            with pytest.raises(SMCPError) as caught:
                await computer.read_resource(library + path)
            assert caught.value.code == code
        assert await asyncio.gather(*(computer.read_resource(library + path) for path in ("", "/walden")))


def test_what_is_shown_in_part_is_true() -> None:
    names: dict[str, object] = {name: getattr(mcp_server, name) for name in mcp_server.__all__}
    names |= {"Sequence": Sequence, "waiting": []}
    marked = {code for _, code, _ in _SAMPLE.findall(PAGE.read_text())}
    parts = [code for code in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), _ALL) if code not in marked]
    assert len(parts) == 3
    for part in parts:
        exec(part, names | {"server": mcp_server.ContextServer("part", host="com.example.part")})


def _config(path: Path, era: str) -> dict[str, object]:
    return {
        "name": "sample",
        "type": "stdio",
        "protocol": era,
        "default_tool_meta": {"auto_apply": True},
        "server_parameters": {"command": sys.executable, "args": ["-W", "error", str(path)]},
    }

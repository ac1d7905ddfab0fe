"""The files of the page: complete, in both languages, small, and in the wheel."""

import hashlib
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import get_args

import pytest

from a2c_smcp.computer import console
from a2c_smcp.computer.calls.log import CallOutcome, KeptCalls
from a2c_smcp.computer.console import Advice
from a2c_smcp.computer.console.limits import CONSOLE_LIMITS
from a2c_smcp.computer.decisions.book import MAX_REASON, Outcome
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from tests.computer.console.scene import VIEWS

ROOT = Path(__file__).parents[3]
STATIC = Path(console.__file__).parent / "static"
SCRIPTS = sorted((STATIC / "js").glob("*.js"))


def texts(language: str) -> dict[str, str]:
    source = (STATIC / "js" / f"texts-{language}.js").read_text("utf-8")
    return dict(re.findall(r'^  "([^"]+)": "(.*)",$', source, re.MULTILINE))


def test_both_languages_have_the_same_texts_with_the_same_names_in_them() -> None:
    english, chinese = texts("en"), texts("zh")
    assert list(english) == list(chinese) and len(english) > 100
    for key in english:
        assert set(re.findall(r"\{\w+\}", english[key])) == set(re.findall(r"\{\w+\}", chinese[key])), key


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_name_of_a_button_has_the_words_that_are_seen_on_it(language: str) -> None:
    """Who speaks to the page says what stands on the button."""
    known = texts(language)
    seen = {key: known[key].rstrip("… ") for key in known if f"{key}.name" in known}
    assert len(seen) > 20
    assert [key for key, text in seen.items() if text.lower() not in known[f"{key}.name"].lower()] == []
    keeps = [key for key in known if key.endswith(".keep")]
    assert [key for key in keeps if known["ask.no"] not in known[key]] == []


def test_every_text_that_a_script_names_exists_and_every_text_is_named() -> None:
    source = "\n".join(script.read_text("utf-8") for script in SCRIPTS if not script.name.startswith("texts-"))
    known = texts("en")
    plain = set(re.findall(r'\bt\(\s*"([^"]+)"', source))
    assert plain - set(known) == set()
    quoted = set(re.findall(r'"([a-z]+(?:\.[a-z_]+)+)"', source))
    starts = tuple(re.findall(r"t\(`([a-z.]+\.)\$\{", source))
    base = {key: key.removesuffix(".one") for key in known}
    assert [key for key in known if base[key] not in quoted and not key.startswith(starts)] == []


def test_every_name_that_a_script_imports_is_exported_and_is_used() -> None:
    for script in SCRIPTS:
        source = script.read_text("utf-8")
        for names, module in re.findall(r'^import \{ ([^}]+) \} from "\./([\w-]+\.js)";$', source, re.MULTILINE):
            exported = (STATIC / "js" / module).read_text("utf-8")
            for name in names.split(", "):
                theirs, _, ours = name.partition(" as ")
                pattern = (
                    rf"^export (?:async function|function|class|const|let) {theirs}\b|^export \{{[^}}]*\b{theirs}\b"
                )
                assert re.search(pattern, exported, re.MULTILINE), f"{script.name}: {module} has no {theirs}"
                assert len(re.findall(rf"\b{ours or theirs}\b", source)) > 1, f"{script.name}: {name} is not used"


def test_there_is_a_text_for_all_that_the_computer_may_say() -> None:
    said = {
        *(f"calls.was.{outcome}" for outcome in get_args(CallOutcome)),
        *(f"decisions.was.{outcome}" for outcome in Outcome),
        *(f"banner.advice.{advice}" for advice in Advice),
        *(f"state.{state.value}" for state in ServerState),
    }
    assert said - set(texts("en")) == set()


@pytest.mark.parametrize(
    ("script", "pattern", "value"),
    [
        ("history.js", r"OUTCOMES = \[(.*)\]", ", ".join(f'"{outcome}"' for outcome in get_args(CallOutcome))),
        ("history.js", r'maxlength="(\d+)"', CONSOLE_LIMITS.search_characters),
        ("confirmation.js", r'maxlength="(\d+)"', MAX_REASON),
        ("past.js", r"EARLIER = (\d+)", KeptCalls().shown),
        ("state.js", r"MOST_ENDED = (\d+)", KeptCalls().calls),
    ],
)
def test_a_limit_of_the_computer_is_the_same_in_the_page(script: str, pattern: str, value: object) -> None:
    assert re.findall(pattern, (STATIC / "js" / script).read_text("utf-8")) == [str(value)]


def test_a_script_can_be_held_in_the_head() -> None:
    lengths = {script.name: len(script.read_text("utf-8").splitlines()) for script in SCRIPTS}
    assert {name for name, length in lengths.items() if length > 300 and not name.startswith("texts-")} == set()


def test_nothing_comes_from_elsewhere() -> None:
    for file in STATIC.rglob("*"):
        if file.suffix in {".js", ".mjs", ".css", ".html"}:
            found = re.findall(r"(?:src|href|import|from|url)\W{1,3}https?://", file.read_text("utf-8"))
            assert found == [], file


def test_the_files_of_others_are_the_ones_whose_version_is_written_down() -> None:
    page = (STATIC / "vendor" / "README.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| (\S+\.mjs) \|.*\| ([0-9a-f]{64}) \|$", page, re.MULTILINE))
    assert set(rows) == {file.name for file in (STATIC / "vendor").glob("*.mjs")}
    for name, digest in rows.items():
        assert hashlib.sha256((STATIC / "vendor" / name).read_bytes()).hexdigest() == digest
    assert sum(file.stat().st_size for file in (STATIC / "vendor").glob("*.mjs")) < 20_000


def test_the_wheel_has_the_page(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    [wheel] = tmp_path.glob("*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    wanted = {str(file.relative_to(ROOT)) for file in STATIC.rglob("*") if file.is_file()}
    assert len(wanted) > 30 and wanted <= inside


@pytest.mark.parametrize("name", ["preact-LICENSE.txt", "htm-LICENSE.txt"])
def test_the_licences_of_others_are_beside_their_files(name: str) -> None:
    assert "icense" in (STATIC / "vendor" / name).read_text("utf-8")


def test_the_documentation_shows_every_picture_that_is_made() -> None:
    page = (ROOT / "docs" / "console.md").read_text("utf-8")
    pictures = {f"console/{file.name}" for file in (ROOT / "docs" / "console").iterdir()}
    wanted = {f"console/{n}-{s}-{c}.webp" for n in VIEWS for s in ("wide", "narrow") for c in ("light", "dark")}
    assert set(re.findall(r"\((console/[^)]+)\)", page)) == pictures == wanted

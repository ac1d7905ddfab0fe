"""The file with the last list of an office's tools: what is kept, how much of it, and who may read it."""

import os
from pathlib import Path
from typing import Any, cast

import pytest

from a2c_smcp.agent.for_models.remembered_office import RememberedOffice, remembered_office
from tests.agent.harness import a_tool

TOOLS = {"laptop": [cast("Any", a_tool("echo"))], "书房": [cast("Any", a_tool("看"))]}


def test_what_was_saved_is_there_at_the_next_start_for_its_user_alone(tmp_path: Path) -> None:
    file = tmp_path / "offices" / "lab.json"
    assert RememberedOffice(file).load() == {}
    RememberedOffice(file).save(TOOLS)
    assert RememberedOffice(file).load() == TOOLS
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b'{"pc": 1}', b'{"pc": [{"name": 1}]}', b'{"pc": [' + b"[" * 100_000, b" " * (4 * 2**20 + 1)],
    ids=["nothing", "a list", "a number", "no tool", "too deep", "too large"],
)
def test_a_file_that_is_no_list_of_tools_is_as_no_file(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "lab.json"
    file.write_bytes(content)
    assert RememberedOffice(file).load() == {}


def test_a_computer_with_too_many_tools_takes_no_place_of_others(tmp_path: Path) -> None:
    large = a_tool("large") | {"description": "x" * 5 * 2**20}
    memory = RememberedOffice(tmp_path / "lab.json")
    memory.save({"evil": [cast("Any", large)], **TOOLS})
    assert memory.load() == TOOLS


def test_the_oldest_offices_are_forgotten(tmp_path: Path) -> None:
    for number in range(70):
        RememberedOffice(tmp_path / f"{number}.json").save({})
        os.utime(tmp_path / f"{number}.json", (number, number))
    RememberedOffice(tmp_path / "new.json").save(TOOLS)
    assert {file.stem for file in tmp_path.iterdir()} == {"new", *map(str, range(7, 70))}


def test_a_folder_that_cannot_be_written_fails_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    RememberedOffice(tmp_path / "file" / "lab.json").save(TOOLS)
    assert "is not kept" in caplog.text


def test_each_server_office_and_computer_has_a_memory_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    same = [
        remembered_office("https://hub.example/", "lab", None),
        remembered_office("https://HUB.example", "lab", None),
    ]
    others = [
        remembered_office("https://other.example", "lab", None),
        remembered_office("https://hub.example", "lab2", None),
        remembered_office("https://hub.example", "lab", "pc"),
    ]
    for number, memory in enumerate([*same, *others]):
        assert memory is not None
        memory.save({f"pc{number}": []})
    assert same[0] is not None and list(same[0].load()) == ["pc1"]
    assert len(list((tmp_path / "a2c-smcp" / "offices").iterdir())) == 4

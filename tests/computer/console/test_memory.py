"""What a console keeps in a file: nobody else reads it, nothing breaks it, and one process at a time has it."""

import base64
import json
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from a2c_smcp.computer.console.devices import Device
from a2c_smcp.computer.console.memory import ConsoleMemory, NoMemoryError, Remembered
from tests.computer.console.keys import DeviceKey

NOW = 1_000_000.0


@contextmanager
def memory(folder: Path, name: str = "pc", now: float = NOW) -> Iterator[ConsoleMemory]:
    found = ConsoleMemory.open(folder, name, now)
    try:
        yield found
    finally:
        found.close()


def _device(**fields: Any) -> Device:
    return replace(Device("0" * 32, "Chrome on Linux", DeviceKey().public, NOW - 5, NOW - 1), **fields)


def test_what_is_kept_is_there_again_and_for_its_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "console"
    with memory(folder) as first:
        what = replace(first.found, host="127.0.0.1", port=7070, devices=(_device(),))
        first.keep(what)
    with memory(folder) as again:
        assert again.found == what
    files = list(folder.iterdir())
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert sorted(file.suffix for file in files) == [".json", ".lock"]


def test_each_computer_has_its_own_and_a_name_is_no_path(tmp_path: Path) -> None:
    ids = set()
    for name in ("pc", "../pc", "x" * 1000, "\ud800"):
        with memory(tmp_path / "console", name) as found:
            ids.add(found.found.computer)
    assert len(ids) == 4 and [each.name for each in tmp_path.iterdir()] == ["console"]


def test_one_process_at_a_time_has_it(tmp_path: Path) -> None:
    with memory(tmp_path), pytest.raises(NoMemoryError, match="another process has the console"):
        ConsoleMemory.open(tmp_path, "pc", NOW)
    with memory(tmp_path):
        pass


_GOOD = {"version": 1, "computer": "0" * 32, "host": "", "port": 0, "devices": []}
_POINT = base64.b64encode(DeviceKey().public).decode()
_DEVICE = {"id": "0" * 32, "name": "x", "public_key": "", "granted": 0, "used": 0}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        b"[" * 100_000,
        b"[]",
        b"{}",
        b" " * 300_000,
        *(
            json.dumps({**_GOOD, **changed}).encode()
            for changed in ({"version": 2}, {"computer": "x"}, {"port": 10**6})
        ),
        json.dumps({**_GOOD, "devices": [_DEVICE]}).encode(),
        json.dumps({**_GOOD, "devices": {}}).encode(),
        json.dumps({**_GOOD, "devices": [{**_DEVICE, "public_key": _POINT, "used": 10**400}]}).encode(),
        json.dumps({**_GOOD, "devices": [{**_DEVICE, "name": "x" * 61}]}).encode(),
        json.dumps({**_GOOD, "devices": [{}] * 33}).encode(),
    ],
)
def test_a_file_that_is_broken_is_put_aside_and_the_start_goes_on(tmp_path: Path, content: bytes) -> None:
    with memory(tmp_path) as found:
        assert found.notice is None
        [file] = tmp_path.glob("*.json")
    file.write_bytes(content)
    with memory(tmp_path) as found:
        assert found.found == Remembered(found.found.computer)
        assert found.notice is not None and "let in again" in found.notice
    assert file.with_suffix(".broken").read_bytes() == content


def test_times_of_a_clock_that_was_wrong_never_make_a_key_that_lasts(tmp_path: Path) -> None:
    with memory(tmp_path) as first:
        first.keep(replace(first.found, devices=(_device(granted=NOW * 9, used=NOW * 9),)))
    with memory(tmp_path) as again:
        [device] = again.found.devices
        assert (device.granted, device.used) == (NOW, NOW)


def test_a_folder_that_cannot_be_used_means_no_memory_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NoMemoryError, match=r"remembers nothing: .*cannot be used"):
        ConsoleMemory.open(tmp_path / "file" / "console", "pc", NOW)


def test_what_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    with memory(tmp_path) as found:
        before = found.found
        [file] = tmp_path.glob("*.json")
        content = file.read_bytes()
        file.unlink()
        file.mkdir()
        with pytest.raises(OSError, match="directory"):
            found.keep(replace(before, port=1))
        assert found.found == before and sorted(tmp_path.iterdir()) == sorted([file, file.with_suffix(".lock")])
        file.rmdir()
        file.write_bytes(content)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
@pytest.mark.parametrize("way", ["written by others", "of another user", "a pipe"])
def test_what_others_may_have_put_there_lets_nobody_in(tmp_path: Path, way: str) -> None:
    folder = tmp_path / "console"
    with memory(folder) as first:
        first.keep(replace(first.found, devices=(_device(),)))
    [file] = folder.glob("*.json")
    if way == "written by others":
        file.chmod(0o666)
    elif way == "a pipe":
        file.unlink()
        os.mkfifo(file, 0o600)
    elif os.geteuid() != 0:
        pytest.skip("only root gives files away")
    else:
        os.chown(file, 65534, 65534)
    with memory(folder) as found:
        assert found.found.devices == () and found.notice is not None

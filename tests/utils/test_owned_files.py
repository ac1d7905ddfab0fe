"""Files that only this user may have written."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from a2c_smcp.utils.owned_files import UnsafeFileError, read_owned
from a2c_smcp.utils.state_folder import make_private_folder

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="who may write a file is not known there")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "folder" / "file"
    made.parent.mkdir(mode=0o755)
    made.write_text("text")
    made.chmod(0o644)
    return made


def test_a_file_of_this_user_is_read_also_through_a_link_and_in_a_folder_like_tmp(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(file)
    file.parent.chmod(0o1777)
    assert read_owned(link, 100) == read_owned(file, 100) == b"text"
    assert read_owned(file, 2) == b"te"
    with pytest.raises(FileNotFoundError):
        read_owned(tmp_path / "none", 1)


def _listen(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.fspath(path))


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero"), _listen])
def test_nothing_else_is_read_and_nobody_waits(file: Path, make: Callable[[Path], object]) -> None:
    file.unlink()
    make(file)
    with pytest.raises(OSError, match=r"is not a regular file|No such device"):
        read_owned(file, 1)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_refused_with_what_to_type(file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(UnsafeFileError, match=f"may be changed by others.*chmod 600 {file}"):
        read_owned(file, 1)


def test_a_folder_of_others_is_refused_also_where_a_link_stands(file: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    (shared / "link").symlink_to(file)
    with pytest.raises(UnsafeFileError, match=f"may be replaced by others.*chmod go-w {shared}"):
        read_owned(shared / "link", 1)
    if os.geteuid() == 0:
        shared.chmod(0o755)
        os.chown(shared, 65534, -1)
        with pytest.raises(UnsafeFileError, match=f"may be replaced by the owner of {shared}"):
            read_owned(shared / "link", 1)


def test_a_link_on_the_way_that_others_may_change_is_refused(file: Path, tmp_path: Path) -> None:
    """The first link and the file are in folders of this user; a link between them is not."""
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "between").symlink_to(Path("..", "folder", "file"))
    (tmp_path / "link").symlink_to(Path("shared", "between"))
    assert read_owned(tmp_path / "link", 100) == b"text"
    shared.chmod(0o777)
    with pytest.raises(UnsafeFileError, match=f"may be replaced by others.*chmod go-w {shared}"):
        read_owned(tmp_path / "link", 1)
    if os.geteuid() == 0:
        shared.chmod(0o1777)  # as /tmp: nobody else replaces the link, but its owner does
        assert read_owned(tmp_path / "link", 100) == b"text"
        os.chown(shared / "between", 65534, -1, follow_symlinks=False)
        with pytest.raises(UnsafeFileError, match="between belongs to another user"):
            read_owned(tmp_path / "link", 1)


def test_folders_of_the_state_are_private_and_others_keep_their_modes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "state" / "a2c-smcp").mkdir(parents=True)
    tmp_path.chmod(0o755)
    for name in ("state", "state/a2c-smcp"):
        (tmp_path / name).chmod(0o755)
    for folder in (tmp_path / "state" / "a2c-smcp" / "rules" / "pc", tmp_path / "of mine" / "rules", tmp_path):
        make_private_folder(folder)
    modes = {str(each.relative_to(tmp_path)): each.stat().st_mode & 0o777 for each in [tmp_path, *tmp_path.rglob("*")]}
    private = {"state/a2c-smcp", "state/a2c-smcp/rules", "state/a2c-smcp/rules/pc", "of mine", "of mine/rules"}
    assert modes == {".": 0o755, "state": 0o755} | dict.fromkeys(private, 0o700)

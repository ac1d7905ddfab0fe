"""Nothing outside the folder is ever opened, however it is asked for."""

import os
from pathlib import Path

import pytest

from a2c_smcp.docs.paths import OutsideError, open_folder, open_inside


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret.txt").write_text("secret")
    root = tmp_path / "root"
    (root / "inner").mkdir(parents=True)
    (root / "inner" / "file.txt").write_text("inside")
    return root


def read(root: Path, path: str) -> bytes:
    with os.fdopen(open_inside(str(root), path), "rb") as file:
        return file.read()


def test_a_file_inside_is_opened(root: Path) -> None:
    assert read(root, "inner/file.txt") == b"inside"


@pytest.mark.parametrize(
    "path",
    [
        *("../secret.txt", "inner/../../secret.txt", "inner/../inner/file.txt", "./inner/file.txt", "inner//file.txt"),
        *("", "/", ".", "..", "/etc/passwd", "inner/", "inner/file.txt\0", "inner", "inner/file.txt/x"),
        *("..%2Fsecret.txt", "inner%2Ffile.txt", "inner\\file.txt"),
    ],
)
def test_what_is_no_path_of_a_file_inside_is_refused(root: Path, path: str) -> None:
    with pytest.raises(OSError):
        open_inside(str(root), path)


def test_links_are_not_followed_whether_they_are_files_or_folders_on_the_way(root: Path) -> None:
    (root / "link.txt").symlink_to("../secret.txt")
    (root / "up").symlink_to("..")
    (root / "same").symlink_to("inner")
    for path in ("link.txt", "up/secret.txt", "same/file.txt"):
        with pytest.raises(OSError):
            open_inside(str(root), path)


def test_a_root_that_became_a_link_is_not_followed(root: Path) -> None:
    root.rename(root.with_name("old"))
    root.symlink_to(root.parent)
    with pytest.raises(OSError):
        open_inside(str(root), "secret.txt")


def test_a_folder_that_is_swapped_for_a_link_meanwhile_leads_nowhere_else(root: Path) -> None:
    with open_folder(str(root), "inner") as handle:
        (root / "inner").rename(root / "moved")
        (root / "inner").symlink_to("..")
        assert os.listdir(handle) == ["file.txt"]
    with pytest.raises(OSError):
        open_inside(str(root), "inner/secret.txt")


def test_a_named_pipe_is_refused_and_not_waited_for(root: Path) -> None:
    os.mkfifo(root / "pipe.txt")
    with pytest.raises(OutsideError):
        open_inside(str(root), "pipe.txt")

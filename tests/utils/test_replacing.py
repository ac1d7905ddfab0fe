"""A file that is replaced: all of it or nothing, and nothing is left beside it."""

import stat
from pathlib import Path

import pytest

from a2c_smcp.utils.replacing import replace_file


def test_a_file_that_is_new_is_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "file"
    replace_file(file, b"one")
    assert file.read_bytes() == b"one" and stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("error", [OSError("no"), KeyboardInterrupt()])
def test_a_check_that_fails_before_the_rename_leaves_the_old_file_and_no_other(
    tmp_path: Path, error: BaseException
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")

    def refuse(descriptor: int) -> None:
        raise error

    with pytest.raises(type(error)):
        replace_file(file, b"new", refuse)
    assert file.read_bytes() == b"old" and list(tmp_path.iterdir()) == [file]

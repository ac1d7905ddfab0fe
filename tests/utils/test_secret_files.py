import os
import sys
from pathlib import Path

import pytest

from a2c_smcp.errors import BadRequestError
from a2c_smcp.utils.secret_files import exposure, key_in

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="who may read a file is another matter there")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    tmp_path.chmod(0o755)
    made = tmp_path / "the key"
    made.write_text("secret\n")
    made.chmod(0o600)
    return made


def test_a_file_has_one_key_and_the_blanks_around_it_do_not_count(file: Path) -> None:
    assert key_in(file) == "secret"
    file.write_bytes(b"  two words \r\n\n")
    assert key_in(file) == "two words"


@pytest.mark.parametrize("content", [b"", b" \n", b"hunter2\nhunter3\n", b"\xff\xfe", b"x\n" * 100_000])
def test_a_file_without_one_key_is_refused_with_its_name_and_without_its_content(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(BadRequestError, match="the key: ") as caught:
        key_in(file)
    assert "hunter" not in caught.value.message


def test_a_file_that_is_not_there_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(BadRequestError, match="none: No such file"):
        key_in(tmp_path / "none")
    assert exposure(tmp_path / "none") is None


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
def test_a_file_of_its_user_alone_is_in_order(file: Path, mode: int) -> None:
    file.chmod(mode)
    assert exposure(file) is None


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_change_is_told_with_what_to_type(file: Path, mode: int) -> None:
    file.chmod(mode)
    for secret in (True, False):
        said = exposure(file, secret=secret)
        assert said is not None and "may be changed by others" in said
        assert said.endswith(f"type: chmod 600 '{file}'")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o444])
def test_a_file_that_others_may_read_is_told_if_it_has_keys(file: Path, mode: int) -> None:
    file.chmod(mode)
    said = exposure(file)
    assert said is not None and "may be read by others" in said and said.endswith(f"chmod 600 '{file}'")
    assert exposure(file, secret=False) is None  # hashes only


def test_a_folder_in_which_others_may_replace_the_file_is_told(file: Path) -> None:
    file.parent.chmod(0o777)
    said = exposure(file)
    assert said is not None and "may be replaced by others" in said and f"chmod go-w {file.parent}" in said
    file.parent.chmod(0o1777)  # as /tmp is: others may not
    assert exposure(file) is None


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="needs root")
def test_a_file_of_another_user_is_told(file: Path) -> None:
    os.chown(file, 12345, -1)
    said = exposure(file)
    assert said is not None and "belongs to another user" in said

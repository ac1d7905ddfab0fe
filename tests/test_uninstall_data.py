"""`a2c uninstall-data`: what is kept is shown, and removed after a yes, and nothing else is touched."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

from a2c_smcp.uninstall_data import _PARTS
from a2c_smcp.utils import run_folder

ROOT = Path(__file__).parent.parent
A2C = str(Path(sys.executable).with_name("a2c"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A user who has used the package, and has other files, with links to them in our folders."""
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("years of work")
    state, cache = tmp_path / "state" / "a2c-smcp", tmp_path / "cache" / "a2c-smcp" / "docs"
    for folder in (state / "record", state / "sign-in", cache):
        folder.mkdir(parents=True)
    (state / "record" / "laptop.sqlite").write_bytes(b"x" * 2_000_000)
    (state / "sign-in" / "abc.json").touch(0o600)
    (state / "rules").symlink_to(tmp_path / "precious")
    (cache / "thesis.txt").symlink_to(tmp_path / "precious" / "thesis.txt")
    (tmp_path / "state" / "of-another-program").mkdir()
    (tmp_path / "run").mkdir(mode=0o700)
    return tmp_path


def environ(home: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "A2C_"))}
    folders = {f"XDG_{name}_HOME": str(home / name.lower()) for name in ("STATE", "CACHE")}
    # The folder of sockets below /tmp is that of the person who runs the tests: the commands see another one.
    code = "import sys; from pathlib import Path; from a2c_smcp.utils import run_folder as r; "
    code += f"r._TEMPORARY = Path({str(home)!r}); sys.argv[0] = 'a2c'; from a2c_smcp.cli import main; main()"
    return {**kept, **folders, "HOME": str(home), "XDG_RUNTIME_DIR": str(home / "run"), "CODE": code}


def a2c(home: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    env = environ(home)
    command = [sys.executable, "-c", env.pop("CODE"), "uninstall-data", *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)


def test_it_shows_what_is_kept_and_without_a_yes_nothing_goes(home: Path) -> None:
    before = sorted(home.rglob("*"))
    done = a2c(home)
    assert done.returncode == 1 and "--yes removes it" in done.stdout and "Nothing was removed" in done.stdout
    assert re.search(r"record +1 file +2\.0 MB  the record of calls", done.stdout)
    assert str(home / "cache" / "a2c-smcp") in done.stdout
    assert sorted(home.rglob("*")) == before


def test_yes_removes_our_folders_and_what_links_lead_to_stays(home: Path) -> None:
    done = a2c(home, "--yes")
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.endswith("Removed.\n")
    assert os.listdir(home / "state") == ["of-another-program"] and os.listdir(home / "cache") == []
    assert (home / "precious" / "thesis.txt").read_text() == "years of work"
    again = a2c(home, "--yes")
    assert (again.returncode, again.stdout) == (0, "Nothing is kept that could be removed.\n")


@pytest.mark.parametrize(("typed", "stays"), [("n", True), ("y", False)])
def test_at_a_terminal_it_asks(home: Path, typed: str, stays: bool) -> None:
    env = environ(home)
    child = pexpect.spawn(sys.executable, ["-c", env.pop("CODE"), "uninstall-data"], env=env, timeout=60)
    child.expect("Remove all of this")
    child.sendline(typed)
    child.expect(pexpect.EOF)
    child.wait()
    assert (child.exitstatus, (home / "state" / "a2c-smcp").exists()) == ((1, True) if stays else (0, False))


def test_a_folder_that_is_a_link_is_shown_and_stays(home: Path) -> None:
    (home / "state" / "a2c-smcp").rename(home / "moved")
    (home / "state" / "a2c-smcp").symlink_to(home / "moved")
    done = a2c(home, "--yes")
    assert done.returncode == 0 and f"a link to {home / 'moved'}, which is not followed" in done.stdout
    assert (home / "moved" / "record" / "laptop.sqlite").exists() and not (home / "cache" / "a2c-smcp").exists()


def test_while_something_listens_nothing_is_removed(home: Path) -> None:
    folder = home / "run" / "a2c"
    folder.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "s.sock"))
        listening.listen()
        done = a2c(home, "--yes")
    assert done.returncode == 1 and f"stop what still runs first. It listens at {folder}/s.sock" in done.stdout
    assert (home / "state" / "a2c-smcp" / "record").exists()
    assert a2c(home, "--yes").returncode == 0 and not folder.exists()


def test_the_page_names_every_part_and_every_place_of_the_state_folder_is_one() -> None:
    page = (ROOT / "docs" / "leaving.md").read_text("utf-8")
    assert [part for part in _PARTS if f"`{part}`" not in page] == []
    code = "".join(path.read_text("utf-8") for path in (ROOT / "a2c_smcp").rglob("*.py"))
    named = set(re.findall(r'state_folder\(\) / "([\w-]+)"', code)) | {"logins", "docs"}
    assert named == set(_PARTS)
    assert run_folder.run_folders()

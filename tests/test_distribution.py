"""The source archive and the wheel of a release, as `make dist` makes them, installed as the READMEs say.

The environment sees the libraries that are installed for the tests, so that nothing has to be fetched; our own
distribution is not among them. The other project with our import name comes from `.venv-interop`.
"""

import importlib.metadata
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

import a2c_smcp
from a2c_smcp.utils.distribution import DISTRIBUTION, install_command
from tests.test_readme import READMES, quick_start

#: Each may be the first, which builds and installs.
pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parent.parent
COMMANDS = ("a2c", "a2c-computer", "smcp-computer")
BOTH = "pip uninstall a2c-smcp && pip install --force-reinstall ."
#: Stands for the `python3` of a user: the environments that it makes see the libraries.
PYTHON3 = """#!/bin/sh
{python} "$@" || exit
[ "$1 $2" != "-m venv" ] || echo {libraries} > "$3/lib/python{version}/site-packages/libraries.pth"
"""
#: pip finds the release and nothing else.
PIP = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def users(**environment: str) -> dict[str, str]:
    """The environment of a user who has set these variables alone."""
    ours = ("A2C_", "MAKE", "PYTHON", "VIRTUAL_ENV")
    return {key: value for key, value in os.environ.items() if not key.startswith(ours)} | environment


def run(*command: str | Path, cwd: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command, capture_output=True, text=True, timeout=240, check=False, env=users(**environment), cwd=cwd
    )


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a source archive and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    command = ["make", "-o", ".venv/.dev", f"BIN={Path(sys.executable).parent}", f"DIST={folder}", "dist"]
    done = run(*command, cwd=ROOT, **PIP)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is installed here, but for ourselves and for pip."""
    folder = tmp_path_factory.mktemp("libraries")
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "a2c" not in entry.name and not entry.name.startswith("pip"):
            (folder / entry.name).symlink_to(entry)
    return folder


@dataclass(frozen=True)
class Installed:
    """A folder with the environment that the first line of the quick start makes there."""

    folder: Path
    pip: Mapping[str, str]

    @property
    def bin(self) -> Path:
        return self.folder / ".venv" / "bin"

    @property
    def packages(self) -> Path:
        return self.folder / ".venv" / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"

    def run(self, name: str, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        return run(self.bin / name, *words, cwd=self.folder, **environment)

    def run_pip(self, *words: str) -> None:
        done = self.run("pip", *words, **self.pip, PIP_YES="1", PIP_NO_DEPS="1")
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, libraries: Path, dist: Path) -> Installed:
    folder = tmp_path_factory.mktemp("installed")
    python3 = folder / "bin" / "python3"
    python3.parent.mkdir()
    python3.write_text(
        PYTHON3.format(
            python=Path(sys.executable).resolve(), libraries=libraries, version=sysconfig.get_python_version()
        )
    )
    python3.chmod(0o755)
    pip = PIP | {"PIP_FIND_LINKS": str(dist)}
    # A clone is installed as it stands; here it is the release.
    first, count = re.subn(r"pip install \.$", f"pip install {DISTRIBUTION}", quick_start(READMES[0])[0])
    assert count == 1 or first.endswith(f"pip install {DISTRIBUTION}")
    done = run("sh", "-e", "-c", first, cwd=folder, PATH=f"{python3.parent}:{os.environ['PATH']}", **pip)
    assert done.returncode == 0, done.stdout + done.stderr
    return Installed(folder, pip)


# --- what a release holds


def test_the_archive_and_the_wheel_hold_the_package_and_nothing_of_this_machine(dist: Path) -> None:
    [archive], [wheel] = dist.glob("*.tar.gz"), dist.glob("*.whl")
    ours = {str(file.relative_to(ROOT)) for file in _sources(ROOT / "a2c_smcp")} | {"a2c_office.py"}
    assert len(ours) > 300
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    beside = {"LICENSE", "README.md", "README.zh-CN.md", "CHANGELOG.md", "constraints.txt", "pyproject.toml"}
    assert names == ours | beside | {"PKG-INFO", ".gitignore"}
    with zipfile.ZipFile(wheel) as zipped:
        assert {name for name in zipped.namelist() if ".dist-info/" not in name} == ours


def _sources(folder: Path) -> Iterator[Path]:
    return (file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts)


def test_the_wheel_says_what_it_is_and_on_which_pythons_it_is_tested(installed: Installed) -> None:
    [found] = installed.packages.glob("a2c*.dist-info")
    metadata = importlib.metadata.Distribution.at(found).metadata
    assert (metadata["Name"], metadata["Version"]) == ("a2c-office", a2c_smcp.__version__)
    tested = re.search(r"python: \[(.*)\]", (ROOT / ".github/workflows/ci.yml").read_text())
    assert tested is not None
    for version in re.findall(r"[\d.]+", tested[1]):
        assert f"Programming Language :: Python :: {version}" in metadata.get_all("Classifier", [])
    assert metadata.get_all("Project-URL"), "a stranger finds no way from the package to more"


def test_the_changelog_has_the_version_that_would_be_released() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert headings[0] == "Unreleased"
    released = [re.fullmatch(r"(\d+\.\d+\.\d+) — \d{4}-\d\d-\d\d", heading) for heading in headings[1:]]
    assert released and all(released), headings
    assert released[0] is not None and released[0][1] == a2c_smcp.__version__


# --- the wheel at work


def test_the_wheel_alone_says_its_version_and_explains_itself(installed: Installed) -> None:
    assert installed.run("a2c", "--version").stdout == f"a2c-office {a2c_smcp.__version__} (protocol 0.2.0)\n"
    where = installed.run("python", "-c", "import a2c_smcp; print(a2c_smcp.__file__)")
    assert where.stdout.strip() == str(installed.packages / "a2c_smcp" / "__init__.py")
    for command in COMMANDS[1:]:
        assert "Usage" in installed.run(command, "--help").stdout


def test_the_quick_start_goes_from_the_installation_to_the_greeting(installed: Installed, port: int) -> None:
    lines = quick_start(READMES[0])
    assert len(lines) == 6
    with (installed.folder / "stdout").open("w") as out, (installed.folder / "stderr").open("w") as err:
        shell = subprocess.Popen(
            ["sh", "-e", "-c", "\n".join([". .venv/bin/activate", *lines[1:]])],
            stdout=out,
            stderr=err,
            env=users(A2C_PORT=str(port), A2C_URL=f"http://127.0.0.1:{port}"),
            cwd=installed.folder,
            start_new_session=True,
        )
        try:
            status = shell.wait(240)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGTERM)  # the server and the computer are in the shell's group
    said = (installed.folder / "stdout").read_text()
    assert status == 0, said + (installed.folder / "stderr").read_text()
    assert said.splitlines()[-1] == "Hello, world!"


# --- beside the other project


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_finds_both_says_how_to_be_rid_of_one(command: str, installed: Installed) -> None:
    """Ours was installed last, and yet a package of theirs would hide a module of ours."""
    (installed.packages / "a2c_smcp-0.4.2.dist-info").mkdir()
    try:
        done = installed.run(command, "--version")
    finally:
        (installed.packages / "a2c_smcp-0.4.2.dist-info").rmdir()
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"{command}: ") and done.stderr.endswith(f"run: {BOTH}\n")
    assert str(installed.packages) in done.stderr


def test_what_is_said_repairs_an_installation_that_was_overwritten(installed: Installed) -> None:
    _install_the_other(installed)
    overwritten = installed.run("a2c", "--version")
    assert (overwritten.returncode, overwritten.stderr[-len(BOTH) - 1 :]) == (1, f"{BOTH}\n")
    first, second = (step.split()[1:] for step in BOTH.split(" && "))
    installed.run_pip(*first)
    halfway = installed.run("a2c", "--version")
    assert (halfway.returncode, halfway.stdout) == (1, "")
    assert halfway.stderr.endswith(f"run: pip {' '.join(second)}\n")
    # A clone is installed as it stands; here it is the release.
    installed.run_pip(*(DISTRIBUTION if word == "." else word for word in second))
    assert installed.run("a2c", "--version").stdout.startswith("a2c-office ")


def _install_the_other(installed: Installed) -> None:
    """Put every file of the existing implementation where pip would put it, over ours."""
    [info] = (ROOT / ".venv-interop" / "lib").glob("python*/site-packages/a2c_smcp-*.dist-info")
    files = [Path(str(file)) for file in importlib.metadata.Distribution.at(info).files or ()]
    assert sum((installed.packages / file).exists() for file in files) > 30
    for file in files:
        if (info.parent / file).exists():  # all but what was compiled elsewhere
            (installed.packages / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(info.parent / file, installed.packages / file)


def test_the_doctor_says_it_when_a_checkout_was_not_installed_under_its_name(libraries: Path, port: int) -> None:
    code = f"import sys; sys.path += {[str(ROOT), str(libraries)]!r}; from a2c_office import a2c; a2c()"
    words = ("doctor", "--url", f"http://127.0.0.1:{port}")
    done = run(sys.executable, "-I", "-S", "-c", code, *words, cwd=libraries)
    assert (done.returncode, done.stderr) == (1, "")
    assert "a2c-office is not installed" in done.stdout and f"run: {install_command()}" in done.stdout

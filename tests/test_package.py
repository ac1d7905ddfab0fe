"""What someone who installs the package gets."""

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet

import a2c_smcp
from a2c_smcp.utils.distribution import install_command

ROOT = Path(__file__).parent.parent

HEAVY = ("typer", "rich", "prompt_toolkit", "uvicorn", "prometheus_client", "watchfiles", "vrl_python", "nats", "mcp")


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def script(name: str) -> str:
    return str(Path(sys.executable).parent / name)


def test_importing_the_package_imports_neither_the_cli_nor_uvicorn_nor_anything_optional() -> None:
    code = f"import sys, a2c_smcp; print([m for m in {HEAVY!r} if m in sys.modules])"
    assert run(sys.executable, "-c", code).stdout.strip() == "[]"


@pytest.mark.parametrize("room", ["agent", "computer", "computer.utils.window_uri"])
def test_importing_a_room_imports_nothing_heavy_before_a_name_of_it_is_used(room: str) -> None:
    code = f"import sys, a2c_smcp.{room}; print([m for m in {(*HEAVY, 'socketio')!r} if m in sys.modules])"
    assert run(sys.executable, "-c", code).stdout.strip() == "[]"


def test_a_server_that_is_alone_and_has_keys_imports_nothing_of_nats_and_of_tokens() -> None:
    rooms = "a2c_smcp.cli, a2c_smcp.server.app, a2c_smcp.server.cli, a2c_smcp.server.namespace"
    code = f"import sys, {rooms}; print([m for m in ('nats', 'jwt', 'cryptography', 'httpx2') if m in sys.modules])"
    assert run(sys.executable, "-c", code).stdout.strip() == "[]"


def test_the_names_that_a_reader_of_the_specification_imports_are_there_and_each_is_one_thing() -> None:
    from a2c_smcp import SMCPError, SmcpError, errors
    from a2c_smcp.computer import Computer, LinkOptions, SMCPComputerClient, load_config_files
    from a2c_smcp.computer import computer as room
    from a2c_smcp.computer.socketio import SMCPComputerClient as OfficeClient
    from a2c_smcp.computer.utils import dpe_uri, window_uri
    from a2c_smcp.link import interface as link
    from a2c_smcp.utils import dpe_uri as defined_dpe_uri
    from a2c_smcp.utils import window_uri as defined

    assert SmcpError is errors.SmcpError is SMCPError
    assert SmcpError(4201, "No MCP Server found for host: h").payload()["error"]["code"] == 4201
    assert (Computer, SMCPComputerClient, LinkOptions) == (room.Computer, OfficeClient, link.LinkOptions)
    assert callable(load_config_files)
    assert window_uri.WindowURI is defined.WindowURI
    assert all(getattr(dpe_uri, name) is getattr(defined_dpe_uri, name) for name in defined_dpe_uri.__all__)
    assert window_uri.is_window_uri("window://h") and dpe_uri.is_valid_dpe_uri("dpe://h/d")


def test_a_room_says_which_name_it_does_not_have() -> None:
    with pytest.raises(ImportError, match="Komputer"):
        exec("from a2c_smcp.computer import Komputer")


def test_the_package_is_typed() -> None:
    assert (Path(a2c_smcp.__file__).parent / "py.typed").exists()


def test_the_version_is_the_distributions() -> None:
    assert importlib.metadata.version("a2c-office") == a2c_smcp.__version__
    assert run(script("a2c"), "--version").stdout.startswith(f"a2c-office {a2c_smcp.__version__} ")


def test_this_checkout_is_not_installed_under_the_name_of_the_existing_implementation_any_more() -> None:
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version("a2c-smcp")


@pytest.mark.parametrize("command", [["a2c"], ["a2c", "computer"], ["a2c-computer"], ["smcp-computer"]])
def test_the_commands_explain_themselves(command: list[str]) -> None:
    result = run(script(command[0]), *command[1:], "--help")
    assert result.returncode == 0
    assert "Usage" in result.stdout


def test_the_three_names_of_the_computer_command_are_one() -> None:
    texts = {
        re.sub(r"Usage: .*", "", run(script(name), *rest, "--help").stdout)
        for name, *rest in (["a2c", "computer"], ["a2c-computer"], ["smcp-computer"])
    }
    assert len(texts) == 1


@pytest.mark.parametrize(
    "name",
    [
        "constraints.txt",
        "constraints-interop.txt",
        "constraints-interop04.txt",
        "constraints-mcp1.txt",
        "constraints-hosts.txt",
        "constraints-markitdown.txt",
        "constraints-fastmcp.txt",
        "constraints-readers.txt",
    ],
)
def test_constraints_hold_names_and_versions_only(name: str) -> None:
    for line in (ROOT / name).read_text().splitlines():
        assert re.fullmatch(r"#.*|[A-Za-z0-9_.\-]+==[A-Za-z0-9_.+\-]+", line), line


@pytest.mark.parametrize("name", sorted(path.name for path in ROOT.glob("constraints*.txt")))
def test_every_pin_takes_the_oldest_python_that_we_take(name: str) -> None:
    """Debian 12 has Python 3.11.2: a pin that needs 3.11.5 makes `make test` fail there."""
    oldest = f"{project()['requires-python'].removeprefix('>=')}.0"
    environment = name.replace("constraints", ".venv").removesuffix(".txt")
    libraries = [str(path) for path in (ROOT / environment / "lib").glob("python*/site-packages")]
    if name == "constraints.txt":
        libraries = [path for path in sys.path if path.endswith("site-packages")]
    if not libraries:
        pytest.skip(f"{environment} is not set up")
    found = {
        f"{each.metadata['Name']} {each.version}": each.metadata["Requires-Python"]
        for each in importlib.metadata.distributions(path=libraries)
        if "Requires-Python" in each.metadata
    }
    assert len(found) > 10
    assert {pin: bound for pin, bound in found.items() if not SpecifierSet(bound).contains(oldest)} == {}


def test_make_docs_installs_what_the_pages_need_and_not_the_development_tools() -> None:
    wanted = [re.split("[<>=]", line)[0] for line in project()["optional-dependencies"]["documentation"]]
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert re.findall(r"INSTALL\) .venv-docs constraints.txt (.*)", makefile) == [" ".join(wanted)]


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return found


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_what_is_imported_is_declared_with_bounds_and_its_version_is_in_the_constraints() -> None:
    extras = project()["optional-dependencies"]
    declared = {
        _normal(re.split(r"[\[<>=;]", line)[0]): line
        for line in (
            *project()["dependencies"],
            *extras["chat"],
            *extras["cluster"],
            *extras["docs"],
            *extras["keyring"],
            *extras["ocr"],
            *extras["otel"],
            *extras["testing"],
            *extras["vrl"],
            *extras["windows"],
        )
    }
    constrained = {_normal(line.split("==")[0]) for line in (ROOT / "constraints.txt").read_text().splitlines()}
    distributions = importlib.metadata.packages_distributions()
    trees = [ast.parse(file.read_text("utf-8")) for file in (ROOT / "a2c_smcp").rglob("*.py")]
    imported = {name.split(".")[0] for tree in trees for node in ast.walk(tree) for name in _imports(node)}
    foreign = imported - sys.stdlib_module_names - {"a2c_smcp"}
    assert {"mcp", "engineio", "pydantic_core"} <= foreign
    for name in sorted(foreign):
        # The extra `ocr` is not installed for the tests: it is large. Its package is named as its distribution.
        found = {_normal(found) for found in distributions.get(name, [name] if name == "rapidocr" else [])}
        # Several distributions share the package `opentelemetry`: what is imported of it is in two of them.
        wanted = {"opentelemetry-api", "opentelemetry-sdk"} if name == "opentelemetry" else found
        assert wanted <= found
        assert wanted, name
        assert wanted <= declared.keys(), f"{name} is imported, and {wanted} is not in pyproject.toml"
        assert wanted <= constrained, f"{wanted} is not in constraints.txt"
    assert [line for line in declared.values() if ">=" not in line or "<" not in line] == []


def _imports(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []


# --- one name in every command

#: Installs the distribution that is not ours, or asks for its extras.
_OTHERS = re.compile(
    r"\b(?:install|add|uvx|download|--with)\b.*?[\s'\"`]a2c[-_.]smcp(?=[\s'\"`=<>~\[]|$)|\ba2c[-_.]smcp\[[\w,]+\]"
)
_EXTRAS = re.compile(r"(?:\ba2c-office\[|'\.\[|install_command\([\"'])([\w,]+)[\]\"']")
#: Installs by a name that nobody owns before the first release.
_BY_NAME = re.compile(
    r"\b(?:install|add|uvx|download|--with)\b.*?[\s'\"`]a2c-office(?=[\s'\"`=<>~\[]|$)|\ba2c-office\["
)
#: What a release will be, its test, and our own wheel, which names its extras.
_OF_A_RELEASE = ("CONTRIBUTING.md", "tests/test_package.py", "tests/test_distribution.py", "pyproject.toml")
#: Where the other one is meant.
_MEANT = (".venv-interop", "tests/test_package.py")
_READ = {".md", ".py", ".toml", ".txt", ".yml", ".yaml", ".service", ".js", ".html", ".conf", ""}


@pytest.fixture(scope="module")
def lines() -> list[tuple[str, str]]:
    """Every line with either name in a text that people read or run, and where it is."""
    folders = [
        ROOT / name
        for name in ("a2c_smcp", "docs", "deploy", "examples", "tests", "tools", "bench", "hooks", ".github")
    ]
    files = [file for folder in folders for file in folder.rglob("*")]
    files += [file for file in ROOT.iterdir() if file.name != ".git"]
    return [
        (f"{file.relative_to(ROOT)}:{number}", line)
        for file in files
        if file.suffix in _READ and file.is_file() and (text := file.read_text("utf-8", "replace"))
        for number, line in enumerate(text.splitlines(), 1)
        if "smcp" in line or "a2c-office" in line or "install" in line
    ]


def test_no_page_hint_or_script_installs_the_other_project(lines: list[tuple[str, str]]) -> None:
    found = [f"{place} {line.strip()}" for place, line in lines if _OTHERS.search(line)]
    assert [line for line in found if not any(meant in line for meant in _MEANT)] == []
    assert any("INSTALL) .venv-interop" in line for line in found), (
        "the search finds not even the line that makes .venv-interop"
    )


def test_every_extra_that_is_named_is_there(lines: list[tuple[str, str]]) -> None:
    named = {extra for _, line in lines for match in _EXTRAS.findall(line) for extra in match.split(",")}
    assert {"docs", "cluster", "vrl"} <= named <= set(project()["optional-dependencies"])


def test_until_a_release_everything_is_installed_from_the_clone(lines: list[tuple[str, str]]) -> None:
    found = [f"{place} {line.strip()}" for place, line in lines if _BY_NAME.search(line)]
    assert [line for line in found if not line.startswith(_OF_A_RELEASE)] == []
    assert any(line.startswith("CONTRIBUTING.md") for line in found), "the search finds not even the release"
    in_code = {place.split(":")[0] for place, line in lines if place.startswith("a2c") and "pip install" in line}
    assert in_code == {"a2c_office.py", "a2c_smcp/utils/distribution.py", "a2c_smcp/computer/cli/doctor.py"}
    assert install_command("docs").startswith("pip install '.[docs]' ") and install_command().startswith(
        "pip install . "
    )


@pytest.mark.parametrize("line", ["pip install a2c-office", "uvx 'a2c-office[docs]'", "needs a2c-office[ocr]"])
def test_the_search_knows_a_name_that_nobody_owns(line: str) -> None:
    assert _BY_NAME.search(line)
    assert not _BY_NAME.search(line.replace("a2c-office", "."))


@pytest.mark.parametrize(
    "line",
    [
        "pip install a2c-smcp",
        "pip install 'a2c-smcp[docs]'",
        "uvx a2c_smcp server",
        "uv add a2c-smcp>=1",
        "a2c-smcp[vrl]",
    ],
)
def test_the_search_knows_the_other_project(line: str) -> None:
    assert _OTHERS.search(line)
    assert not _OTHERS.search(line.replace("a2c-smcp", "a2c-office").replace("a2c_smcp", "a2c-office"))

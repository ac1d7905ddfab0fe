"""What every test stands on: loopback only, one event loop kind, deterministic Hypothesis."""

import gc
import logging
import os
import random
import signal
import socket
import sys
from collections.abc import Generator, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("house", deadline=None, derandomize=True)
settings.load_profile("house")

_HERE = Path(__file__).parent
#: Files and folders of long tests, the longest files first: no worker is to begin one when the others are at their end.
#: Many of them wait more than they compute, so the earlier they begin, the more is computed beside them.
BEGUN_FIRST = (
    "computer/cli/test_repl.py",
    "attack",
    "test_bench.py",
    "agent/test_cli.py",
    "computer/cli/test_headless.py",
    "computer/test_mcp_connection.py",
    "computer/console",
    "server/cluster",
    "test_distribution.py",
    "test_agents_page.py",
    "demo",
    "hosts",
    "interop",
    "chaos",
    "fuzz",
    "computer/cli",
    "mcp_server",
    "office_mcp",
    "agent/seat",
    "server/test_scenarios.py",
    "server/test_sockets.py",
    "computer",
)

_LOOPBACK = ("127.", "::1", "localhost", "::ffff:127.")


def _loopback_only(event: str, args: tuple[Any, ...]) -> None:
    """No test talks to anything but loopback: a connection elsewhere fails at its source, with the address."""
    if event == "socket.connect" and isinstance(args[1], tuple) and not str(args[1][0]).startswith(_LOOPBACK):
        raise PermissionError(f"a test tried to connect to {args[1]}")


sys.addaudithook(_loopback_only)

# For tests that run pytest on other folders: langsmith's plugin, which LangGraph brings, takes a second to import.
os.environ.setdefault("PYTEST_ADDOPTS", "-p no:langsmith_plugin")

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # A shell starts what runs in its background so. The commands that are tested would inherit it, and ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage while the tests are imported, nor among them later: every worker imports all of them, and
    half of its time went there.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    """A command that runs in the test's own process sends the log to its stderr, and chooses what is logged. The next
    test would find its lines there.
    """
    root, ours = logging.getLogger(), logging.getLogger("a2c_smcp")
    before = list(root.handlers), root.level, ours.level
    yield
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])


@pytest.fixture(scope="module", autouse=True)
def _leaks_are_found_in_their_file() -> Iterator[None]:
    """What a test has left open is told of when it is collected, and fails the test that runs then. That is one of
    the same file.
    """
    yield
    gc.collect()


@pytest.fixture
def port() -> Iterator[int]:
    """Where nobody listens. It stays bound: nobody else gets it meanwhile, and a server can still listen there."""
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--order", type=int, metavar="SEED", help="run files, and the tests of each, in a random order")


def _rank(file: Path) -> int:
    """Which of `BEGUN_FIRST` it is, or is in."""
    places = (number for number, name in enumerate(BEGUN_FIRST) if file.is_relative_to(_HERE / name))
    return next(places, len(BEGUN_FIRST))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test that needs another one before it is found by running them in another order. Files stay together."""
    if (seed := config.getoption("--order")) is None:
        ranks = {file: _rank(file) for file in {item.path for item in items}}
        items.sort(key=lambda item: ranks[item.path])
        return
    order = random.Random(seed)
    files = [list(tests) for _, tests in groupby(items, key=lambda item: item.path)]
    order.shuffle(files)
    for tests in files:
        order.shuffle(tests)
    items[:] = [test for tests in files for test in tests]

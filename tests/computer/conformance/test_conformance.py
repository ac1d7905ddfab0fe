"""The client part of MCP's conformance suite, with a Computer as the client: every scenario of both eras."""

import asyncio
import re
import shutil
import sys
from functools import partial
from pathlib import Path

import pytest
import yaml

from a2c_smcp.computer.sign_in import mcp_flow, server_sign_in
from a2c_smcp.oidc.guarded_requests import GuardedRequests
from tests.computer.conformance.client import ConformanceClient

_HERE = Path(__file__).parent
_SUITES = _HERE.parent.parent.parent / ".node-conformance" / "node_modules"
_DEADLINE = 400.0
#: All scenarios of a suite run at once: 74 clients that sign in. The suite's own 30 s are too few on a busy machine.
_EACH = ("--timeout", "300000")
_ALONE = ("--scenario", "sse-retry")

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.timeout(900),
    pytest.mark.skipif(shutil.which("npm") is None, reason="the conformance suite needs npm"),
]


async def run(package: str, port: int, *options: str) -> str:
    """What the suite says."""
    node = _SUITES / "node" / "bin" / "node"
    if not node.exists():
        pytest.fail(".node-conformance is missing: run `make test`, which sets it up")
    courier = f"{sys.executable} -I -S {_HERE / 'courier.py'} {port}"
    process = await asyncio.create_subprocess_exec(
        *(str(node), str(_SUITES / package / "dist" / "index.js"), "client", "--command", courier, *_EACH, *options),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        said, _ = await asyncio.wait_for(process.communicate(), _DEADLINE)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return said.decode()


async def failures(package: str, expected: Path, port: int) -> dict[str, int]:
    """How many checks of each scenario failed."""
    said = await run(package, port, "--suite", "all", "--expected-failures", str(expected))
    lines = re.findall(r"^[✓✗] (\S+): \d+ passed, (\d+) failed", said, re.MULTILINE)
    assert lines, said[-3000:]
    found = {name: int(failed) for name, failed in lines}
    for _ in range(3):
        # It measures how soon a stream is resumed. On a busy machine it has a better chance alone.
        if found["sse-retry"] and (alone := re.search(r", (\d+) failed", await run(package, port, *_ALONE))):
            found["sse-retry"] = int(alone[1])
    return found


async def test_every_scenario_passes_but_those_that_the_files_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (mcp_flow, server_sign_in):  # 74 issuers at once may need more than the 20 s of a person's sign-in
        monkeypatch.setattr(module, "GuardedRequests", partial(GuardedRequests, seconds=_DEADLINE))
    suites = {"@modelcontextprotocol/conformance": "expected-2025.yml", "conformance-2026": "expected-2026.yml"}
    async with ConformanceClient() as client:
        runs = [failures(package, _HERE / file, client.port) for package, file in suites.items()]
        old, new = await asyncio.gather(*runs)
    # The command's own status would count a warning, too. `sse-retry` warns when a busy machine is late.
    for found, file in ((old, "expected-2025.yml"), (new, "expected-2026.yml")):
        expected = yaml.safe_load((_HERE / file).read_text())["client"]
        assert sorted(name for name, failed in found.items() if failed) == sorted(expected), client.problems
    assert (len(old), len(new)) == (26, 48)

"""What a call passes below the manager: the functions that it enters, counted. `budgets.toml` has the numbers."""

import asyncio
import sys
import tomllib
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from mcp_types import CallToolResult

from a2c_smcp.computer.mcp_clients.mcp_connection import MCPConnection
from a2c_smcp.computer.mcp_clients.model import parse_server
from tests.computer.fakes.processes import command, nothing_left_over

ROOT = Path(__file__).parent.parent.parent
BUDGET = tomllib.loads((ROOT / "budgets.toml").read_text("utf-8"))["pipe"]
PACKAGE = str(ROOT / "a2c_smcp")

both_eras = pytest.mark.parametrize("era", ["legacy", "modern"])


@both_eras
@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": True})], ids=["uvloop"])
async def test_a_call_over_a_pipe_enters_no_more_functions_than_its_budget_says(era: str) -> None:
    program, arguments = command("normal", era=era)
    server = {"name": "a", "type": "stdio", "server_parameters": {"command": program, "args": arguments}}
    with nothing_left_over():
        connection = MCPConnection(parse_server(server))
        await connection.connect()
        try:
            await connection.list_tools()
            counts = []
            for _ in range(10):  # the end of the start, or a timer, may come between: the smallest count has none of it
                counts.append(await counted(connection))
                await asyncio.sleep(0.02)
            ours, calls = min(counts, key=lambda each: each[1])
        finally:
            await connection.disconnect()
    assert len(ours) <= BUDGET["functions"], f"{len(ours)} functions: {sorted(ours)}"
    assert calls <= BUDGET["calls"], f"{calls} calls of Python"


async def counted(connection: MCPConnection) -> tuple[Counter[str], int]:
    """The functions of ours that one call enters, and how many functions of anybody it enters."""

    async def call() -> CallToolResult | None:
        return await connection.call_ongoing("echo", {"text": "x" * 100})

    await call()  # the first one makes what others have
    ours: Counter[str] = Counter()
    everybody: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            name = f"{frame.f_code.co_filename}:{frame.f_code.co_qualname}"
            everybody[name] += 1
            if name.startswith(PACKAGE):
                ours[name] += 1

    sys.setprofile(note)
    try:
        result = await call()
    finally:
        sys.setprofile(None)
    assert result is not None
    assert not result.is_error
    return ours, everybody.total()

"""The record of a server: who joined, as whom, from where, and who called which tool with which code."""

import asyncio
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from a2c_smcp.cli import app
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.socketio.client import SMCPComputerClient
from a2c_smcp.computer.socketio.record_heads import RecordHeads
from a2c_smcp.record.rows import ChainHead, StoredRow
from a2c_smcp.record.schema import RecordFileError
from a2c_smcp.record.writer import RecordWriter
from a2c_smcp.server import APIKeyAuthentication, SyncAPIKeyAuthentication
from a2c_smcp.smcp import JOIN_OFFICE_EVENT, RECORD_HEAD_EVENT, TOOL_CALL_EVENT
from tests.computer.fakes.processes import eventually
from tests.record.files import QUICK, changed, checked, head, rows_of, written
from tests.server.harness import AsyncPeer, Running, async_server, sync_server

pytestmark = pytest.mark.anyio


async def test_members_and_calls_are_recorded_without_contents(tmp_path: Path) -> None:
    file = tmp_path / "server.sqlite"
    record = RecordWriter(file, pace=QUICK)
    computer, agent = AsyncPeer(), AsyncPeer()

    def answer(request: Any) -> Any:
        if request["tool_name"] == "echo":
            return {"content": [{"type": "text", "text": "the secret content"}], "isError": False}
        return {"error": {"code": 2**70 if request["tool_name"] == "huge" else 4003, "message": "the secret message"}}

    computer.answer(TOOL_CALL_EVENT, answer)
    with async_server(APIKeyAuthentication(["k1"])) as running:
        running.namespace.record_into(record)
        for peer, role, name in ((computer, "computer", "laptop"), (agent, "agent", "max")):
            await peer.connect(running.url, headers={"x-api-key": "k1"})
            await peer.call(JOIN_OFFICE_EVENT, {"office_id": "lab", "role": role, "name": name})
        for tool, target in (("echo", "laptop"), ("fail", "laptop"), ("huge", "laptop"), ("echo", "nobody")):
            request = {"agent": "max", "computer": target, "tool_name": tool, "params": {"a": "secret"}, "timeout": 20}
            await agent.call(TOOL_CALL_EVENT, {**request, "req_id": f"r-{tool}"})
        await agent.sio.disconnect()
        await computer.sio.disconnect()
    record.close()
    rows = rows_of(file)
    assert checked(file).problems == ()
    joined = [
        (row.row.agent, row.row.office, row.body["role"], row.body["address"]) for row in rows_of(file, kind="join")
    ]
    assert joined == [("laptop", "lab", "computer", "127.0.0.1"), ("max", "lab", "agent", "127.0.0.1")]
    calls = [
        (row.row.agent, row.row.server, row.row.tool, row.row.outcome, row.row.code)
        for row in rows_of(file, kind="call")
    ]
    assert calls == [
        ("max", "laptop", "echo", "answered", None),
        ("max", "laptop", "fail", "error", 4003),
        ("max", "laptop", "huge", "error", None),
        ("max", "nobody", "echo", "404", 404),
    ]
    assert {row.row.agent for row in rows if row.row.kind == "leave"} == {"laptop", "max"}
    assert {row.row.kind for row in rows} == {"begun", "connect", "join", "call", "leave"}
    assert "secret" not in " ".join(str(row) for row in rows)
    shown = CliRunner().invoke(app, ["server", "record", "list", "--file", str(file), "--kind", "call"])
    assert shown.exit_code == 0 and "call laptop/fail" in shown.output and "error 4003" in shown.output


def _any_server(is_async: bool) -> AbstractContextManager[Running]:
    return async_server(APIKeyAuthentication(["k1"])) if is_async else sync_server(SyncAPIKeyAuthentication(["k1"]))


@pytest.mark.parametrize(("keeps", "is_async"), [(True, True), (False, True), (True, False)])
async def test_a_server_keeps_the_head_of_a_computer_s_record_if_it_keeps_a_record(
    tmp_path: Path, keeps: bool, is_async: bool
) -> None:
    file, of_server = tmp_path / "pc.sqlite", tmp_path / "server.sqlite"
    record = RecordWriter(of_server, pace=QUICK)
    with _any_server(is_async) as running:
        if keeps:
            running.namespace.record_into(record)
        async with Computer("pc", record=RecordWriter(file, pace=QUICK), tell_record_head=True) as computer:
            await eventually(file.exists)
            async with SMCPComputerClient(computer, running.url, api_key="k1") as client:
                await client.join_office("lab")
                if keeps:
                    await eventually(lambda: of_server.exists() and bool(_heads(of_server)))
        agent = AsyncPeer()
        await agent.connect(running.url, headers={"x-api-key": "k1"})
        refused = await agent.call(RECORD_HEAD_EVENT, {"head": "1:" + "0" * 64})
        assert refused["error"]["code"] == 4103
        await agent.call(JOIN_OFFICE_EVENT, {"office_id": "lab", "role": "computer", "name": "other"})
        for head in ("", "1", "1:abc", "9" * 30 + ":" + "0" * 64):
            assert (await agent.call(RECORD_HEAD_EVENT, {"head": head}))["error"]["code"] == 400
        assert await agent.call(RECORD_HEAD_EVENT, {"head": "1:" + "0" * 64}) == {"kept": keeps}
        await agent.sio.disconnect()
    record.close()
    if not keeps:
        assert not of_server.exists()
        return
    kept = [row for row in rows_of(of_server, kind="head") if row.row.agent == "pc"]
    assert kept[0].row.office == "lab"
    for row in kept:
        assert checked(file, ChainHead.parse(row.body["head"])).problems == ()
    changed(file, "DELETE FROM rows WHERE number >= 2")
    assert "the end was cut off" in checked(file, ChainHead.parse(kept[-1].body["head"])).problems[0]


def _heads(file: Path) -> list[StoredRow]:
    try:
        return rows_of(file, kind="head")
    except RecordFileError:  # it is being made
        return []


async def test_a_server_that_does_not_know_the_event_is_named_once_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = written(tmp_path / "pc.sqlite", 1)
    asked: list[Any] = []

    async def request(event: str, body: Any, timeout: float) -> tuple[Any, ...]:
        asked.append(body)
        return ({"error": {"code": 400, "message": f"unknown event {event}"}},)

    heads = RecordHeads(file, request)
    await heads.tell()
    await heads.tell()
    assert asked == [{"head": str(head(file))}] * 2
    assert caplog.text.count("does not keep the head") == 1


async def test_a_record_that_has_no_row_yet_when_the_computer_joins_is_told_soon(tmp_path: Path) -> None:
    file = tmp_path / "pc.sqlite"
    file.touch()  # it is being made
    asked: list[Any] = []

    async def request(event: str, body: Any, timeout: float) -> tuple[Any, ...]:
        asked.append(body)
        return ({"kept": True},)

    heads = RecordHeads(file, request)
    heads.joined()
    assert not await heads.tell()
    running = asyncio.create_task(heads.run())
    await asyncio.to_thread(written, file, 1)
    await eventually(lambda: bool(asked))
    running.cancel()
    assert asked == [{"head": str(head(file))}]


def test_a_file_that_cannot_be_written_is_refused_at_the_start(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["server", "--port", "0", "--record", str(tmp_path)])
    assert done.exit_code == 2 and "--record" in done.output

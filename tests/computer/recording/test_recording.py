"""What a Computer writes into its record."""

import asyncio
import json
import sys
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3
from mcp_types import CallToolResult, TextContent
from typer.testing import CliRunner

from a2c_smcp.computer.asker import ASKER, Asker
from a2c_smcp.computer.calls.log import HowDecided, LoggedCall
from a2c_smcp.computer.cli.main import app
from a2c_smcp.computer.console.recorded_calls import recorded_view
from a2c_smcp.computer.decisions.book import Accepted, Declined, MissingSignIn, Question
from a2c_smcp.computer.recording.call_rows import call_row, masked, running_row
from a2c_smcp.computer.recording.event_rows import event_row, place_of
from a2c_smcp.computer.recording.recorder import Recorder
from a2c_smcp.computer.redaction import Redaction
from a2c_smcp.computer.rules.store import RuleStore
from a2c_smcp.computer.watching.events import DecisionAsked, OfficeStatus
from a2c_smcp.record.places import record_of
from a2c_smcp.record.printing import as_json, as_table
from a2c_smcp.record.rows import RecordRow, StoredRow
from a2c_smcp.record.schema import RecordFileError
from a2c_smcp.record.writer import RecordWriter
from a2c_smcp.results import to_wire
from a2c_smcp.utils.secret_shapes import MASK
from a2c_smcp.wire import Encoded
from tests.computer.fakes.computers import running, server
from tests.computer.fakes.processes import eventually
from tests.record.files import QUICK, checked, rows_of

pytestmark = pytest.mark.anyio


def _same(text: str) -> str:
    return text


def _ended(arguments: dict[str, Any], result: CallToolResult, **more: Any) -> LoggedCall:
    who = Asker("max", "home", True, "lab")
    call = LoggedCall("r1", who, "a.echo", arguments, 30, started_at=1000.0, started=5.0, cancel=lambda: None, **more)
    call.server, call.tool, call.id = "a", "echo", "x-1"
    call.end(result, 5.5, 2**20)
    return call


# --- rows


@pytest.mark.parametrize(("bound", "who"), [(True, "max/lab"), (False, "says it is max/lab")])
def test_a_row_says_whether_anybody_vouches_for_the_name(bound: bool, who: str) -> None:
    result = CallToolResult(content=[])
    call = _ended({}, result)
    call.asker = Asker("max", "home", bound, "lab")
    stored = StoredRow(1, call_row(7, call, result, None, _same), b"")
    assert as_table([stored], UTC)[1][3] == who
    assert (as_json(stored)["key"], as_json(stored)["claimed"]) == ("home", not bound)
    assert recorded_view(stored)["claimed"] is not bound
    old = stored._replace(row=stored.row._replace(body="{}"))
    assert recorded_view(old)["claimed"] is True  # a release that knew no bound names has written it


def test_the_row_of_a_call_says_who_what_how_and_the_digest_of_the_result() -> None:
    result = CallToolResult(content=[TextContent(text="hello")], _meta={"a": 1})
    call = _ended({"text": "hi"}, result, how=HowDecided("rule", rule="notes"))
    row = call_row(7, call, result, None, _same)
    whole = json.dumps(to_wire(result), separators=(",", ":")).encode()
    assert row.digest == blake3(whole).digest()
    assert row[:10] == (7, "call", "x-1", "lab", "max", "a", "echo", "succeeded", "rule", None)
    assert row.body == (
        '{"req_id":"r1","name":"a.echo","arguments":{"text":"hi"},"timeout":30,"rule":"notes","seconds":0.5,'
        f'"bytes":{len(whole)},"key":"home","claimed":false}}'
    )
    sent = '{"as it left": "ä"}'
    row = call_row(7, call, result, sent, _same)
    assert (row.digest, json.loads(row.body)["bytes"]) == (blake3(sent.encode()).digest(), len(sent) + 1)
    assert '"text":"hello"' in call_row(7, call, result, None, _same, _same).body


@pytest.mark.parametrize("code", [2**70, 4005, "4005"])
def test_a_code_that_an_mcp_server_writes_into_its_result_is_not_ours(code: object) -> None:
    result = CallToolResult(
        content=[TextContent(text="words of a stranger")], is_error=True, _meta={"error_code": code}
    )
    row = call_row(7, _ended({}, result), result, None, _same)
    assert row.code is None and "stranger" not in row.body


def test_a_call_that_has_ended_before_the_record_is_written_has_one_row() -> None:
    result = CallToolResult(content=[])
    assert running_row(7, _ended({}, result), _same) is None
    call = LoggedCall("r1", None, "echo", {}, None, 1000.0, 5.0, lambda: None)
    row = running_row(7, call, _same)
    assert row is not None and (row.kind, row.at, row.how) == ("running", 1_000_000_000, "nobody")


def test_secrets_are_masked_by_value_and_by_name() -> None:
    redaction = Redaction()
    redaction.learn_value("${input:key}", 'hunter"2\\')
    given = {
        "note": 'it is hunter"2\\ here',
        "password": "x",
        "nested": [{"api_key": 5, "Authorization": ["a"], "max_tokens": 7, "has_password": True}],
        'hunter"2\\': 1,
    }
    assert masked(given, redaction, 1000) == {
        "note": "it is ${input:key} here",
        "password": MASK,
        "nested": [{"api_key": MASK, "Authorization": MASK, "max_tokens": 7, "has_password": True}],
        "${input:key}": 1,
    }


def test_secrets_are_masked_by_their_shape_and_by_their_place() -> None:
    given = {
        "text": "use ghp_" + "a1" * 18,
        "argv": ["mysql", "--password", "hunter2", "--now"],
        "env": [{"name": "DB_PASSWORD", "value": "hunter2"}, {"name": "SIZE", "value": "9"}],
        "pin": 4711,
        "author": "ada",
    }
    assert masked(given, Redaction(), 1000) == {
        "text": f"use {MASK}",
        "argv": ["mysql", "--password", MASK, "--now"],
        "env": [{"name": "DB_PASSWORD", "value": MASK}, {"name": "SIZE", "value": "9"}],
        "pin": MASK,
        "author": "ada",
    }


def test_a_sign_in_is_recorded_with_its_server_and_host_and_no_url_with_its_query() -> None:
    url = "https://ada:pw@login.example/authorize?state=hidden#part"
    asked = MissingSignIn("d1", 0.0, None, "drive", url, ("files.read", "mail"), is_step_up=True)
    row = event_row(7, DecisionAsked(asked), "", _same)
    assert row is not None and (row.kind, row.about, row.server) == ("asked", "d1", "drive")
    assert json.loads(row.body) == {
        "decision": "d1",
        "what": "sign_in",
        "host": "login.example",
        "scopes": "files.read mail",
        "step_up": True,
    }
    question = Question("d2", 0.0, None, "drive", "Visit this", None, url, None, ())
    row = event_row(7, DecisionAsked(question), "", _same)
    assert row is not None and json.loads(row.body)["url"] == "https://login.example/authorize"
    row = event_row(7, OfficeStatus("o", "joined", "https://x:y@host/?token=hidden", "lab"), "", _same)
    assert row is not None and json.loads(row.body)["url"] == "https://host/"
    assert place_of("http://[broken") == ""


def test_a_long_result_is_kept_up_to_its_own_limit() -> None:
    result = CallToolResult(content=[TextContent(text="ab " * 40_000)])
    written = Written()
    Recorder(written, Redaction(), with_results=True).call_ended(_ended({}, result), result)  # type: ignore[arg-type]
    (row,) = written.rows
    assert 63_000 < len(row.body) < 70_000


def test_the_digest_is_of_the_text_that_was_sent() -> None:
    result, written = CallToolResult(content=[TextContent(text="hello")]), Written()
    call = _ended({}, result)
    call.sent = Encoded('{"content":[]}')
    Recorder(written, Redaction()).call_ended(call, result)  # type: ignore[arg-type]
    (row,) = written.rows
    assert (row.digest, json.loads(row.body)["bytes"]) == (blake3(b'{"content":[]}').digest(), 14)


@pytest.mark.parametrize("before", [4090, 4096, 5110, 5120])
def test_no_secret_is_left_where_a_long_argument_is_cut(before: int) -> None:
    redaction, written = Redaction(), Written()
    secret = "canary" * 50
    redaction.learn_value("${input:key}", secret)
    given = {"text": f"{'x ' * (before // 2)}{secret} ghp_{'a1' * 18} {'y' * 10**5}"}
    recorder = Recorder(written, redaction)  # type: ignore[arg-type]
    recorder.call_ended(_ended(given, result := CallToolResult(content=[])), result)
    (row,) = written.rows
    assert "canary" not in row.body and "a1a1" not in row.body
    assert 4000 < len(row.body) < 4500


class Written:
    """A writer that makes rows at once, and keeps them."""

    def __init__(self) -> None:
        self.rows: list[RecordRow] = []

    def add(self, make: Any, *args: object, size: int = 0) -> None:
        self.rows.append(make(7, *args))


def test_large_deep_and_odd_arguments_are_cut_and_never_fail() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    for value in ("x" * 10**6, ["x"] * 10**5, {str(at): at for at in range(10**5)}, deep, 2**80, "\ud800"):
        result = CallToolResult(content=[TextContent(text="y")])
        row = call_row(1, _ended({"value": value}, result), result, None, _same, _same)
        assert len(row.body) < 6000
    assert masked("x" * 100, _same, 18) == "xxxxxxxxxx… (100 characters)"


# --- a Computer


async def test_calls_decisions_and_servers_are_recorded_and_one_call_is_one_story(tmp_path: Path) -> None:
    file = tmp_path / "r.sqlite"
    record = RecordWriter(file, pace=QUICK)
    async with running(server("a", default_tool_meta=None), record=record) as (computer, _):
        assert computer.record_file == file
        ASKER.set(Asker("max", "home", True, "lab"))
        with computer.decisions.attend("browser"):
            for answer in (Declined("wrong folder"), Accepted(always=True)):
                call = asyncio.create_task(computer.execute_tool("r", "a.echo", {"text": "x"}, 30))
                await eventually(lambda: bool(computer.decisions.pending))
                computer.decisions.answer(computer.decisions.pending[0].id, answer, by="browser")
                await call
            await computer.execute_tool("r", "a.echo", {"text": "again"}, 30)
            await computer.execute_tool("r", "a.none", {}, 30)
    rows = rows_of(file)
    assert checked(file).problems == ()
    calls = [(row.row.outcome, row.row.how, row.row.code, row.row.agent) for row in rows if row.row.kind == "call"]
    assert calls == [
        ("refused", "person", 4005, "max"),
        ("succeeded", "person", None, "max"),
        ("succeeded", "rule", None, "max"),
        ("failed", "nobody", 4001, "max"),
    ]
    refused = next(row for row in rows if row.row.kind == "call")
    story = [row.row.kind for row in rows_of(file, about=refused.row.about) if row.row.kind != "running"]
    assert story == ["asked", "decided", "call"]
    decided = next(row for row in rows if row.row.kind == "decided")
    assert (decided.row.outcome, decided.body["place"], decided.body["reason"]) == (
        "declined",
        "browser",
        "wrong folder",
    )
    assert [row.row.outcome for row in rows if row.row.kind == "server"][:2] == ["starting", "running"]
    assert [row.row.outcome for row in rows if row.row.kind == "computer"] == ["started", "stopped"]
    (added,) = [row for row in rows if row.row.kind == "rule"]
    assert added.row.outcome == "added" and "the tool is a.echo" in added.body["says"]


async def test_a_rule_names_its_maker_and_has_no_secret_of_the_call(tmp_path: Path) -> None:
    file = tmp_path / "r.sqlite"
    async with running(server("a", default_tool_meta=None), record=RecordWriter(file, pace=QUICK)) as (computer, _):
        rules = computer.decisions.rules
        rules.open(tmp_path / "rules.toml")
        ASKER.set(Asker("max"))
        with computer.decisions.attend("browser"):
            arguments = {"text": "x", "password": "hunter2", "more": [{"api_key": "hunter2"}]}
            call = asyncio.create_task(computer.execute_tool("r", "a.echo", arguments, 30))
            await eventually(lambda: bool(computer.decisions.pending))
            computer.decisions.answer(computer.decisions.pending[0].id, Accepted(widths=()), by="browser")
            await call
        (made,) = rules.list.all
        rules.remove(made.id, by="terminal")
        await rules.aclose()
    rows = rows_of(file, kind="rule")
    assert [(row.row.outcome, row.body.get("by")) for row in rows if row.body.get("rule") == made.id] == [
        ("added", "browser"),
        ("undone", "terminal"),
    ]
    assert 'text is exactly "x"' in rows[1].body["says"]
    assert "hunter2" not in str(rows_of(file)) and "hunter2" not in str(made)


def _has_decided(rules: RuleStore, count: int) -> bool:
    return rules.listed()[0].matched == count


async def test_how_often_a_rule_decided_is_known_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file, rules_file = record_of("pc"), tmp_path / "a2c-smcp" / "rules" / "pc" / "rules.toml"
    rules_file.parent.mkdir(parents=True)
    rules_file.write_text('[[rules]]\nid = "r"\neffect = "allow"\n\n[[rules]]\nid = "never-used"\neffect = "ask"\n')
    for count in (2, 3):
        async with running(server("a"), record=RecordWriter(file, pace=QUICK)) as (computer, _):
            rules = computer.decisions.rules
            rules.open(rules_file)
            if count == 3:
                await eventually(partial(_has_decided, rules, 2))
            for _ in range(count):
                await computer.execute_tool("r", "a.echo", {"text": "x"}, 30)
            listed = rules.listed()
            assert listed[0].last is not None and listed[1].matched == 0
    assert listed[0].matched == 5
    done = CliRunner().invoke(app, ["rules", "list", "--name", "pc"])
    assert "decided 5 times, last at 20" in done.output and done.output.count("    decided") == 1


async def test_a_call_that_still_runs_is_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "r.sqlite"
    async with running(server("a"), record=RecordWriter(file, pace=QUICK)) as (computer, _):
        call = asyncio.create_task(computer.execute_tool("r", "a.sleep", {"seconds": 60}, 60))
        await eventually(lambda: file.exists() and _begun(file))
        (entry,) = computer.running_calls
        computer.cancel_call(entry.call.id, by="terminal")
        await call
    (ended,) = rows_of(file, kind="call")
    assert (ended.row.outcome, ended.body["cancelled_by"]) == ("cancelled", "terminal")


_KILLED = """
import asyncio, json, sys
from pathlib import Path
from a2c_smcp.computer import Computer
from a2c_smcp.record.writer import RecordWriter

async def main():
    record = RecordWriter(Path(sys.argv[1]))
    async with Computer("pc", mcp_servers=[json.loads(sys.argv[2])], record=record) as computer:
        await computer.execute_tool("quick", "a.echo", {"text": "x"}, 30)
        await computer.execute_tool("slow", "a.sleep", {"seconds": 600}, 600)

asyncio.run(main())
"""


async def test_a_computer_that_was_killed_shows_what_ran(tmp_path: Path) -> None:
    file = tmp_path / "r.sqlite"
    command = [sys.executable, "-c", _KILLED, str(file), json.dumps(server("a"))]
    process = await asyncio.create_subprocess_exec(*command)
    try:
        await eventually(lambda: file.exists() and any(row.body["req_id"] == "slow" for row in _running(file)))
    finally:
        process.kill()
        await process.wait()
    assert checked(file).problems == ()
    (slow,) = [row for row in _running(file) if row.body["req_id"] == "slow"]
    assert (slow.row.tool, slow.body["arguments"]) == ("sleep", {"seconds": 600})
    assert [row.body["req_id"] for row in rows_of(file, kind="call")] == ["quick"]


def _running(file: Path) -> list[StoredRow]:
    return rows_of(file, kind="running") if _begun(file) else []


def _begun(file: Path) -> bool:
    try:
        return bool(rows_of(file, kind="running"))
    except RecordFileError:  # it is being made
        return False


async def test_a_question_that_only_the_agent_was_asked_is_recorded_and_shown_to_nobody_here(tmp_path: Path) -> None:
    file = tmp_path / "r.sqlite"

    async def ask(decision: Any) -> Any:
        return Accepted({"name": "a secret answer"})

    async with running(record=RecordWriter(file, pace=QUICK)) as (computer, _):
        asked = computer.decisions.ask_question("a", "Your name?", schema={}, caller=("max", ask), is_here=False)
        assert (await asked).value == {"name": "a secret answer"}
        assert computer.decisions.pending == ()
    (row,) = rows_of(file, kind="question")
    assert (row.row.server, row.row.agent, row.row.outcome) == ("a", "max", "accepted")
    assert row.body == {"message": "Your name?", "claimed": True}
    assert "secret answer" not in str(rows_of(file))

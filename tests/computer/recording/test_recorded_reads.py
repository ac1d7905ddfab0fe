"""What agents read, in the record: the first read, then a row a minute. And a record that is required."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.calls.log import HowDecided
from a2c_smcp.computer.cli.main import app
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.console.call_search import CallQuery
from a2c_smcp.computer.console.recorded_calls import recorded_calls, recorded_result, recorded_view, story_of
from a2c_smcp.computer.recording.read_rows import (
    MOST_COUNTED,
    ROW_SECONDS,
    ReadCounts,
    ReadDone,
    read_row,
    story_of_read,
)
from a2c_smcp.computer.resources.shown import ResourceTimings
from a2c_smcp.errors import InternalError
from a2c_smcp.record.writer import RecordWriter
from a2c_smcp.smcp import (
    GET_CONFIG_EVENT,
    GET_DESKTOP_EVENT,
    GET_FINDER_EVENT,
    GET_PROMPT_EVENT,
    GET_RESOURCES_EVENT,
    READ_RESOURCE_EVENT,
)
from tests.computer.fakes.computers import running, server, sharing
from tests.computer.fakes.offices import Agent, watched
from tests.computer.test_read_rules_e2e import rule
from tests.record.files import QUICK, checked, rows_of
from tests.server.harness import Running

ADA = Asker("ada", "ada-key", bound=True, office="lab")
PATIENT = ResourceTimings(list=15, subscribe=15, read=15)
NO = HowDecided()


def done(name: str = "window://a/b", outcome: str = "succeeded", asker: Asker = ADA) -> ReadDone:
    return ReadDone(asker, "window", "s", name, outcome)


# --- counting


def test_the_first_read_has_a_row_and_then_one_a_minute_with_the_count() -> None:
    counts = ReadCounts()
    first = counts.read(done(), NO, 0.0)
    assert first is not None and first.count == 1
    assert all(counts.read(done(), NO, n / 100) is None for n in range(5604))
    assert not list(counts.due(ROW_SECONDS - 1))
    (row,) = counts.due(ROW_SECONDS)
    assert row.count == 5604 and not list(counts.due(ROW_SECONDS))
    # Another outcome is another row.
    assert counts.read(done(outcome="refused"), NO, 61.0) is not None
    # What was not read for a minute is forgotten.
    assert not list(counts.due(2 * ROW_SECONDS)) and not counts.knows(done())
    assert counts.read(done(), NO, 2 * ROW_SECONDS) is not None


def test_counts_are_bounded_and_none_is_lost() -> None:
    counts, rows, reads = ReadCounts(most=100), 0, 0
    for name in range(1000):
        for agent in range(3):
            for _ in range(2):
                asker = Asker(f"agent-{agent}-{name % 50}", office="lab")
                rows += counts.read(done(f"note://{name}", asker=asker), NO, 0.0) is not None
                reads += 1
    assert len(counts) <= 100 + 65
    assert rows + sum(row.count for row in counts.rest()) == reads
    assert len(counts) == 0 and MOST_COUNTED <= 10_000


def test_a_row_says_what_and_how_often_and_hides_secrets() -> None:
    first = ReadCounts().read(done("note://s3cret"), HowDecided("person", "terminal"), 0.0)
    assert first is not None
    row = read_row(7, first, lambda text: text.replace("s3cret", "***"))
    assert row[:5] == (7, "read", story_of_read(ADA, "window", "s", "note://s3cret"), "lab", "ada")
    assert (row.outcome, row.how) == ("succeeded", "person")
    body = json.loads(row.body)
    assert (body["what"], body["uri"], body["count"], body["place"]) == ("window", "note://***", 1, "terminal")


# --- under an agent's eyes


async def record_of_reads(hub: Running, file: Path, **more: Any) -> None:
    record = RecordWriter(file, pace=QUICK)
    given = {"resource_timings": PATIENT, "record": record, **more}
    async with watched(hub.url, sharing("s", share="all"), **given) as (agent, computer):
        for _ in range(20):
            assert "error" not in await agent.ask(READ_RESOURCE_EVENT, uri="note://one")
            assert len((await agent.ask(GET_DESKTOP_EVENT))["desktops"]) == 2
        for event, asked in (
            (GET_FINDER_EVENT, {}),
            (GET_RESOURCES_EVENT, {}),
            (GET_PROMPT_EVENT, {"mcp_server": "s", "name": "plain"}),
            (GET_CONFIG_EVENT, {}),
        ):
            assert "error" not in await agent.ask(event, **asked)
        assert (await agent.ask(READ_RESOURCE_EVENT, uri="note://none"))["error"]["code"] == 4204
        rule(computer, {"effect": "deny", "reads": "note://one", "id": "no-notes"})
        for _ in range(3):
            assert (await agent.ask(READ_RESOURCE_EVENT, uri="note://one"))["error"]["code"] == 403


def told(file: Path) -> dict[tuple[str, str, str], int]:
    """How often each thing was read, with which outcome."""
    found: dict[tuple[str, str, str], int] = {}
    for stored in rows_of(file, kind="read"):
        body = stored.body
        key = body["what"], body.get("uri") or body.get("name") or "", stored.row.outcome
        found[key] = found.get(key, 0) + body["count"]
        assert stored.row.agent == "ag" and body["claimed"] is True
    return found


async def test_the_record_has_every_read_of_an_agent(hub: Running, tmp_path: Path) -> None:
    file = tmp_path / "r.sqlite"
    await record_of_reads(hub, file)
    assert told(file) == {
        ("resource", "note://one", "succeeded"): 20,
        ("window", "window://fake/0", "succeeded"): 20,
        ("window", "window://fake/1", "succeeded"): 20,
        ("documents", "", "succeeded"): 1,
        ("resources", "", "succeeded"): 1,
        ("prompt", "plain", "succeeded"): 1,
        ("config", "", "succeeded"): 1,
        ("resource", "note://none", "failed"): 1,
        ("resource", "note://one", "refused"): 3,
    }
    rows = rows_of(file, kind="read")
    assert len(rows) == 9 + 4  # those that were read again have a second one
    (refused, _) = [row for row in rows if row.row.outcome == "refused"]
    assert (refused.row.how, refused.body["rule"], refused.row.code) == ("rule", "no-notes", 403)
    assert checked(file).problems == ()
    # The commands know these rows.
    run = CliRunner()
    listed = run.invoke(app, ["record", "list", "--file", str(file), "--kind", "read"]).stdout
    assert "read s/resource note://one" in listed and "succeeded × 19" in listed
    assert "window://fake/1" in run.invoke(app, ["record", "search", "fake/1", "--file", str(file)]).stdout
    story = run.invoke(app, ["record", "show", refused.row.about, "--file", str(file)]).stdout
    assert story.count("read s/resource note://one") == 4  # read, counted, refused, counted
    exported = run.invoke(app, ["record", "export", "--file", str(file), "--format", "csv", "--kind", "read"]).stdout
    assert exported.splitlines()[0].endswith("what,uri,count,sha256,blake3") and "note://one" in exported
    assert "whole" in run.invoke(app, ["record", "verify", "--file", str(file)]).stdout
    # So does the page.
    shown = [recorded_view(row) for row in recorded_calls(file, CallQuery(reads=True), None, lambda _: False)]
    assert len(shown) == len(rows) == len({view["id"] for view in shown})
    newest = shown[0]
    assert newest["agent"] == "ag" and newest["tool"].startswith("read ") and newest["recorded"]["reads"]
    assert not list(recorded_calls(file, CallQuery(), None, lambda _: False))
    later = [*recorded_calls(file, CallQuery(reads=True), shown[3]["id"], lambda _: False)]
    assert len(later) == len(rows) - 4
    assert [*recorded_calls(file, CallQuery(reads=True, words=("note://one",)), None, lambda _: False)]
    one = next(view["id"] for view in shown if "note://one" in view["arguments"])
    whole = recorded_result(file, one)
    assert whole is not None and "note://one" in whole["arguments"]
    assert [step["kind"] for step in story_of(file, one)] == ["read"] * 4
    assert recorded_result(file, "row-1") is None and recorded_result(file, "row-x") is None


async def test_what_is_read_in_parts_or_by_a_card_tells_one_story(hub: Running, tmp_path: Path) -> None:
    file = tmp_path / "r.sqlite"
    given = {"resource_timings": ResourceTimings(list=15, subscribe=15, read=0.2)}
    async with watched(hub.url, sharing("s", share="all"), record=RecordWriter(file, pace=QUICK), **given) as both:
        agent, computer = both
        rule(computer, {"effect": "ask", "reads": "window://fake/*"})
        with computer.decisions.attend("terminal"):
            assert (await agent.ask(READ_RESOURCE_EVENT, uri="window://fake/0"))["error"]["code"] == 408
    (row,) = rows_of(file, kind="read")
    assert row.row.outcome == "unanswered"
    kinds = [each.row.kind for each in rows_of(file, about=row.row.about)]
    assert sorted(kinds) == ["asked", "decided", "read"]


# --- a record that is required


async def test_no_record_no_call_and_no_read(hub: Running, tmp_path: Path) -> None:
    file = tmp_path / "folder" / "r.sqlite"
    given = {"record": RecordWriter(file, pace=QUICK), "record_required": True, "resource_timings": PATIENT}
    async with watched(hub.url, sharing("s", share="all"), **given) as (agent, _):
        assert (await agent.tool("s.echo", text="hello"))["isError"] is False
        assert "error" not in await agent.ask(READ_RESOURCE_EVENT, uri="note://one")
        # A row is in the file before the call and before the read.
        assert {"running", "call", "read"} <= {row.row.kind for row in rows_of(file)}
        assert "begun" in {row.row.outcome for row in rows_of(file, kind="read")}
        for each in file.parent.iterdir():
            each.unlink()
        file.mkdir()  # no program can write there any more
        await break_connection(given["record"])
        await refused(agent)
        file.rmdir()
        for _ in range(200):
            if (await agent.tool("s.echo", text="again"))["isError"] is False:
                break
            await asyncio.sleep(0.05)
        else:
            raise AssertionError("the record did not come back")
        assert "error" not in await agent.ask(READ_RESOURCE_EVENT, uri="note://one")
    assert checked(file).problems == ()


async def break_connection(record: Any) -> None:
    """Let the writer open its file anew."""
    await asyncio.to_thread(record.close)


async def refused(agent: Agent) -> None:
    called = await agent.tool("s.echo", text="unseen")
    assert called["error"]["code"] == 500 and called["isError"] is True
    assert "Is a directory" in called["error"]["message"] and called["error"]["details"]["reason"]
    assert str(Path.cwd()) not in str(called)
    for event, asked in (
        (READ_RESOURCE_EVENT, {"uri": "note://one"}),
        (READ_RESOURCE_EVENT, {"uri": "note://picture"}),
        (GET_DESKTOP_EVENT, {}),
        (GET_FINDER_EVENT, {}),
        (GET_CONFIG_EVENT, {}),
    ):
        assert (await agent.ask(event, **asked))["error"]["code"] == 500, event


async def test_calls_go_on_without_a_record_unless_it_is_required(tmp_path: Path) -> None:
    (tmp_path / "r.sqlite").mkdir()
    async with running(server("a"), record=RecordWriter(tmp_path / "r.sqlite", pace=QUICK)) as (computer, _):
        assert not (await computer.execute_tool("q", "a.echo", {"text": "hello"}, 20)).is_error
    required = RecordWriter(tmp_path / "r.sqlite", pace=QUICK)
    async with running(server("a"), record=required, record_required=True) as (computer, _):
        with pytest.raises(InternalError, match="record cannot be written"):
            await computer.execute_tool("q", "a.echo", {"text": "hello"}, 20)
        assert computer.ended_calls[-1].outcome == "failed" and not computer.history
    with pytest.raises(ValueError, match="needs a record"):
        Computer("pc", record_required=True)


def test_the_command_needs_a_record_if_it_is_required(tmp_path: Path) -> None:
    config = tmp_path / "a.json"
    config.write_text("[]")
    given = ["run", "--headless", "--office", "o", "--config", str(config), "--no-record", "--record-required"]
    outcome = CliRunner().invoke(app, given)
    assert outcome.exit_code == 2 and "leave out --no-record" in outcome.output.replace("\n", " ")

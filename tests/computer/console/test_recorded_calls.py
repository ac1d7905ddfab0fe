"""The page shows the calls of the record: yesterday's, by search and day, and the whole story of one."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, expect

from a2c_smcp.computer.decisions.book import Declined
from a2c_smcp.record.rows import RecordRow, body_text
from a2c_smcp.record.writer import RecordWriter
from tests.computer.console.harness import Visitor, as_agent, opened, tab
from tests.computer.console.test_calls_view import rows
from tests.computer.fakes.computers import server
from tests.computer.fakes.processes import eventually
from tests.record.files import QUICK, rows_of

YESTERDAY = datetime.now().replace(hour=12, minute=0) - timedelta(days=1)


def _past(at: int, number: int) -> RecordRow:
    """A call of yesterday noon, of another run."""
    then = int((YESTERDAY.timestamp() + number) * 1e6)
    said = {
        "req_id": f"r{number}",
        "arguments": {"text": f"old {number}"},
        "seconds": 0.5,
        "bytes": 77,
        "place": "terminal",
    }
    outcome = "refused" if number == 3 else "succeeded"
    names = ("lab", "planner", "mail", "send", outcome, "person")
    return RecordRow(then, "call", f"old-{number}", *names, digest=bytes(32), body=body_text(said))


def _record(file: Path, count: int) -> RecordWriter:
    record = RecordWriter(file, pace=QUICK)
    asked = body_text({"decision": "d", "what": "confirmation"})
    decided = body_text({"decision": "d", "what": "confirmation", "place": "terminal", "reason": "not to them"})
    at = int(YESTERDAY.timestamp() * 1e6)
    record.add(lambda _: RecordRow(at, "asked", "old-3", body=asked))
    record.add(lambda _: RecordRow(at + 5, "decided", "old-3", outcome="declined", how="person", body=decided))
    for number in range(1, count + 1):
        record.add(_past, number)
    record.close()
    return record


async def test_yesterdays_calls_are_listed_searched_exported_and_tell_their_story(
    browser: Browser, tmp_path: Path
) -> None:
    record = _record(tmp_path / "r.sqlite", 5)
    async with (
        opened(server("one", prefixed=False), record=record) as (computer, console),
        tab(browser, console.link()) as page,
    ):
        await page.get_by_role("button", name="Load earlier calls").click()
        await expect(rows(page)).to_have_count(5)
        await as_agent(computer, "echo", text="of today")
        await page.mouse.move(1, 1)
        await expect(rows(page)).to_have_count(6)  # and those of yesterday stay
        await expect(rows(page).first).to_contain_text("of today")
        await page.get_by_label("Day").fill(YESTERDAY.date().isoformat())
        await expect(rows(page)).to_have_count(5)
        await page.get_by_role("searchbox", name="Search calls").fill("old 3")
        await expect(rows(page)).to_have_count(1)
        await expect(rows(page).first).to_contain_text("refused by the terminal")
        await rows(page).first.get_by_role("button").first.click()
        details = page.get_by_role("group", name="Details of send")
        await expect(details).to_contain_text("77 bytes")
        await expect(details.locator(".story li")).to_have_count(3)
        story = await details.locator(".story li").all_inner_texts()
        assert "Approval was asked for." in story[0] and "not to them" in story[1]
        async with page.expect_download() as downloading:
            await page.get_by_role("button", name="Export").click()
        await (await downloading.value).save_as(tmp_path / "x.jsonl")
        (line,) = (tmp_path / "x.jsonl").read_text("utf-8").splitlines()
        assert json.loads(line)["arguments"] == {"text": "old 3"}


async def test_a_page_is_given_one_list_of_memory_and_record_without_gaps_or_repeats(tmp_path: Path) -> None:
    record = _record(tmp_path / "r.sqlite", 230)
    async with (
        opened(server("one", prefixed=False), record=record) as (computer, console),
        Visitor(console.link()) as visitor,
    ):
        await visitor.enter()
        for number in range(3):
            await as_agent(computer, "echo", text=f"new {number}")
        await eventually(lambda: len(rows_of(tmp_path / "r.sqlite", kind="call")) == 233)
        ids: list[str] = []
        answer: dict[str, Any] = {"more": True}
        while answer["more"]:
            before = f"?before={ids[-1]}" if ids else ""
            answer = (await visitor.get(f"/api/history{before}")).json()
            ids += [call["id"] for call in answer["calls"]]
        assert ids[3:] == [f"old-{number}" for number in range(230, 0, -1)]
        assert len(set(ids)) == 233
        people = (await visitor.get("/api/history?person=1&q=old&outcome=refused")).json()["calls"]
        assert [(call["id"], call["verdict"], call["decided_by"]) for call in people] == [
            ("old-3", "refused", "terminal")
        ]
        whole = (await visitor.get("/api/result?id=old-3")).json()
        assert json.loads(whole["arguments"]) == {"text": "old 3"} and whole["recorded"]["bytes"] == 77
        assert (await visitor.get("/api/result?id=nobodys")).status_code == 404
        for query in ("since=x", "until=-1", "since=nan"):
            assert (await visitor.get(f"/api/history?{query}")).status_code == 400


async def test_a_refusal_of_this_run_has_a_story_and_a_broken_record_breaks_no_page(tmp_path: Path) -> None:
    file = tmp_path / "r.sqlite"
    record = RecordWriter(file, pace=QUICK)
    asks: dict[str, Any] = {"default_tool_meta": {}, "prefixed": False}

    async def refuse(decision: Any) -> Any:
        return Declined("no")

    async with opened(server("one", **asks), record=record) as (computer, console), Visitor(console.link()) as visitor:
        await visitor.enter()
        with computer.decisions.attend("terminal", ask=refuse):
            await as_agent(computer, "echo", text="x")
        (call,) = (await visitor.get("/api/history")).json()["calls"]
        await eventually(lambda: bool(rows_of(file, kind="call")))
        assert [(row.row.outcome, row.body["by"]) for row in rows_of(file, kind="sign-in")] == [("entered", "link")]
        steps = (await visitor.get(f"/api/story?id={call['id']}")).json()["steps"]
        assert [step["kind"] for step in steps if step["kind"] != "running"] == ["asked", "decided", "call"]
        record.close()
        _break(file)
        answer = (await visitor.get("/api/history")).json()
        assert [each["id"] for each in answer["calls"]] == [call["id"]]
        assert (await visitor.get(f"/api/story?id={call['id']}")).json() == {"steps": []}


def _break(file: Path) -> None:
    for each in file.parent.glob(f"{file.name}*"):
        each.write_bytes(b"broken")

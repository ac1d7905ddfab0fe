"""An agent on a computer where everything is forbidden that is not allowed: it may neither read nor learn of anything,
and the record has every try. The honest pair beside it goes on.
"""

import base64
import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from a2c_smcp.record.queries import RecordQuery
from a2c_smcp.record.reading import reading
from tests.attack.harness import Pair, honest_pair, target
from tests.attack.processes import A2C, Started, started
from tests.attack.test_members import Member, member
from tests.computer.fakes.computers import sharing
from tests.computer.test_read_rules_e2e import DOCUMENTS, HOST

OFFICE, VICTIM = "forbidden", "victim"
READS = 5604
FORBIDDEN = """
[[rules]]
effect = "allow"
tool = "s.*"

[[rules]]
effect = "deny"
reason = "Nothing here is for reading."
"""
SECRET = f"""
[[rules]]
effect = "deny"
reads = ["{HOST}/sales", "window://fake/0", "note://one"]
reason = "Not yet published."
"""


@dataclass(frozen=True)
class Scene:
    pair: Pair
    victim: Started
    agent: Member
    rules: Path
    state: Path

    def ask(self, event: str, **fields: Any) -> Any:
        return self.agent.ask(event, {"agent": "mallory", "req_id": "1", "computer": VICTIM, **fields})[0]

    def code(self, event: str, **fields: Any) -> int | None:
        found: int | None = (self.ask(event, **fields) or {}).get("error", {}).get("code")
        return found

    def tool(self, name: str, **params: Any) -> Any:
        return self.ask("client:tool_call", req_id=f"{time.monotonic()}", tool_name=name, params=params, timeout=30)

    def forbid(self, text: str) -> None:
        said = len(self.victim.log.read_text())
        new = self.rules.with_suffix(".new")
        new.write_text(text)
        new.replace(self.rules)
        self.victim.says("the rules file is read again", after=said)


@contextmanager
def scene(folder: Path, *options: str) -> Iterator[Scene]:
    skill = folder / "skills" / "draw"
    skill.mkdir(parents=True)
    (folder / "uploads").mkdir()
    (skill / "SKILL.md").write_text("---\nname: draw\ndescription: Draws.\n---\nBody.\n")
    (skill / "picture.bin").write_bytes(bytes(1000))
    config, rules, state = folder / "victim.json", folder / "rules.toml", folder / "state"
    servers = [sharing("s", share="all"), DOCUMENTS]
    config.write_text(json.dumps({"servers": servers, "skills": "skills", "uploads": "uploads"}))
    rules.write_text("")
    run = ["env", f"XDG_STATE_HOME={state}", A2C, "computer", "run", "--headless", "--config", str(config)]
    with target(folder) as server, honest_pair(server, "honest", [sharing("kept", share="all")]) as pair:
        place = ["--url", server.url, "--office", OFFICE, "--name", VICTIM, "--rules", str(rules), *options]
        with started([*run, *place], folder / "victim.log") as victim:
            victim.says("is in office")
            with member(server, "agent", "mallory", OFFICE) as agent:
                it = Scene(pair, victim, agent, rules, state)
                until(lambda: len(it.ask("client:get_finder").get("documents", [])) == 2)
                yield it


def until(happened: Any) -> None:
    deadline = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_an_agent_may_read_nothing_where_everything_is_forbidden(tmp_path: Path) -> None:
    with scene(tmp_path) as it:
        handle = it.ask("client:get_skill", name="draw", rel_path="picture.bin")["blob_handle"]
        blob = {"blob": base64.b64encode(b"x").decode(), "chunk_offset": 0, "total_size": 1, "eof": True}
        blob["sha256"] = hashlib.sha256(b"x").hexdigest()
        argument = {"name": "id", "value": ""}
        tries: list[tuple[str, dict[str, Any]]] = [
            ("client:read_resource", {"uri": "window://fake/0"}),
            ("client:get_desktop", {"window": "window://fake/0"}),
            ("client:read_resource", {"uri": f"{HOST}/sales"}),
            ("client:read_resource", {"uri": f"{HOST}/sales/pages/1?format=text"}),
            ("client:read_resource", {"uri": HOST}),
            ("client:read_resource", {"uri": "note://one"}),
            ("client:read_resource", {"uri": "note://one", "range": [0, 3]}),
            ("client:read_resource", {"uri": "note://two/part"}),
            ("client:subscribe_resource", {"uri": "note://one"}),
            ("client:get_prompt", {"mcp_server": "s", "name": "plain"}),
            (
                "client:complete",
                {"mcp_server": "s", "ref": {"type": "ref/prompt", "name": "greet"}, "argument": argument},
            ),
            ("client:get_skill", {"name": "draw"}),
            ("client:get_blob", {"blob_handle": handle, "chunk_offset": 0, "chunk_size": 100}),
            ("client:put_blob", blob),
            ("client:get_config", {}),
        ]
        for event, asked in tries:
            found = it.ask(event, **asked)
            assert "error" not in found, (event, asked, found)  # without rules, all of it succeeds
        it.forbid(FORBIDDEN)

        def attack() -> None:
            for event, asked in tries:
                refused = it.ask(event, **asked)["error"]
                assert (refused["code"], refused["details"]["reason"]) == (403, "Nothing here is for reading."), event
            assert it.ask("client:get_desktop")["desktops"] == []
            assert (found := it.ask("client:get_finder"))["documents"] == [] and found["total_count"] == 0
            assert "note" not in found
            assert (found := it.ask("client:get_resources"))["resources"] == [] == found["templates"]
            assert it.ask("client:get_prompts")["prompts"] == [] == it.ask("client:get_skills")["skills"]
            # A link that a tool hands over is no way around the rules.
            assert it.tool("s.link", uri="note://hidden")["isError"] is False
            assert it.code("client:read_resource", uri="note://hidden") == 403

        it.pair.unharmed_by(attack, at_least=2)


def test_neither_counts_nor_completions_nor_spellings_tell_of_one_secret_document(tmp_path: Path) -> None:
    with scene(tmp_path) as it:
        assert it.ask("client:get_finder")["total_count"] == 2
        assert it.ask("client:get_finder", keywords=["sales"])["total_count"] == 1
        templates = [each["uriTemplate"] for each in it.ask("client:get_resources")["templates"]]
        deeper = next(each for each in templates if each.startswith(HOST) and "pages" in each)
        asked = {"mcp_server": "docs", "ref": {"type": "ref/resource", "uri": deeper}}
        asked["argument"] = {"name": "doc_ref", "value": ""}
        assert sorted(it.ask("client:complete", **asked)["completion"]["values"]) == ["plan", "sales"]
        before = len(it.ask("client:get_resources")["resources"])
        it.forbid(SECRET)

        def attack() -> None:
            found = it.ask("client:get_finder")
            assert (found["total_count"], [each["doc_ref"] for each in found["documents"]]) == (1, ["plan"])
            assert it.ask("client:get_finder", keywords=["sales", "Q1"])["total_count"] == 0
            completion = it.ask("client:complete", **asked)["completion"]
            assert completion["values"] == ["plan"] and "total" not in completion
            listed = [each["uri"] for each in it.ask("client:get_resources")["resources"]]
            assert len(listed) == before - 3 and not {f"{HOST}/sales", "window://fake/0", "note://one"} & {*listed}
            for uri in (
                f"{HOST}/sales",
                f"{HOST}/s%61les",
                f"{HOST}/%73ales/pages/0",
                f"{HOST}/sales/?format=text",
                HOST,
            ):
                assert it.code("client:read_resource", uri=uri) == 403, uri
            assert it.code("client:read_resource", uri=f"{HOST}/plan/pages/0") is None  # the rest is read as before

        it.pair.unharmed_by(attack)


def test_a_subscription_tells_nothing_after_a_rule_has_come(tmp_path: Path) -> None:
    with scene(tmp_path) as it:
        for uri in ("note://one", "window://fake/0"):
            assert it.code("client:subscribe_resource", uri=uri) is None
        it.tool("s.set_resource", uri="note://one", text="before")
        it.agent.told("notify:resource_updated")
        it.forbid(SECRET)

        def attack() -> None:
            for number in range(20):
                it.tool("s.set_resource", uri="note://one", text=f"secret {number}")
                it.tool("s.set_resource", uri="window://fake/0", text=f"secret {number}")
            # What may be read is still told, and later than all of that.
            assert it.code("client:subscribe_resource", uri="window://fake/1") is None
            it.tool("s.set_resource", uri="window://fake/1", text="public")
            heard = it.agent.told("notify:resource_updated")
            assert "window://fake/1" in heard

        it.pair.unharmed_by(attack)


def test_five_thousand_reads_are_in_the_record_with_few_rows(tmp_path: Path) -> None:
    with scene(tmp_path) as it:

        def attack() -> None:
            for _ in range(READS // 2):
                first = it.agent.emit("client:read_resource", request("note://one"))
                second = it.agent.emit("client:read_resource", request("window://fake/0"))
                it.agent.ack(first)
                it.agent.ack(second)

        it.pair.unharmed_by(attack, is_long=True)
        state = it.state
    (file,) = state.rglob("*.sqlite")
    with reading(file) as reader:
        rows = [row for row in reader.all(RecordQuery(kind="read")) if row.body.get("uri")]
        counts = {uri: sum(row.body["count"] for row in rows if row.body["uri"] == uri) for uri in URIS}
        assert counts == dict.fromkeys(URIS, READS // 2)
        assert len(rows) < 30 and all(row.row.agent == "mallory" for row in rows)
        assert reader.check().problems == ()


URIS = ("note://one", "window://fake/0")


def request(uri: str) -> dict[str, Any]:
    return {"agent": "librarian", "req_id": "1", "computer": VICTIM, "uri": uri}

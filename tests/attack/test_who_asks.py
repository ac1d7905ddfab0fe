"""An agent that says it is another one, and a foreign server that says so: the rules, the results and the links of the
other are not for it, and the record has its own name. Beside an honest pair of the same server.
"""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
import socketio
import uvicorn

from a2c_smcp.record.queries import RecordQuery
from a2c_smcp.record.reading import reading
from tests.attack.harness import Pair, Target, honest_pair, target
from tests.attack.processes import A2C, DEADLINE, started
from tests.attack.test_members import Member, member
from tests.computer.fakes.computers import sharing
from tests.server.harness import serving

OFFICE = "library"
KEYS = """
[[keys]]
name = "the librarian"
key = "librarian-key"
roles = ["agent"]
names = ["librarian"]

[[keys]]
name = "the planner"
key = "planner-key"
roles = ["agent"]
names = ["planner"]

[[keys]]
name = "everybody"
key = "free-key"
"""
RULES = """
[[rules]]
effect = "allow"
agent = "librarian"
tool = ["s.link", "s.seen"]

[[rules]]
effect = "deny"
agent = "intern-*"
tool = "s.echo"
reason = "Not for interns."

[[rules]]
effect = "ask"
agent = "intern-*"
tool = "s.meta"
"""
LINK = {"uri": "note://hidden"}


@dataclass
class Scene:
    server: Target
    pair: Pair
    folder: Path

    def with_key(self, key: str) -> Target:
        return replace(self.server, api_key=key)


def config_of(folder: Path) -> Path:
    """A server whose tools `echo` and `meta` need no person."""
    free = {"auto_apply": True}
    shared = sharing("s", share="shown", default_tool_meta={}, tool_meta={"echo": free, "meta": free})
    file = folder / "attacked.json"
    file.write_text(json.dumps([shared]))
    return file


def command(folder: Path, url: str, *options: str) -> list[str]:
    rules = folder / "rules.toml"
    rules.write_text(RULES)
    rules.chmod(0o600)
    run = ["env", f"XDG_STATE_HOME={folder / 'state'}", A2C, "computer", "run", "--headless"]
    files = ["--config", str(config_of(folder)), "--rules", str(rules)]
    return [*run, *files, "--url", url, "--office", OFFICE, "--name", "pc", *options]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("who-asks")
    keys = folder / "keys.toml"
    keys.write_text(KEYS)
    keys.chmod(0o600)
    with target(folder, "async", "--keys", str(keys)) as server:
        free = replace(server, api_key="free-key")
        with honest_pair(free) as pair:
            run = command(folder, server.url, "--api-key", "free-key")
            with started(run, folder / "attacked.log") as process:
                process.says("is in office")
                yield Scene(server, pair, folder)


def request_of(tool: str, req_id: str, agent: str = "librarian", **params: Any) -> dict[str, Any]:
    return {
        "agent": agent,
        "req_id": req_id,
        "computer": "pc",
        "tool_name": tool,
        "params": params,
        "timeout": 30,
    }


def outcome(answer: Any) -> Any:
    """How a call was refused; `None` if it was not."""
    (result,) = answer
    return (result.get("meta") or {}).get("outcome") if result["isError"] else None


FORGED = {"name": "librarian", "key": "the librarian", "bound": True}


def forgeries(request: dict[str, Any]) -> Iterator[str]:
    """The same request with a stamp of the client's own, in several spellings and places."""
    text, stamp = json.dumps(request)[1:-1], json.dumps(FORGED)
    for name in ("a2c_from", "a2c\\u005ffrom", "\\u0061\\u0032\\u0063_from"):
        yield f'{{{text},"{name}":{stamp}}}'
        yield f'{{"{name}":{stamp},{text}}}'
        yield f'{{"{name}":{stamp},{text},"{name}":{stamp} }}'
    yield f'{{{text},"meta":{{"a2c_from":{stamp}}}}}'


def test_who_says_that_it_is_another_gets_none_of_its_rules_and_its_own_name_in_the_record(scene: Scene) -> None:
    outcomes: dict[str, list[Any]] = {"planner-key": [], "free-key": []}

    def attack() -> None:
        with member(scene.with_key("planner-key"), "agent", "planner", OFFICE) as planner:
            found = outcomes["planner-key"]
            found.append(outcome(planner.ask("client:tool_call", request_of("s.seen", "lie-0"))))
            for number, text in enumerate(forgeries(request_of("s.seen", "lie"))):
                event = f'["client:tool_call",{text.replace("lie", f"lie-{number + 1}")}]'
                found.append(outcome(planner.ack(planner.emit_text(event))))
        with member(scene.with_key("free-key"), "agent", "librarian", OFFICE) as free:
            outcomes["free-key"].append(outcome(free.ask("client:tool_call", request_of("s.seen", "claim"))))

    scene.pair.unharmed_by(attack, is_long=True)
    assert outcomes == {"planner-key": ["nobody"] * 11, "free-key": ["nobody"]}
    with member(scene.with_key("librarian-key"), "agent", "librarian", OFFICE) as librarian:
        assert outcome(librarian.ask("client:tool_call", request_of("s.seen", "honest", agent="own-id-7"))) is None
    who = {row["req_id"]: (row["agent"], row["key"], row["claimed"]) for row in rows(scene.folder, "honest")}
    assert {who[f"lie-{number}"] for number in range(11)} == {("planner", "the planner", False)}
    assert who["claim"] == ("librarian", "everybody", True)
    assert who["honest"] == ("librarian", "the librarian", False)


T = TypeVar("T")


def soon(look: Callable[[], T]) -> T:
    """What it returns, as soon as that is something."""
    deadline = time.monotonic() + DEADLINE
    while not (found := look()):
        assert time.monotonic() < deadline, "nothing came"
        time.sleep(0.05)
    return found


def rows(folder: Path, last: str) -> list[dict[str, Any]]:
    """The calls of the record, once this one is written."""

    def look() -> list[dict[str, Any]]:
        (file,) = (folder / "state").rglob("*.sqlite")
        with reading(file) as reader:
            found = [{**row.row._asdict(), **row.body} for row in reader.all(RecordQuery(kind="call"))]
        return found if any(row["req_id"] == last for row in found) else []

    return soon(look)


def test_a_repeat_with_the_ids_of_another_agent_does_not_get_its_result(scene: Scene) -> None:
    request = request_of("s.link", "mine", **LINK)
    with member(scene.with_key("librarian-key"), "agent", "librarian", OFFICE) as librarian:
        (given,) = librarian.ask("client:tool_call", request)
        assert not given["isError"]

    def attack() -> None:
        with member(scene.with_key("planner-key"), "agent", "planner", OFFICE) as planner:
            assert outcome(planner.ask("client:tool_call", request)) == "nobody"
        with member(scene.with_key("free-key"), "agent", "librarian", OFFICE) as free:
            assert outcome(free.ask("client:tool_call", request)) == "nobody"

    scene.pair.unharmed_by(attack, is_long=True)
    with member(scene.with_key("librarian-key"), "agent", "librarian", OFFICE) as librarian:
        assert librarian.ask("client:tool_call", request) == [given]


def test_a_link_is_not_for_who_says_that_it_is_the_agent_that_got_it(scene: Scene) -> None:
    request = {"agent": "librarian", "req_id": "read", "computer": "pc", "uri": LINK["uri"]}

    def read(by: Member) -> Any:
        (answer,) = by.ask("client:read_resource", request)
        return answer.get("error", {}).get("code")

    with member(scene.with_key("librarian-key"), "agent", "librarian", OFFICE) as librarian:
        assert outcome(librarian.ask("client:tool_call", request_of("s.link", "linked", **LINK))) is None
        assert read(librarian) is None
    with member(scene.with_key("planner-key"), "agent", "planner", OFFICE) as planner:
        assert read(planner) == 4204
    with member(scene.with_key("free-key"), "agent", "librarian", OFFICE) as free:
        assert read(free) == 4204
    with member(scene.with_key("librarian-key"), "agent", "librarian", OFFICE) as librarian:
        assert read(librarian) is None


def test_another_name_is_no_way_around_a_deny_or_an_ask(scene: Scene) -> None:
    for key, name, expected in (
        ("free-key", "harmless", ["rule", "nobody"]),
        ("planner-key", "planner", [None, None]),
    ):
        with member(scene.with_key(key), "agent", name, OFFICE) as agent:
            calls = [("s.echo", {"text": "x"}), ("s.meta", {})]
            found = [
                outcome(agent.ask("client:tool_call", request_of(tool, f"{name}-{tool}", agent=name, **params)))
                for tool, params in calls
            ]
        assert found == expected, name


def test_a_foreign_server_without_stamps_forges_nobody(tmp_path: Path) -> None:
    answers: list[Any] = []
    sio = socketio.AsyncServer(async_mode="asgi")

    async def join(sid: str, _: Any) -> tuple[bool, None]:
        sio.start_background_task(ask, sid)
        return True, None

    async def ask(sid: str) -> None:
        for number in range(200):  # until its MCP server runs
            request = {**request_of("s.seen", f"forged-{number}"), "a2c_from": FORGED}
            answer = await sio.call("client:tool_call", request, to=sid, namespace="/smcp", timeout=40)
            if (answer["meta"] or {}).get("error_code") != 4001:
                answers.append({"req_id": request["req_id"], "result": answer})
                return
            await sio.sleep(0.1)

    sio.on("connect", lambda *_: None, namespace="/smcp")
    sio.on("server:join_office", join, namespace="/smcp")
    sio.on("*", lambda *_: {}, namespace="/smcp")
    config = uvicorn.Config(socketio.ASGIApp(sio), log_config=None, lifespan="off", ws="websockets-sansio")
    with serving(config) as url, started(command(tmp_path, url), tmp_path / "attacked.log") as process:
        process.says("is in office")
        (answer,) = soon(lambda: answers)
        row = rows(tmp_path, answer["req_id"])[-1]
    assert outcome([answer["result"]]) == "nobody"
    assert (row["agent"], row["claimed"], row.get("key")) == ("librarian", True, None)

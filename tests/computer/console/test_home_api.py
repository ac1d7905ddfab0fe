"""Servers and offices that a page changes: on the computer that runs and in its file, both or neither."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.requests import Request

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.config.files import load_config_files
from a2c_smcp.computer.config.writer import ConfigWriter
from a2c_smcp.computer.console.home_api import HomeAPI
from a2c_smcp.computer.console.limits import CONSOLE_LIMITS
from a2c_smcp.computer.home import ComputerHome
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.errors import RequestTimeoutError
from a2c_smcp.server import APIKeyAuthentication
from tests.computer.console.harness import DEADLINE, Visitor
from tests.computer.console.homes import Door, at_home, flat, forbid_writing, paste, read, with_comments, write
from tests.computer.fakes.computers import FAST, call, names, server, sharing, state, text
from tests.computer.fakes.offices import new_office
from tests.computer.fakes.processes import eventually
from tests.server.conftest import LIMITS
from tests.server.harness import Running, async_server


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(with_comments("a"))
    return path


@asynccontextmanager
async def visited(*files: Path, **options: Any) -> AsyncIterator[tuple[Computer, Visitor]]:
    async with at_home(*files, **options) as (computer, console), Visitor(console.link()) as visitor:
        yield computer, await visitor.enter()


async def send(visitor: Visitor, path: str, **body: Any) -> Any:
    """The answer, or the message of the refusal."""
    answer = await visitor.post(f"/api/{path}", body)
    found = answer.json()
    return found["error"]["message"] if answer.status_code >= 400 else found


def written(file: Path) -> list[str]:
    return [raw["name"] for raw in load_config_files(file).servers]


async def pid(computer: Computer, name: str) -> int:
    return int(json.loads(text(await call(computer, f"{name}.stats")))["pid"])


async def test_a_paste_is_checked_added_started_and_written_and_comments_stay(file: Path) -> None:
    async with visited(file) as (computer, visitor):
        checked = await send(visitor, "check-servers", text=paste("b"))
        assert [(found["name"], found["replaces"]) for found in checked["servers"]] == [("b", False)]
        assert "misbehaving.py normal" in checked["servers"][0]["runs"]
        assert checked["inputs"] == checked["problems"] == []
        before = read(file)
        assert written(file) == ["a"] and state(computer, "a") is ServerState.RUNNING
        assert await send(visitor, "save-servers", text=paste("b")) == {"names": ["b"]}
        assert "b.echo" in names(computer) and written(file) == ["a", "b"]
        assert before.partition("\n  }")[0] in read(file)
        assert (await visitor.get("/api/home")).json() == {"file": str(file), "office_url": None}


@pytest.mark.parametrize(
    "wrap",
    [
        lambda name, entry: f"{json.dumps(name)}: {entry},",
        lambda name, entry: f"// from a README\n{json.dumps(name)}: {entry}",
        lambda name, entry: f'"mcpServers": {{ {json.dumps(name)}: {entry} }}',
        lambda name, entry: f'{{"servers": {{{json.dumps(name)}: {entry},}}}}',
        lambda name, entry: f"{{{json.dumps(name)}: {entry}}}",
        lambda name, entry: f"```json\n{{{json.dumps(name)}: {entry}}}\n```\n",
        lambda name, entry: f'{{"name": {json.dumps(name)}, {entry[1:]}',
    ],
)
async def test_whatever_people_paste_is_understood(file: Path, wrap: Any) -> None:
    async with visited(file, auto_connect=False) as (computer, visitor):
        assert await send(visitor, "save-servers", text=wrap("b", json.dumps(flat("b")))) == {"names": ["b"]}
        assert written(file) == ["a", "b"]
        assert computer.server_config("b") == load_config_files(file).servers[1]


@pytest.mark.parametrize(
    ("pasted", "said"),
    [
        ("", "nothing in it"),
        ("hello", "invalid JSON at line 1"),
        ('{"mcpServers": {}}', "no server in it"),
        ('{"mcpServers": {"b": {}}}', "needs a command or a url"),
        ('{"mcpServers": {"b": {"command": "x", "env": {"K": "***"}}}}', "type the value"),
        ('{"mcpServers": {"b": {"command": "${input:k}"}}}', "no input 'k'"),
        ('[{"id": "k", "type": "promptString"}]', "no server in it"),
        ("[" * 200, "nested too deeply"),
    ],
)
async def test_what_cannot_be_added_says_why_and_changes_nothing(file: Path, pasted: str, said: str) -> None:
    before = read(file)
    async with visited(file, auto_connect=False) as (computer, visitor):
        checked = await send(visitor, "check-servers", text=pasted)
        assert any(said in problem for problem in checked["problems"]), checked
        assert said in await send(visitor, "save-servers", text=pasted)
        assert [status.server for status in computer.statuses] == ["a"] and read(file) == before


async def test_what_a_paste_runs_is_shown_with_nothing_hidden(file: Path) -> None:
    hostile = '{"mcpServers": {"no\u202ete": {"command": "npx", "args": ["safe\u200b", "a b"]}}}'
    remote = '"r": {"url": "https://me:s3cret@h.example/mcp?k=s3cret"}'
    async with visited(file, auto_connect=False) as (_, visitor):
        [found] = (await send(visitor, "check-servers", text=hostile))["servers"]
        assert found == {"name": "no\\u202ete", "replaces": False, "runs": "npx 'safe\\u200b' 'a b'"}
        [found] = (await send(visitor, "check-servers", text=remote))["servers"]
        assert found["runs"] == "https://***@h.example/mcp?***"
        whole = '{"name": "w", "type": "stdio", "server_parameters": {"command": "x", "args": []}}'
        [found] = (await send(visitor, "check-servers", text=whole))["servers"]
        assert found["runs"] == "x"


async def test_a_paste_that_lets_its_tools_run_unasked_or_sets_variables_says_so(file: Path) -> None:
    async with visited(file) as (_, visitor):
        for meta in ({"default_tool_meta": {"auto_apply": True}}, {"tool_meta": {"rm": {"auto_apply": True}}}):
            entry = {"command": "npx", "env": {"NODE_OPTIONS": "--require evil"}, **meta}
            checked = await send(visitor, "check-servers", text=json.dumps({"mcpServers": {"b": entry}}))
            assert checked["problems"] == []
            assert "without asking you" in checked["warnings"][0]
            assert checked["servers"][0]["runs"] == "NODE_OPTIONS=*** npx"


@pytest.mark.parametrize(
    "hostile",
    [
        "```\n" + "`" * 60_000 + "x",
        json.dumps({f"s{number}": {"command": "x"} for number in range(2000)}),
        json.dumps({f"s{number}": {"command": "x", "args": [1] * 300} for number in range(50)}),
    ],
)
async def test_a_hostile_paste_does_not_stop_the_computer(file: Path, hostile: str) -> None:
    async with visited(file) as (_, visitor):
        with anyio.fail_after(DEADLINE):
            assert (await send(visitor, "check-servers", text=hostile))["problems"]


async def test_a_paste_has_a_size(file: Path) -> None:
    async with visited(file, auto_connect=False) as (_, visitor):
        assert "64 KiB" in await send(visitor, "check-servers", text="x" * (CONSOLE_LIMITS.paste_bytes + 1))
        answer = await visitor.post("/api/save-servers", {"text": "x" * (9 * CONSOLE_LIMITS.paste_bytes)})
        assert answer.status_code == 413


async def test_a_server_that_does_not_start_or_whose_tools_clash_is_not_written(file: Path) -> None:
    before = read(file)
    async with visited(file) as (computer, visitor):
        assert "b" in await send(visitor, "save-servers", text=paste("b", "dies-on-start"))
        clash = paste("b", tool_meta={"echo": {"alias": "a.echo"}})
        checked = await send(visitor, "check-servers", text=clash)
        assert checked["warnings"][1:] == ["server 'b': 'a' already has a tool 'a.echo'"]
        assert "duplicated" in await send(visitor, "save-servers", text=clash)
        assert [status.server for status in computer.statuses] == ["a"] and read(file) == before


async def test_a_file_that_cannot_be_written_puts_the_computer_back_as_it_was(file: Path) -> None:
    async with visited(file) as (computer, visitor):
        entry = (await visitor.get("/api/entry?server=a")).json()
        process = await pid(computer, "a")
        config = computer.server_config("a")
        # Somebody else writes while the server starts, which waits for a file.
        go_on = file.with_name("go")
        slow = json.dumps(flat("b", after=go_on))
        async with anyio.create_task_group() as tasks:
            answers: list[Any] = []

            async def save() -> None:
                answers.append(await send(visitor, "save-servers", text=f'"b": {slow}'))

            tasks.start_soon(save)
            await eventually_busy(visitor)
            write(file, read(file) + "// mine\n")
            write(go_on, "")
        assert "changed meanwhile" in answers[0]
        assert [status.server for status in computer.statuses] == ["a"] and read(file).endswith("// mine\n")
        forbid_writing(file)
        saved = await send(visitor, "save-servers", server="a", text=entry["text"] + " ", digest=entry["digest"])
        assert "read-only" in saved
        assert "read-only" in await send(visitor, "remove-server", server="a")
        assert await pid(computer, "a") == process and computer.server_config("a") == config


async def eventually_busy(visitor: Visitor) -> None:
    """A change is under way: another one is refused."""
    with anyio.fail_after(DEADLINE):
        while "under way" not in str(await send(visitor, "remove-server", server="none")):  # noqa: ASYNC110
            await anyio.sleep(0.01)


async def test_a_long_start_is_cancelled_and_nothing_is_left(file: Path) -> None:
    before = read(file)
    async with visited(file) as (computer, visitor), anyio.create_task_group() as tasks:
        answers: list[Any] = []

        async def save() -> None:
            answers.append(await send(visitor, "save-servers", text=paste("b", "silent")))

        tasks.start_soon(save)
        await eventually_busy(visitor)
        await send(visitor, "cancel-save")
        await eventually(lambda: bool(answers))
        assert answers == ["cancelled; nothing was changed"]
        assert [status.server for status in computer.statuses] == ["a"] and read(file) == before
        assert await send(visitor, "save-servers", text=paste("b")) == {"names": ["b"]}


async def test_an_entry_is_edited_without_its_secrets_being_shown(file: Path) -> None:
    write(file, with_comments("a", env={"TOKEN": "s3cret"}))
    async with visited(file) as (computer, visitor):
        answer = await visitor.get("/api/entry?server=a")
        entry = answer.json()
        assert "s3cret" not in answer.text and '"TOKEN": "***"' in entry["text"] and entry["file"] == str(file)
        edited = entry["text"].replace('"auto_apply": true', '"auto_apply": false')
        assert (await send(visitor, "check-servers", server="a", text=edited))["problems"] == []
        assert await send(visitor, "save-servers", server="a", text=edited, digest=entry["digest"]) == {"names": ["a"]}
        assert read(file) == with_comments("a", env={"TOKEN": "s3cret"}).replace(
            '"auto_apply": true', '"auto_apply": false'
        )
        raw = computer.server_config("a")
        assert raw is not None and raw["server_parameters"]["env"] == {"TOKEN": "s3cret"}
        again = await send(visitor, "save-servers", server="a", text=edited, digest=entry["digest"])
        assert "changed meanwhile" in again
        new = edited.replace('"TOKEN"', '"OTHER"')
        assert "type the value" in (await send(visitor, "check-servers", server="a", text=new))["problems"][0]
        broken = edited.replace('"command"', '"comand"')
        assert (
            "did you mean 'command'" in (await send(visitor, "check-servers", server="a", text=broken))["problems"][0]
        )


async def test_a_server_is_removed_from_the_file_and_from_the_computer(file: Path) -> None:
    write(file, with_comments("a", "b"))
    async with visited(file) as (computer, visitor):
        assert await send(visitor, "remove-server", server="b") == {}
        assert [status.server for status in computer.statuses] == ["a"]
        assert written(file) == ["a"] and "// about b" in read(file)
        assert (await visitor.post("/api/remove-server", {"server": "b"})).status_code == 404


async def test_without_a_config_file_a_server_lasts_until_the_computer_stops() -> None:
    async with visited() as (computer, visitor):
        assert (await visitor.get("/api/home")).json()["file"] is None
        assert (await send(visitor, "check-servers", text=paste("b")))["problems"] == []
        assert "--config FILE" in await send(visitor, "save-servers", text=paste("b"))
        assert await send(visitor, "save-servers", text=paste("b"), until_stop=True) == {"names": ["b"]}
        assert "b.echo" in names(computer)
        entry = (await visitor.get("/api/entry?server=b")).json()
        assert entry["file"] is None
        edited = entry["text"].replace('"auto_apply": true', '"auto_apply": false')
        assert await send(visitor, "save-servers", server="b", text=edited, digest=entry["digest"]) == {"names": ["b"]}
        assert await send(visitor, "remove-server", server="b") == {} and computer.statuses == []


async def test_inputs_come_along_and_a_prefix_is_on_the_computer_only(file: Path) -> None:
    definition = {"id": "count", "type": "promptString", "default": "2"}
    entry = flat("b", tool_meta={})
    entry["args"].append("resources=${input:count}")
    pasted = json.dumps({"mcpServers": {"b": entry}, "inputs": [definition]})
    async with visited(file, prefix_tools=True) as (computer, visitor):
        assert (await send(visitor, "check-servers", text=pasted))["inputs"] == ["count"]
        assert await send(visitor, "save-servers", text=pasted) == {"names": ["b"]}
        assert "b_echo" in names(computer) and "tool_prefix" not in read(file)
        assert [found.id for found in load_config_files(file).inputs] == ["count"]
        assert (await send(visitor, "check-servers", text=pasted))["inputs"] == []
        other = pasted.replace('"default": "2"', '"default": "3"')
        assert "another input" in (await send(visitor, "check-servers", text=other))["problems"][0]
        assert "another input" in await send(visitor, "save-servers", text=other)


async def test_an_office_is_joined_and_left_and_a_refusal_does_not_end_the_session(hub: Running) -> None:
    door, office = Door(), new_office()
    with async_server(APIKeyAuthentication(["right"]), LIMITS) as locked:
        async with visited(offices=door) as (computer, visitor):
            wrong = await visitor.post("/api/join-office", {"url": locked.url, "office": office, "key": "wrong"})
            assert wrong.status_code == 400 and wrong.json()["error"]["code"] == 401
            assert await send(visitor, "join-office", url=f" {locked.url} ", office=office, key="right") == {}
            await eventually(lambda: [found.office for found in computer.offices] == [office])
            assert "right" not in (await visitor.get("/api/home")).text
            assert await send(visitor, "join-office", url=hub.url, office=office) == {}
            assert await send(visitor, "leave-office") == {} and computer.offices == ()
            assert "needed" in await send(visitor, "join-office", url=" ", office="lab")
            assert "one line" in await send(visitor, "join-office", url="a\nb", office="lab")


async def test_without_a_door_the_page_is_told_who_joins() -> None:
    async with visited() as (_, visitor):
        assert "program that runs this computer" in await send(visitor, "join-office", url="http://x", office="lab")


async def test_a_clash_of_names_is_told_with_its_servers(file: Path) -> None:
    write(file, with_comments("a").replace('"default_tool_meta"', '"disabled": false, "default_tool_meta"'))
    other = file.with_name("other.json")
    write(other, paste("b", tool_meta={"echo": {"alias": "a.echo"}}))
    async with visited(file, other) as (_, visitor):
        [clash] = (await visitor.get("/api/clashes")).json()["clashes"]
        assert "a.echo" in clash["text"] and set(clash["servers"]) == {"a", "b"}


async def test_what_servers_share_is_told_with_counts(file: Path) -> None:
    write(file, json.dumps({"servers": [sharing("s", share="all"), server("t", share="none")]}))
    async with visited(file) as (computer, visitor):
        expected = {"share": "all", "resources": 5, "templates": 3, "prompts": 2}
        await eventually(lambda: asdict(computer.shared.counts["s"]) == expected)
        found = (await visitor.get("/api/shared")).json()["shared"]
        assert found == {"s": expected, "t": {"share": "none", "resources": 0, "templates": 0, "prompts": 0}}


async def test_a_start_that_takes_too_long_is_given_up_and_leaves_nothing(file: Path) -> None:
    before = read(file)
    config = ConfigWriter([file], file)
    async with Computer("pc", timings=FAST) as computer:
        api = HomeAPI(computer, ComputerHome(config), start_seconds=0.5)
        body = json.dumps({"text": paste("b", "silent")}).encode()

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body}

        scope = {"type": "http", "method": "POST", "headers": [(b"content-type", b"application/json")]}
        [save] = [route.endpoint for route in api.routes if route.path == "/api/save-servers"]
        with pytest.raises(RequestTimeoutError, match="nothing was changed"):
            await save(Request(scope, receive))
        assert computer.statuses == [] and read(file) == before

"""`--console` and `console`: links at a terminal and on stderr that open the page once, and who decides first."""

import re
import shlex
import signal
import socket
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from a2c_smcp.computer.console.qr_codes import qr_text
from tests.certificates import self_signed
from tests.computer.cli.console import Line, console
from tests.computer.cli.test_headless import service, write
from tests.computer.console.harness import Visitor
from tests.computer.fakes.computers import server
from tests.computer.fakes.offices import Agent, new_office
from tests.server.harness import Running, eventually


async def test_a_link_at_the_start_a_fresh_one_at_the_prompt_and_the_first_answer_counts(
    tmp_path: Path, hub: Running
) -> None:
    office, agent = new_office(), Agent()
    config = write(tmp_path / "config.json", server("a", default_tool_meta={}))
    place = ("--url", hub.url, "--office", office, "--name", "pc")
    with console(tmp_path, "--config", config, *place, "--console", "0") as it:
        first = (await anyio.to_thread.run_sync(it.line, "console"))["url"]
        await anyio.to_thread.run_sync(it.line, "joined")
        await agent.join(hub.url, office)
        async with Visitor(first) as visitor, anyio.create_task_group() as tasks:
            await visitor.enter()
            async with visitor.feed() as messages:
                await anext(messages)
                results: list[Any] = []
                tasks.start_soon(_call, agent, results)
                asked = await anyio.to_thread.run_sync(it.line, "confirm_request")
                decision = await _asked(messages)
                assert decision["id"] == asked["decision"] and [row["text"] for row in decision["rows"]] == [["x"]]
                answer = {"id": decision["id"], "digest": decision["digest"], "answer": "yes"}
                assert (await visitor.post("/api/answer", answer)).status_code == 200
                told: Line = await anyio.to_thread.run_sync(it.line, "decision_decided")
                assert (told["outcome"], told["by"]) == ("accepted", "Unknown browser")
                late = await visitor.post("/api/answer", answer)
                assert late.status_code == 400 and "decided already" in late.json()["error"]["message"]
            await eventually(lambda: results)
            assert results[0]["content"][0]["text"] == "x"
        second = (await anyio.to_thread.run_sync(it.enter, "console", "console"))["url"]
        assert second.partition("#")[0] == first.partition("#")[0] and second != first
        await anyio.to_thread.run_sync(it.enter, "quit", "disconnected")
        assert await anyio.to_thread.run_sync(it.ended) == 0
    await agent.disconnect()


async def _call(agent: Agent, results: list[Any]) -> None:
    results.append(await agent.tool("a.echo", text="x"))


async def _asked(messages: Any) -> dict[str, Any]:
    async for message in messages:
        if found := message.get("asked"):
            decision: dict[str, Any] = found[0]
            return decision
    raise AssertionError("nothing was asked")


async def test_the_command_opens_a_console_that_was_not_asked_for_at_the_start(tmp_path: Path) -> None:
    with console(tmp_path) as it:
        it.prompted()
        assert "HOST" in it.enter("console nonsense", "error")["message"]
        assert "TLS" in it.enter("console box.example:1", "error")["message"]
        link = it.enter("console", "console")["url"]
        async with Visitor(link) as visitor:
            await visitor.enter()
        assert "open already" in it.enter("console 0", "error")["message"]
        it.keys("quit\r")
        assert await anyio.to_thread.run_sync(it.ended) == 0


def test_where_another_device_reaches_the_console_the_link_is_a_qr_code_too(tmp_path: Path) -> None:
    certificate = self_signed(tmp_path, "box.example")
    files = ("--console-cert", certificate.cert, "--console-key", certificate.key)
    # This machine by a name that does not look like it: a host that others might reach.
    with console(tmp_path, "--console", "127.1:0", *files) as it:
        link = it.line("console")["url"]
        assert link.startswith("https://127.1:")
        lines = [line.strip() for line in it.seen.splitlines()]
        assert [line.strip() for line in qr_text(link).splitlines() if line.strip() not in lines] == []
        it.keys("quit\r")
        assert it.ended() == 0


async def test_a_port_that_is_taken_now_is_said_and_that_browsers_have_to_be_let_in_again(
    tmp_path: Path, port: int
) -> None:
    with console(tmp_path, "--name", "pc") as it:
        it.prompted()
        assert f":{port}/" in it.enter(f"console {port}", "console")["url"]
        it.keys("quit\r")
        assert await anyio.to_thread.run_sync(it.ended) == 0
    with socket.create_server(("127.0.0.1", port)), console(tmp_path, "--name", "pc", "--console", "0") as it:
        link = it.line("console")["url"]
        assert f":{port}/" not in link and "let in again" in " ".join(it.seen.split())
        it.keys("quit\r")
        assert await anyio.to_thread.run_sync(it.ended) == 0


async def test_a_console_that_can_remember_nothing_says_so_and_works(tmp_path: Path, hub: Running) -> None:
    config = write(tmp_path / "config.json", server("a"))
    place = ("--url", hub.url, "--office", new_office(), "--name", "pc")
    with service("--config", config, *place, "--console", "0", XDG_STATE_HOME=config) as it:
        await it.says("remembers nothing")
        await it.says("has its console at")
        async with Visitor(_links(it.lines)[0]) as visitor:
            assert not (await visitor.get("/api/door")).json()["remembers"]
            await visitor.enter()
        assert it.stop() == 0


async def test_headless_prints_a_link_and_a_fresh_one_for_a_signal(tmp_path: Path, hub: Running) -> None:
    config = write(tmp_path / "config.json", server("a"))
    place = ("--url", hub.url, "--office", new_office(), "--name", "pc")
    with service("--config", config, *place, "--console", "0", XDG_STATE_HOME=str(tmp_path)) as it:
        await it.says("has its console at")
        await it.says("while no page of the console is open")
        await it.says("is in office")
        it.process.send_signal(signal.SIGUSR1)
        await eventually(lambda: len(_links(it.lines)) == 2, 60)
        for link in _links(it.lines):
            async with Visitor(link) as visitor:
                await visitor.enter()
        assert it.stop() == 0
        assert not it.said("Traceback"), it.lines


async def test_headless_one_server_waits_for_its_input_and_the_others_come_and_work(
    tmp_path: Path, hub: Running
) -> None:
    """The input is asked for once a page is there: a command before it waits for the page."""
    gate, office, agent = tmp_path / "open", new_office(), Agent()
    waits = server("waits")
    waits["server_parameters"]["env"] = {"GATE": "${input:gate}", "KEY": "${input:key}"}
    script = f"until [ -e {shlex.quote(str(gate))} ]; do sleep 0.1; done; echo open"
    inputs = [
        {"id": "gate", "type": "command", "command": script, "shell": True},
        {"id": "key", "type": "promptString"},
    ]
    file = tmp_path / "config.json"
    write(file, waits, server("a"), inputs=inputs)
    place = ("--url", hub.url, "--office", office, "--name", "pc")
    with service("--config", str(file), *place, "--console", "0") as it:
        await it.says("has its console at")
        async with Visitor(_links(it.lines)[0]) as visitor:
            await visitor.enter()
            async with visitor.feed() as messages:
                await anext(messages)
                gate.touch()
                decision = await _asked(messages)
                assert decision["input"]["id"] == "key"
                await it.says("is in office")
                await agent.join(hub.url, office)
                await _eventually_works(agent, "a.echo")
                write(file, waits, server("a"), server("late"), inputs=inputs)
                await _eventually_works(agent, "late.echo")
                not_yet = await agent.tool("waits.echo", text="x")
                assert (not_yet["meta"]["error_code"], not_yet["meta"]["starting"]) == (4001, ["waits"])
                answer = {"id": decision["id"], "digest": decision["digest"], "answer": "yes", "value": "v"}
                assert (await visitor.post("/api/answer", answer)).status_code == 200
                await _eventually_works(agent, "waits.echo")
        await agent.disconnect()
        assert it.stop() == 0
        assert not it.said("Traceback"), it.lines


async def _eventually_works(agent: Agent, tool: str) -> None:
    with anyio.fail_after(60):
        while (await agent.tool(tool, text="x"))["content"][0]["text"] != "x":
            pass


def _links(lines: list[str]) -> list[str]:
    return re.findall(r"console at (\S+)", "".join(lines))


def test_an_address_that_cannot_be_used_is_said_before_anything_starts(tmp_path: Path) -> None:
    config = write(tmp_path / "config.json", server("a"))
    for address, said in (("nonsense", "HOST"), ("box.example:1", "TLS"), ("0.0.0.0:1", "give the host name")):
        state = str(tmp_path / "state")
        with service("--config", config, "--office", "o", "--console", address, XDG_STATE_HOME=state) as it:
            assert it.wait() == 1
            assert it.said(said) and not it.said("Traceback"), it.lines

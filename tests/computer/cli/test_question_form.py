"""Questions of MCP servers at a real terminal: fields, refusals, Ctrl-C, and the line that was being typed."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from tests.computer.cli.console import Console, Line, console
from tests.computer.cli.test_repl import met, seen, write
from tests.computer.fakes.computers import asking, server
from tests.server.harness import Running

SCHEMA = {
    "type": "object",
    "properties": {
        "who": {"type": "string", "title": "Your name", "minLength": 2, "description": "As on the \x1b[31mpassport"},
        "share": {"type": "number", "maximum": 1},
        "count": {"type": "integer", "default": 3},
        "colour": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]},
        "sizes": {"type": "array", "items": {"type": "string", "enum": ["s", "m", "l"]}, "minItems": 1},
        "sure": {"type": "boolean", "default": False},
    },
    "required": ["who", "colour", "sizes"],
}
URL = "http://xn--exmple-cua.com/sign-in"


def asker(era: str) -> dict[str, Any]:
    """A server whose tools ask; they are called `ERA.TOOL`."""
    own = {"name": era, "tool_prefix": f"{era}.", "default_tool_meta": {"auto_apply": True}}
    # Not probed: after 2 s without an answer the new one would be asked for the old handshake, which it does not know.
    return {**asking(era), **own, "protocol": {"old": "legacy", "new": "2026-07-28"}[era]}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    folder = tmp_path_factory.mktemp("questions")
    config = write(folder / "config.json", asker("old"), asker("new"), server("a"))
    with console(folder, "--config", config, "--name", "pc", wide=True) as it:
        it.prompted()
        yield it
        it.keys("quit\r")
        assert it.ended() == 0


def asked(it: Console, command: str) -> Line:
    it.keys(command + "\r")
    return it.line("question_request")


def told(it: Console) -> Any:
    return json.loads(it.line("tool_call_result")["result"]["content"][0]["text"])


def typed(it: Console, question: str, answer: str) -> None:
    it.says(question)
    it.keys(answer)


@pytest.mark.parametrize("era", ["old", "new"])
def test_a_form_is_filled_in_field_by_field(shared: Console, era: str) -> None:
    start = len(shared.seen)
    question = asked(shared, f"tools call {era}.ask {json.dumps({'message': 'Who?', 'schema': SCHEMA})}")
    assert (question["server"], question["message"], question["schema"]) == (era, "Who?", SCHEMA)
    assert [call["tool"] for call in question["calls"]] == ["ask"]
    assert question["call"] == question["calls"][0]["req_id"]
    typed(shared, "Answer? y(es), n(o):", "y\r")
    typed(shared, "Your name:", "A\r")
    shared.says("✗ It must have at least 2 characters.")
    typed(shared, "Your name:", "nn-77\r")  # what was typed is there to be changed
    typed(shared, "share:", "2\r")
    shared.says("✗ It must be at most 1.")
    typed(shared, "share:", "\x7f\r")  # left out
    typed(shared, "count:", "\r")  # the default
    typed(shared, "colour:", "blue\r")
    shared.says("✗ Choose one of the options")
    typed(shared, "colour:", "\x7f\x7f\x7f\x7f2\r")
    typed(shared, "sizes:", "1, l\r")
    typed(shared, "sure:", "\x7f\x7fyes\r")
    shared.says("colour: Green")
    typed(shared, "y(es), n(o), e(dit):", "e\r")
    for field in ("Your name", "share", "count", "colour", "sizes"):
        typed(shared, f"{field}:", "\r")
    typed(shared, "sure:", "\x7f\x7f\x7fno\r")
    typed(shared, "y(es), n(o), e(dit):", "y\r")
    content = {"who": "Ann-77", "count": 3, "colour": "g", "sizes": ["s", "l"], "sure": False}
    assert told(shared) == {"action": "accept", "content": content}
    text = shared.seen[start:]
    assert "\x1b[31mpassport" not in text
    assert "As on the \\u001b[31mpassport" in text


def test_what_nobody_sees_in_a_question_is_shown_and_sent_back_as_it_was(shared: Console) -> None:
    start = len(shared.seen)
    field = {"type": "string", "title": "Na\u202eme", "default": "a\u200bb"}
    schema = {"type": "object", "properties": {"who": field}}
    question = json.dumps({"message": "Who\u202e?", "schema": schema})
    asked(shared, f"tools call new.ask {question}")
    typed(shared, "Answer? y(es), n(o)", "y\r")
    typed(shared, "a\\u200bb", "\r")
    shared.says("Na\\u202eme: a\\u200bb")
    typed(shared, "y(es), n(o), e(dit):", "y\r")
    assert told(shared) == {"action": "accept", "content": {"who": "a\u200bb"}}
    text = shared.seen[start:]
    assert "  Who\\u202e?" in text
    assert not {"\u202e", "\u200b"} & set(text)


@pytest.mark.parametrize("era", ["old", "new"])
@pytest.mark.parametrize(
    ("keys", "action"), [("n\r", "decline"), ("\x03", "cancel"), ("\x04", "cancel"), ("perhaps\ry\r", "accept")]
)
def test_a_question_without_fields_is_a_yes_or_a_no(shared: Console, era: str, keys: str, action: str) -> None:
    asked(shared, f"tools call {era}.ask")
    typed(shared, "Answer? y(es), n(o)", keys)
    assert told(shared)["action"] == action


@pytest.mark.parametrize(("keys", "action"), [("\x03", "cancel"), ("Ann\rn\r", "decline")])
def test_a_form_may_be_left_half_way_and_refused_at_its_end(shared: Console, keys: str, action: str) -> None:
    schema = {"type": "object", "properties": {"who": {"type": "string"}}}
    asked(shared, f"tools call new.ask {json.dumps({'schema': schema})}")
    typed(shared, "Answer? y(es), n(o)", "y\r")
    typed(shared, "who:", keys)
    assert told(shared) == {"action": action}


@pytest.mark.parametrize("era", ["old", "new"])
@pytest.mark.parametrize(("keys", "action"), [("y\r", "accept"), ("n\r", "decline"), ("\x03", "cancel")])
def test_a_page_to_visit_is_shown_whole_and_not_opened(shared: Console, era: str, keys: str, action: str) -> None:
    start = len(shared.seen)
    assert asked(shared, f"tools call {era}.visit url={URL}")["url"] == URL
    typed(shared, "Is it done? y(es), n(o)", keys)
    assert told(shared) == {"action": action}
    text = shared.seen[start:]
    for line in (f"  {URL}", "It leads to xn--exmple-cua.com.", "look like other letters", "not encrypted"):
        assert line in text


async def test_a_question_leaves_a_half_typed_line_as_it_was(shared: Console, hub: Running) -> None:
    async with met(shared, hub) as agent:
        shared.keys("tools call a.echo tex")
        await anyio.to_thread.run_sync(shared.says, "tex")
        for answer, action in (("y\r", "accept"), ("n\r", "decline"), ("\x03", "cancel")):
            replies: list[Any] = []

            async def call(replies: list[Any] = replies) -> None:
                replies.append(await agent.tool("old.ask", message="Well?"))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                question = await seen(shared, "question_request")
                assert [call["agent"] for call in question["calls"]] == ["ag"]
                assert 0 < question["seconds"] <= 20
                await anyio.to_thread.run_sync(shared.says, "Answer?")
                shared.keys(answer)
            assert json.loads(replies[0]["content"][0]["text"])["action"] == action
        shared.keys("t=still\r")
        assert (await seen(shared, "tool_call_result"))["result"]["content"][0]["text"] == "still"


async def test_a_server_that_is_killed_while_it_asks_takes_its_form_with_it(tmp_path: Path, hub: Running) -> None:
    config = write(tmp_path / "config.json", asker("old"), server("a"))
    with console(tmp_path, "--config", config, "--name", "pc", wide=True) as it:
        await anyio.to_thread.run_sync(it.prompted)
        pid = int(await anyio.to_thread.run_sync(it.text, "old.pid"))
        async with met(it, hub) as agent:
            it.keys("tools call a.echo tex")
            await anyio.to_thread.run_sync(it.says, "tex")

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(agent.tool, "old.ask")
                question = await seen(it, "question_request")
                await anyio.to_thread.run_sync(it.says, "Answer?")
                os.kill(pid, signal.SIGKILL)
                decided = await seen(it, "decision_decided")
            assert (decided["decision"], decided["outcome"]) == (question["decision"], "withdrawn")
            it.keys("t=still\r")
            assert (await seen(it, "tool_call_result"))["result"]["content"][0]["text"] == "still"


def test_what_was_answered_is_in_no_line_for_programs_and_no_history(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"who": {"type": "string"}}}
    config = write(tmp_path / "config.json", asker("new"))
    with console(tmp_path, "--config", config, "--name", "pc") as it:
        it.prompted()
        asked(it, f"tools call --timeout 30 new.ask {json.dumps({'schema': schema})}")
        typed(it, "Answer? y(es), n(o) within", "y\r")
        typed(it, "who:", "canary-51\r")
        typed(it, "y(es), n(o), e(dit):", "y\r")
        assert told(it)["content"] == {"who": "canary-51"}
        it.enter("history", "history")
        it.enter("servers logs new", "server_logs")
        it.prompted()  # before that, Ctrl-C is a signal
        it.keys("\x1b[A\x1b[A\x1b[A\x1b[A")  # none of the lines before is an answer
        it.keys("\x03quit\r")
        assert it.ended() == 0
    lines = [line for line in it.seen.splitlines() if line.startswith("@a2c") and "tool_call_result" not in line]
    assert lines
    assert "canary-51" not in "".join(lines)
    assert "canary-51" not in (tmp_path / "a2c-smcp" / "history").read_text()

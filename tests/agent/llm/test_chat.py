"""`a2c chat` as people use it: over a pipe and at a terminal, with a service of models on loopback."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio.to_thread
import pexpect
import pytest

from a2c_smcp.agent import LinkOptions
from a2c_smcp.agent import chat as chat_module
from a2c_smcp.smcp import TOOL_CALL_EVENT, WAITING_FOR_PERSON
from a2c_smcp.utils.distribution import install_command
from tests.agent.conftest import MakeComputer
from tests.agent.harness import FakeComputer, a_document, a_tool
from tests.agent.llm.conftest import PIXEL
from tests.forked import A2C, Commands
from tests.models.service import ModelService, Turn
from tests.server.harness import Running, eventually

DEADLINE = 60
#: A terminal is told so when a person may type: pasted text is marked.
PROMPT = "\x1b[?2004h"


@dataclass(frozen=True)
class Setting:
    """The environment of a command that talks to these services."""

    env: dict[str, str]

    def with_service(self, style: str, url: str) -> "Setting":
        more = {"A2C_CHAT_MODEL": "claude-test", "A2C_CHAT_ENDPOINT": url, "ANTHROPIC_API_KEY": "made up"}
        if style == "openai":
            more |= {"A2C_CHAT_MODEL": "test", "A2C_CHAT_ENDPOINT": f"{url}/v1"}
        return Setting({**self.env, **more})


@pytest.fixture
def setting(server: Running, office: str, tmp_path: Path) -> Setting:
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("A2C_", "OPENAI", "ANTHROPIC"))}
    ours = {
        "A2C_URL": server.url,
        "A2C_OFFICE": office,
        "TERM": "xterm",
        "PROMPT_TOOLKIT_NO_CPR": "1",
        "XDG_RUNTIME_DIR": str(tmp_path),
    }
    return Setting({**keep, **ours, "PYTHONUNBUFFERED": "1"})


async def piped(forked: Commands, setting: Setting, text: str, *words: str) -> tuple[int, str, str]:
    def run() -> tuple[int, str, str]:
        done = forked.run(["chat", *words], env=setting.env, stdin=text.encode(), timeout=DEADLINE)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    return await anyio.to_thread.run_sync(run)


async def test_over_a_pipe_the_answer_is_alone_on_stdout(
    forked: Commands, setting: Setting, service: ModelService, make_computer: MakeComputer
) -> None:
    async def answer(data: dict[str, Any]) -> Any:
        base = {"computer": "laptop", "agent": data["agent"], "req_id": data["req_id"]}
        for message in (WAITING_FOR_PERSON, "half\x1b[2J"):
            report = {**base, "progress": 1.0, "total": 2.0, "message": message}
            await computer.peer.emit("server:tool_progress", report)
        if data["params"]:
            return FakeComputer.result(data["params"]["text"])
        return FakeComputer.result("it broke", isError=True, meta={"error_code": 4003})

    computer = await make_computer("laptop")
    computer.override[TOOL_CALL_EVENT] = answer
    calls: tuple[Any, ...] = (("laptop__echo", {"text": "hi there"}), ("laptop__echo", {}))
    service.says(Turn("Let me see.", calls), Turn("It said: hi there."))
    status, said, notes = await piped(forked, setting.with_service("openai", service.url), "What does it say?\n")
    assert (status, said) == (0, "Let me see.\nIt said: hi there.\n"), notes
    assert "→ laptop: echo(text=hi there)" in notes and "← laptop: echo done after" in notes
    assert "laptop: echo waits for the person at laptop" in notes and "laptop: echo: 1 of 2, half" in notes
    assert "laptop: echo failed after" in notes
    assert "tokens: 200 read, 20 written, in 2 requests" in notes
    first, second = service.requests
    assert (first.style, first.streams) == ("openai", True)
    assert "laptop: 1 tools" in str(first.body) and "What does it say?" in str(first.body)
    # The system prompt is the same in every request: it stays in the cache of the service.
    assert first.body["messages"][0] == second.body["messages"][0]


async def test_what_goes_wrong_is_said_and_counts(
    forked: Commands, setting: Setting, service: ModelService, make_computer: MakeComputer
) -> None:
    await make_computer("laptop")
    ready = setting.with_service("openai", service.url)
    service.says(Turn("no such key", status=401))
    status, answer, notes = await piped(forked, ready, "Go.")
    assert (status, answer) == (3, "") and "the service" in notes and "no such key" in notes
    status, _, notes = await piped(forked, ready, "")
    assert status == 1 and "nothing came over the pipe" in notes
    status, _, notes = await piped(forked, ready, "Go.", "--url", "http://127.0.0.1:9")
    assert status == 3 and "a2c chat:" in notes
    no_key = Setting({**setting.env, "A2C_CHAT_MODEL": "test"})
    status, _, notes = await piped(forked, no_key, "Go.")
    assert status == 3 and "OPENAI_API_KEY" in notes
    status, _, notes = await piped(forked, setting, "Go.")
    assert status == 2 and "--model" in notes


def test_without_its_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(chat_module, "find_spec", lambda name: None)
    options = chat_module.ChatOptions(LinkOptions("http://127.0.0.1:1"), "lab", "me", "test")
    assert chat_module.chat(options) == 1
    assert capsys.readouterr().err == f"a2c chat needs openai: {install_command('chat')}\n"
    assert chat_module.chat(replace(options, model="claude-test")) == 1
    assert capsys.readouterr().err.startswith("a2c chat needs anthropic: ")


@pytest.mark.parametrize("style", ["openai", "anthropic"])
async def test_a_service_that_breaks_off_is_a_line_and_no_traceback(
    style: str, forked: Commands, setting: Setting, service: ModelService, make_computer: MakeComputer
) -> None:
    await make_computer("laptop")
    ready = setting.with_service(style, service.url)
    for broken in (Turn("A long answer.", breaks="cut"), Turn("A long answer.", breaks="garbage")):
        service.says(broken)
        status, _, notes = await piped(forked, ready, "Go.")
        assert (status, "the service: " in notes, "Traceback" in notes) == (3, True, False), notes
        assert "/clear" not in notes
    service.says(Turn("this image is no image", status=400))
    status, _, notes = await piped(forked, ready, "Go.")
    assert status == 3 and "begin a new conversation: /clear" in notes


async def test_its_options_reach_the_calls(
    forked: Commands, setting: Setting, service: ModelService, make_computer: MakeComputer
) -> None:
    image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    computer = await make_computer("laptop")
    computer.override[TOOL_CALL_EVENT] = lambda _: FakeComputer.result("", content=[image])
    service.says(Turn(calls=(("laptop__echo", {}),)), Turn("Done."))
    ready = setting.with_service("openai", service.url)
    words = ("--timeout", "7", "--approval-timeout", "70", "--no-images")
    status, said, notes = await piped(forked, ready, "Go.", *words)
    assert (status, said) == (0, "Done.\n"), notes
    [call] = computer.requests(TOOL_CALL_EVENT)
    assert (call["timeout"], call["approval_timeout"]) == (7, 70)
    assert "only text is shown here" in str(service.requests[1].body) and PIXEL not in str(service.requests[1].body)


def test_it_is_short_enough_to_be_read() -> None:
    assert len(Path(chat_module.__file__).read_text("utf-8").splitlines()) < 400


async def test_at_a_terminal(setting: Setting, service: ModelService, make_computer: MakeComputer) -> None:
    computer = await make_computer("laptop", lambda each: each.tools.append(a_tool("slow")))
    computer.documents.append(a_document("Report\nof a stranger"))
    env = setting.with_service("anthropic", service.url).env
    service.says(
        Turn("Slowly.", (("laptop__slow", {}), ("laptop__slow", {}))),
        Turn("\x1b[31mHere I am.", (("laptop__echo", {"text": "again"}),)),
        Turn("Done."),
    )
    terminal = await anyio.to_thread.run_sync(
        lambda: pexpect.spawn(A2C, ["chat"], env=env, encoding="utf-8", timeout=DEADLINE, dimensions=(40, 160))
    )
    try:

        async def says(line: str | None, *expected: str) -> None:
            def run() -> None:
                if line is not None:
                    terminal.send(f"{line}\r")
                for each in expected:
                    terminal.expect_exact(each)

            await anyio.to_thread.run_sync(run)

        await says(None, "/help shows commands", PROMPT)
        await says("/help", "/desktop [NAME]", "Ctrl-C stops its turn", PROMPT)
        await says("/computers", "laptop: 2 tools", PROMPT)
        await says("/desktop", "window://h/main", "hello", PROMPT)
        await says("/find report", "Report  dpe://com.example.docs/report", "Report\\nof a stranger", PROMPT)
        await says("/wrong", "there is no command /wrong", PROMPT)
        await says("Begin.", "Slowly.", "laptop: slow()", "laptop: slow()")
        await eventually(lambda: len(computer.requests(TOOL_CALL_EVENT)) == 2, DEADLINE)
        terminal.sendintr()
        await says(None, "stopped; the tools that ran were cancelled", PROMPT)
        ids = [each["req_id"] for each in computer.requests(TOOL_CALL_EVENT)]
        await eventually(lambda: all(computer.cancelled(each) for each in ids), DEADLINE)
        await says("Go on.", "\\u001b[31mHere I am.", "laptop: echo done", "Done.", PROMPT)
        assert "Your last turn was stopped before its end." in str(service.requests[1].body["messages"])
        await says("/clear", "a new conversation", PROMPT)
        await says("/quit", "tokens: 300 read, 30 written, in 3 requests")
        await anyio.to_thread.run_sync(lambda: terminal.expect(pexpect.EOF))
    finally:
        await anyio.to_thread.run_sync(lambda: terminal.close(force=True))
    assert terminal.exitstatus == 0

"""The person's terminal: what others say may not rule it, hide on it, or turn its words around.

The commands are real, and so is the terminal: what counts is each character that arrives there.
"""

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pexpect
import pytest

from tests.attack.harness import ECHO, target
from tests.attack.processes import A2C, DEADLINE, Started, started
from tests.attack.spellbound_mcp import SPELL
from tests.computer.fakes.computers import server as changing_server

SPELLBOUND = str(Path(__file__).with_name("spellbound_mcp.py"))
DOCUMENT, WINDOW = "dpe://com.example.spells/book", "window://com.example.spells/door"
#: What may not arrive: the start of an OSC, a C1 control, a change of direction, a character of a hidden word.
POWERS = ("\x1b]", "\x9b", "\u202e", "\U000e0072", "\x07")
#: rich takes the bells out of the cells of its tables.
IN_A_TABLE = SPELL.replace("\x07", "")
COMMANDS = {
    ("call", "pc", "say"): "a result",
    ("call", "pc", "say", "--json"): "a result",
    ("call", "pc", "fail"): "a failure",
    ("desktop", "pc"): "a window",
    ("read", "pc", WINDOW): "a window",
    ("read", "pc", DOCUMENT): "a book",
    ("read", "pc", f"{DOCUMENT}/pages/0"): "words",
    ("finder", "pc"): "a book",
    ("tools",): "A description",
    ("tools", "--json"): "A tool",
}


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of an agent in an office with a computer whose MCP server means no good."""
    folder = tmp_path_factory.mktemp("terminals")
    config = {
        "name": "spellbound",
        "type": "stdio",
        "default_tool_meta": {"auto_apply": True},
        "server_parameters": {"command": sys.executable, "args": [SPELLBOUND], "env": {"PYTHONPATH": os.getcwd()}},
    }
    file = folder / "config.json"
    file.write_text(json.dumps([config]))
    with target(folder) as server:
        place = ["--url", server.url, "--office", "o", "--name", "pc"]
        command = [A2C, "computer", "run", "--headless", "--config", str(file), *place]
        with started(command, folder / "computer.log") as computer:
            computer.says("spellbound is running")
            computer.says("is in office")
            clean = {key: value for key, value in os.environ.items() if not key.startswith("A2C_")}
            yield {**clean, "A2C_URL": server.url, "A2C_OFFICE": "o", "TERM": "xterm"}
            log = computer.log.read_text()
            assert not [power for power in POWERS if power in log]


def at_a_terminal(command: Sequence[str], env: dict[str, str], until: str | None = None) -> str:
    """Everything that the terminal of this command got, until its end or until it got this."""
    child = pexpect.spawn(
        A2C, list(command), env=env, encoding="utf-8", timeout=DEADLINE, dimensions=(50, 2000), echo=False
    )
    try:
        child.expect_exact(until or pexpect.EOF)
        return (child.before or "") + (child.after if until else "")
    finally:
        end(child)


def end(child: Any) -> None:
    """End a command at its terminal, however long a busy machine takes for it."""
    if child.isalive():
        child.kill(signal.SIGTERM)
        child.expect(pexpect.EOF)
        child.wait()
    child.close()


def in_a_pipe(command: Sequence[str], env: dict[str, str]) -> str:
    done = subprocess.run([A2C, *command], env=env, capture_output=True, timeout=DEADLINE, check=False)
    return (done.stdout + done.stderr).decode()


@pytest.mark.parametrize(("command", "words"), list(COMMANDS.items()), ids=str)
def test_what_a_computer_says_has_no_power_over_the_terminal(
    env: dict[str, str], command: tuple[str, ...], words: str
) -> None:
    shown = at_a_terminal(("agent", *command), env)
    assert words in shown
    assert not [power for power in POWERS if power in shown], ascii(shown)
    assert "\\u202etxt" in shown


@pytest.mark.parametrize("command", [("call", "pc", "say"), ("desktop", "pc"), ("finder", "pc")], ids=str)
def test_a_person_who_asks_for_it_and_a_pipe_get_every_character(env: dict[str, str], command: tuple[str, ...]) -> None:
    for got in (
        at_a_terminal(("agent", *command, "--raw"), env),
        # Tables are for people, also in a pipe, which may end at a terminal: there they have escapes without --raw.
        in_a_pipe(("agent", *command, *(["--raw"] if "finder" in command else [])), {**env, "COLUMNS": "500"}),
    ):
        assert SPELL in got or IN_A_TABLE in got


def test_who_watches_an_office_is_shown_escapes(env: dict[str, str]) -> None:
    shown = at_a_terminal(("agent", "watch", "--json"), env, until='"Fails."')
    assert not [power for power in POWERS if power in shown], ascii(shown)
    assert "A description" in shown and "\\u202etxt" in shown


def test_names_and_titles_of_files_have_no_power_over_the_terminal(tmp_path: Path, env: dict[str, str]) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / f"[bold]{SPELL}\nno.md").write_text(f"# A title {SPELL}")
    (folder / f"broken{SPELL}.pdf").write_bytes(b"%PDF-1.7 nothing")
    env = {**env, "COLUMNS": "400"}  # in a narrow table a name is folded anywhere
    shown = at_a_terminal(("docs", "check", str(folder)), env)
    assert "[bold]" in shown and "broken" in shown and "A title" in shown
    assert not [power for power in POWERS if power in shown], ascii(shown)
    assert "\\nno.md" in shown
    assert IN_A_TABLE in at_a_terminal(("docs", "check", "--raw", str(folder)), env)
    assert SPELL in in_a_pipe(("docs", "check", "--raw", str(folder)), env)
    assert not [power for power in POWERS if power in in_a_pipe(("docs", "check", str(folder)), env)]
    assert not [power for power in POWERS if power in at_a_terminal(("docs", "check", f"/nowhere{SPELL}"), env)]


@pytest.mark.parametrize("command", [("computer", "validate"), ("doctor", "--config")], ids=str)
def test_what_stands_in_a_config_has_no_power_over_the_terminal(
    tmp_path: Path, env: dict[str, str], command: tuple[str, ...]
) -> None:
    file = tmp_path / f"config{SPELL}.json"
    server = {"command": f"no-such-command{SPELL}", f"key{SPELL}": 1}
    file.write_text(json.dumps({"mcpServers": {"plain": server, f"server{SPELL}": {**server, "type": SPELL}}}))
    shown = at_a_terminal((*command, str(file)), env)
    assert "plain" in shown or "config" in shown
    assert "txt" in shown
    assert not [power for power in POWERS if power in shown], ascii(shown)


# --- what a person says yes to


@pytest.fixture
def person(tmp_path: Path) -> "Iterator[Person]":
    """A person at the terminal of a computer that asks them before it runs a call."""
    config = {
        "name": "echo",
        "type": "stdio",
        "server_parameters": {"command": sys.executable, "args": ["-I", "-S", ECHO]},
    }
    changing = changing_server(
        "changing", default_tool_meta={}, prefixed=False, tool_prefix="c_", tool_meta={"describe": {"auto_apply": True}}
    )
    file = tmp_path / "config.json"
    file.write_text(json.dumps([config, changing]))
    with target(tmp_path) as server:
        clean = {key: value for key, value in os.environ.items() if not key.startswith("A2C_")}
        env = {**clean, "A2C_URL": server.url, "A2C_OFFICE": "o", "XDG_STATE_HOME": str(tmp_path), "TERM": "xterm"}
        it = Person(env, file, tmp_path)
        try:
            yield it
        finally:
            it.leave()


class Person:
    def __init__(self, env: dict[str, str], config: Path, folder: Path) -> None:
        self._env = env
        self._folder = folder
        self._screen = io.StringIO()
        run = ["computer", "run", "--name", "pc", "--config", str(config)]
        self._terminal = pexpect.spawn(A2C, run, env=env, encoding="utf-8", timeout=DEADLINE, dimensions=(50, 100))
        self._terminal.logfile_read = self._screen
        self._terminal.delaybeforesend = None
        self.sees("in office o as pc")

    @property
    def seen(self) -> str:
        return self._screen.getvalue()

    def sees(self, text: str) -> None:
        self._terminal.expect_exact(text)

    def types(self, text: str) -> None:
        self._terminal.send(f"{text}\r")

    def leave(self) -> None:
        end(self._terminal)

    @contextmanager
    def asked(self, tool: str = "echo", **arguments: str) -> Iterator[Started]:
        """An agent calls, and waits; what it hears is in its log."""
        file = self._folder / "arguments.json"
        file.write_text(json.dumps(arguments))
        command = [A2C, "agent", "call", "pc", tool, f"@{file}", "--timeout", "600"]
        place = ["--url", self._env["A2C_URL"], "--office", "o"]
        with started([*command, *place], self._folder / "agent.log") as agent:
            yield agent


def test_a_command_behind_padding_does_not_run_before_it_was_seen(person: Person) -> None:
    with person.asked(text="\n" * 5000 + "rm -rf ~", note="\u202ehsab\U000e0072") as agent:
        person.sees("4,993 more lines")
        person.sees(r"note: \u202ehsab\udb40\udc72")
        person.sees("Run it?")
        person.sees("s(how all)")
        for hasty in ("y", "yes", "a"):
            person.types(hasty)
            person.sees("A part of it was not shown")
            person.sees("Run it?")
        assert agent.alive and "rm -rf" not in person.seen
        for _ in range(5):  # portions of a thousand lines
            person.types("s")
            person.sees("s shows more")
            person.sees("Run it?")
        person.types("s")
        person.sees("rm -rf ~")
        person.sees("That is all of it.")
        person.sees("Run it?")
        person.types("y")
        assert agent.ended() == 0
    assert "rm -rf ~" in agent.log.read_text()
    assert not [power for power in POWERS if power in person.seen]


@pytest.mark.parametrize(("answer", "status"), [("yes!", 0), ("n", 1)])
def test_a_person_may_refuse_unseen_and_has_to_say_so_to_run_unseen(person: Person, answer: str, status: int) -> None:
    with person.asked(text=" " * 5000 + "rm -rf ~") as agent:
        person.sees("s(how all)")
        person.types(answer)
        assert agent.ended() == status


def test_a_tool_that_is_another_one_than_was_always_allowed_is_asked_about_again(person: Person) -> None:
    with person.asked("c_echo", text="hi") as agent:
        person.sees("Run it?")
        person.types("a")
        assert agent.ended() == 0
    with person.asked("c_echo", text="hi again") as agent:
        assert agent.ended() == 0
    with person.asked("c_describe", name="echo", description="Runs it in a shell.") as agent:
        assert agent.ended() == 0
    with person.asked("c_echo", text="rm -rf /") as agent:
        person.sees("Runs it in a shell.")
        person.sees("Run it?")
        assert agent.alive
        person.types("n")
        assert agent.ended() == 1
    assert "rm -rf" not in agent.log.read_text()

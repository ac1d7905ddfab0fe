"""`a2c computer run` at a real terminal. Asserts on `@a2c` lines: the rest is for people, and may change."""

import json
import re
import signal
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from a2c_smcp.server import OpenAuthentication
from tests.computer.cli.console import SMCP_COMPUTER, Console, Line, console, left_over
from tests.computer.fakes.computers import server
from tests.computer.fakes.misbehaving import TOOLS
from tests.computer.fakes.offices import Agent, new_office
from tests.computer.fakes.processes import command, eventually, is_alive
from tests.server.conftest import LIMITS
from tests.server.harness import Running, async_server

CANARY = "canary-7f31"
INPUTS: list[dict[str, Any]] = [
    {"id": "count", "type": "promptString", "description": "How many", "default": "2"},
    {"id": "secret", "type": "promptString", "description": "The secret", "password": True},
    {"id": "colour", "type": "pickString", "options": ["red", "green"]},
]


def write(file: Path, *servers: dict[str, Any], **more: Any) -> str:
    file.write_text(json.dumps({"servers": list(servers), **more}))
    return str(file)


def states(line: Line) -> dict[str, str]:
    return {entry["name"]: entry["state"] for entry in line["servers"]}


def asking(name: str) -> dict[str, Any]:
    """A server whose calls need a confirmation."""
    return server(name, default_tool_meta=None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("repl")


@pytest.fixture(scope="module")
def shared(folder: Path) -> Iterator[Console]:
    """One run for all tests that leave it as they found it."""
    config = write(folder / "config.json", server("a"), asking("ask"), inputs=INPUTS)
    with console(folder, "--config", config, "--name", "pc", A2C_INPUT_NOBODY="1", HOME=str(folder)) as it:
        it.prompted()
        yield it
        it.keys("quit\r")
        assert it.ended() == 0


# --- the six steps of the specification


def test_six_steps_from_start_to_nothing_left(tmp_path: Path) -> None:
    config = write(tmp_path / "config.json", server("a"), server("b", "grandchildren"), inputs=INPUTS)
    with console(tmp_path, "--config", config) as it:
        it.prompted()
        assert states(it.enter("servers list", "server_status")) == {"a": "running", "b": "running"}
        assert [entry["id"] for entry in it.enter("inputs list", "inputs_loaded")["inputs"]] == [
            "count",
            "secret",
            "colour",
        ]
        result = it.enter('tools call a.echo {"text": "hi there"}', "tool_call_result")
        assert result["ok"]
        assert result["result"]["content"] == [{"type": "text", "text": "hi there"}]
        pids = [it.pid("a.stats"), it.pid("b.stats")]
        grandchild = next(line for line in it.enter("servers logs b", "server_logs")["lines"] if "grandchild" in line)
        pids.append(int(grandchild.split()[1]))
        it.keys("quit\r")
        assert it.ended() == 0
        assert left_over(pids) == []


@pytest.mark.parametrize("way", ["exit", "ctrl-d", "ctrl-c", "SIGTERM", "SIGHUP", "SIGINT"])
def test_however_it_ends_no_child_is_left(tmp_path: Path, way: str) -> None:
    with console(tmp_path, "--config", write(tmp_path / "config.json", server("a", "ignores-eof"))) as it:
        it.prompted()
        pid = it.pid("a.stats")
        it.prompted()
        if way.startswith("SIG"):
            it.process.kill(signal.Signals[way])
        else:
            it.keys({"exit": "exit\r", "ctrl-d": "\x04", "ctrl-c": "\x03"}[way])
        assert it.ended() == 0
        assert left_over([pid]) == []
        assert "Traceback" not in it.seen


async def test_a_terminal_that_is_closed_ends_it_too(tmp_path: Path) -> None:
    with console(tmp_path, "--config", write(tmp_path / "config.json", server("a", "ignores-eof"))) as it:
        it.prompted()
        pid = it.pid("a.stats")
        it.process.ptyproc.fileobj.close()
        await eventually(lambda: not is_alive(pid) and not is_alive(it.process.pid), 60)


def test_ctrl_c_during_a_slow_start_ends_it(tmp_path: Path) -> None:
    with console(tmp_path, "--config", write(tmp_path / "config.json", server("a", "silent"))) as it:
        it.line("server_status", lambda line: states(line) == {"a": "starting"})
        it.keys("\x03")
        assert it.ended() == 0
        assert "Traceback" not in it.seen


# --- one test a command


def test_servers_list_prints_a_line_even_without_servers(tmp_path: Path) -> None:
    with console(tmp_path) as it:
        it.prompted()
        assert it.enter("servers list", "server_status") == {"type": "server_status", "servers": [], "all": True}
        assert it.enter("config show", "config")["config"] == {"inputs": [], "servers": {}, "server_info": {}}
        assert it.enter("config reload", "config_checked")["ok"]


def test_servers_stop_start_and_restart(shared: Console) -> None:
    first = shared.pid("a.stats")
    stopped = shared.enter("servers stop a", "server_status", lambda line: line["all"])
    assert states(stopped)["a"] == "stopped"
    assert shared.call("a.echo")["error_code"] == 4003
    assert states(shared.enter("servers start a", "server_status", lambda line: line["all"]))["a"] == "running"
    second = shared.pid("a.stats")
    assert states(shared.enter("servers restart a", "server_status", lambda line: line["all"]))["a"] == "running"
    assert len({first, second, shared.pid("a.stats")}) == 3


def test_the_prompt_says_that_denies_are_gone(tmp_path: Path) -> None:
    config, rules = write(tmp_path / "config.json", server("a")), tmp_path / "rules.toml"
    deny = '[[rules]]\neffect = "deny"\ntool = "{0}"\n'
    rules.write_text(deny.format("a") + deny.format("b"))
    with console(tmp_path, "--config", config, "--rules", str(rules)) as it:
        it.prompted()
        rules.write_text('[[rules]]\neffect = "allow"\nargs.to = {glob = "*@example.com"}\n')
        told = it.line("rules_changed")
        assert told["outcome"] == "gone" and told["says"].startswith("2 denies are gone from the rules file")
        listed = it.enter("rules list", "rules")
        assert listed["gone"] == "2 denies are gone from the rules file"
        assert "did you mean 'mail'?" in listed["rules"][0]["warnings"][0]


def test_servers_add_and_remove(shared: Console, folder: Path) -> None:
    file = folder / "server.json"
    file.write_text(f"// as --config reads it\n[{json.dumps(server('added'))},]")
    assert states(shared.enter(f"servers add @{file}", "server_status", lambda line: line["all"]))["added"] == "running"
    assert shared.text("added.echo", "text=x") == "x"
    gone = shared.enter("servers remove added", "server_status", lambda line: line["all"])
    assert "added" not in states(gone)
    assert shared.enter("servers remove added", "error")["code"] == 404
    parameters = json.dumps(server("typed")["server_parameters"])
    typed = f"servers add name=typed type=stdio disabled=true server_parameters={parameters}"
    assert states(shared.enter(typed, "server_status", lambda line: line["all"]))["typed"] == "disabled"
    shared.enter("servers remove typed", "server_status", lambda line: line["all"])
    assert shared.enter('servers add {"name": "bad"}', "error")["code"] == 400


def test_servers_add_takes_the_snippet_of_a_readme(shared: Console) -> None:
    program, arguments = command("normal")
    entry = {"command": program, "args": arguments, "tool_prefix": "new_", "disabled": True}
    snippet = json.dumps({"mcpServers": {"new": entry, "other": {**entry, "type": "stdio"}}}, indent=2)
    # As a terminal hands over what is pasted: several lines that are one.
    shared.keys(f"servers add \x1b[200~{snippet}\x1b[201~\r")
    added = states(shared.line("server_status", lambda line: line["all"]))
    assert (added["new"], added["other"]) == ("disabled", "disabled")
    for name in ("new", "other"):
        shared.enter(f"servers remove {name}", "server_status", lambda line: line["all"])
    fragment = json.dumps({"new": {**entry, "disabled": False}})
    shared.enter(f"servers add {fragment}", "server_status", lambda line: line["all"])
    assert shared.text("new_echo", "text=x") == "x"
    shared.enter("servers remove new", "server_status", lambda line: line["all"])
    refused = shared.enter('servers add {"mcpServers": {"new": {"url": "${input:nobody}"}}}', "error")
    assert "nobody" in refused["message"]


def test_servers_add_takes_words(shared: Console) -> None:
    program, arguments = command("normal")
    words = f"servers add name=typed command={program} args={json.dumps(arguments)} disabled=true"
    assert states(shared.enter(words, "server_status", lambda line: line["all"]))["typed"] == "disabled"
    shared.enter("servers remove typed", "server_status", lambda line: line["all"])


def test_servers_logs(shared: Console) -> None:
    line = shared.enter("servers logs a --lines 1", "server_logs")
    assert line["server"] == "a"
    assert len(line["lines"]) == 1
    assert shared.enter("servers logs nobody", "error")["code"] == 404


def test_tools_list(shared: Console) -> None:
    assert {"a.echo", "ask.echo"} <= set(shared.enter("tools list", "tool_list_changed")["tools"])


def test_tools_call_takes_values_in_every_form_and_shows_failures(shared: Console, folder: Path) -> None:
    file = folder / "params.json"
    file.write_text('{"text": "from a file"}')
    assert shared.text("a.echo", f"@{file}") == "from a file"
    assert shared.text("a.echo", "text='a b'") == "a b"
    assert shared.text("ask.echo", "text=mine") == "mine"  # who types it has confirmed it
    assert shared.call("a.fail")["ok"] is False
    assert shared.call("nothing")["error_code"] == 4001
    assert shared.call("a.ecoh")["error_code"] == 4001
    assert "; did you mean 'a.echo'?" in shared.seen
    late = shared.enter("tools call --timeout 0.2 a.sleep seconds=60", "tool_call_result")
    assert late["error_code"] == 4004


def test_a_call_shows_how_far_it_is_and_prints_lines_for_programs(shared: Console) -> None:
    # For as long as it takes to be seen: a busy computer may show nothing of a call of two seconds.
    shared.keys("tools call a.report steps=2 seconds=600 message=拷贝文件\r")
    shared.shows(r"a\.report  \d+ s  ██")
    shared.says("拷贝文件")
    shared.keys("\x03")
    assert shared.line("error")["message"] == "interrupted"

    shared.keys("tools call a.report steps=40 seconds=2 message=拷贝文件\r")
    line = shared.line("tool_call_progress", lambda line: line["total"] == 40)
    assert (line["tool"], line["message"]) == ("a.report", "拷贝文件")
    while line["progress"] != 40:
        line = shared.line("tool_call_progress")
    result = shared.line("tool_call_result")
    assert (result["ok"], result["req_id"]) == (True, line["req_id"])
    assert shared.text("a.echo", "text=quick") == "quick"


def test_a_call_that_reports_nothing_shows_for_how_long_it_runs_and_ctrl_c_ends_it(shared: Console) -> None:
    shared.keys("tools call a.sleep seconds=60\r")
    shared.shows(r"a\.sleep  [1-9]\d* s")
    shared.keys("\x03")
    assert shared.line("error")["message"] == "interrupted"


def test_a_long_message_stays_on_its_line(shared: Console) -> None:
    shared.keys(f"tools call a.report steps=2 seconds=600 message={'宽' * 100}\r")
    shared.shows(r"a\.report  \d+ s  [^\r\n]*宽")
    shared.keys("\x03")
    assert shared.line("error")["message"] == "interrupted"
    frames = [part for part in shared.seen.split("\r\x1b[K") if re.search(r"a\.report  \d+ s  .*宽", part)]
    assert frames
    assert max(part.partition("\n")[0].count("宽") for part in frames) < 40


def test_tools_list_shows_server_and_parameters(shared: Console) -> None:
    shared.keys("tools list\r")
    # First: a change that is told late has a line of the same type, and no table.
    shared.shows(r"a\.echo +a +text +text → text")
    listed = shared.line("tool_list_changed")
    assert listed["servers"]["a.echo"] == "a"
    assert listed["servers"]["ask.echo"] == "ask"


def test_an_image_can_be_saved(shared: Console, folder: Path) -> None:
    file = folder / "shot.png"
    result = shared.enter(f"tools call --save {file} a.picture", "tool_call_result")
    assert result["saved"] == [str(file)]
    assert file.read_bytes() == b"picture"
    assert "image/png, 7 bytes" in shared.seen
    assert shared.enter(f"tools call --save {file} a.echo text=no", "tool_call_result")["ok"]
    assert "nothing is saved" in shared.line("error")["message"]
    for words in ("--save ~nosuchuser/x a.picture", "a.echo @~nosuchuser/x"):
        assert "home folder is unknown" in shared.enter(f"tools call {words}", "error")["message"]


def test_tools_conflicts(shared: Console) -> None:
    assert shared.enter("tools conflicts", "tool_conflicts")["conflicts"] == []
    shared.keys("tools call a.add_tool name=ask.echo\r")
    # The server announces the tool while it still answers the call: either may be said first.
    assert shared.lines("tool_call_result", "error")["error"]["details"]["tool_name"] == "ask.echo"
    conflicts = shared.enter("tools conflicts", "tool_conflicts")["conflicts"]
    assert conflicts == [{"tool": "ask.echo", "servers": ["ask", "a"]}]
    shared.call("a.remove_tool", "name=ask.echo")


def test_a_clash_at_the_start_is_a_conflict_too(tmp_path: Path) -> None:
    # The earlier one wins if it is there within 5 s; here however long it takes.
    (tmp_path / "patient.py").write_text(
        "from a2c_smcp.computer.computer import Computer\n"
        "from a2c_smcp.computer.mcp_clients.connection_options import Timings\n"
        "def make(name, **options):\n"
        "    return Computer(name, timings=Timings(order=60), **options)\n"
    )
    config = write(tmp_path / "config.json", server("a", prefixed=False), server("b", prefixed=False))
    arguments = ("--config", config, "--computer-factory", "patient:make")
    with console(tmp_path, *arguments, PYTHONPATH=str(tmp_path)) as it:
        assert states(it.line("server_status", lambda line: line["all"])) == {"a": "running", "b": "failed"}
        it.prompted()
        conflicts = it.enter("tools conflicts", "tool_conflicts")["conflicts"]
        assert conflicts == [{"tool": tool, "servers": ["a", "b"]} for tool in TOOLS]
        assert "--prefix-tools" in it.seen


def test_prefix_tools_lets_servers_with_the_same_tools_run_side_by_side(tmp_path: Path) -> None:
    config = write(tmp_path / "config.json", server("a", prefixed=False), server("b", prefixed=False, tool_prefix="x-"))
    with console(tmp_path, "--config", config, "--prefix-tools") as it:
        assert states(it.line("server_status", lambda line: line["all"])) == {"a": "running", "b": "running"}
        it.prompted()
        assert it.text("a_echo", "text=hello") == it.text("x-echo", "text=hello") == "hello"
        assert it.enter("config reload", "config_checked")["ok"]
        assert it.text("a_echo", "text=hello") == "hello"


def test_inputs_load_add_and_remove(shared: Console, folder: Path) -> None:
    file = folder / "inputs.json"
    file.write_text('[{"id": "loaded", "type": "promptString"}]')
    ids = [entry["id"] for entry in shared.enter(f"inputs load ~/{file.name}", "inputs_loaded")["inputs"]]
    assert ids == ["count", "secret", "colour", "loaded"]
    added = shared.enter("inputs add id=typed type=promptString default=5", "inputs_loaded")["inputs"][-1]
    assert (added["id"], added["default"], added["has_value"]) == ("typed", "5", False)
    assert shared.enter("inputs add id=typed type=promptString", "error")["code"] == 400
    shared.enter("inputs remove typed", "inputs_loaded")
    left = shared.enter("inputs remove loaded", "inputs_loaded")["inputs"]
    assert [entry["id"] for entry in left] == ["count", "secret", "colour"]


def test_inputs_value_set_get_list_and_clear(shared: Console) -> None:
    assert shared.enter("inputs value set count 7", "input_values")["values"] == {"count": "7"}
    assert shared.enter("inputs value set colour green", "input_values")["values"] == {"colour": "green"}
    assert shared.enter("inputs value get count", "input_values")["values"] == {"count": "7"}
    assert shared.enter("inputs value list", "input_values")["values"] == {"count": "7", "colour": "green"}
    assert shared.enter("inputs value set colour blue", "error")["code"] == 400
    assert shared.enter("inputs value clear count", "input_values")["values"] == {"colour": "green"}
    assert shared.enter("inputs value get count", "error")["code"] == 400
    assert shared.enter("inputs value clear", "input_values")["values"] == {}


def test_a_password_is_typed_hidden_and_shown_nowhere(shared: Console, folder: Path) -> None:
    shared.keys("inputs value set secret\r")
    shared.says("The secret (secret):")
    shared.keys(f"{CANARY}\r")
    assert shared.line("input_values")["values"] == {"secret": "***"}
    assert shared.enter("inputs value get secret", "input_values")["values"] == {"secret": "***"}
    assert CANARY not in json.dumps(shared.enter("config show", "config"))
    assert CANARY not in shared.seen
    inline = f'inputs value set secret "{{{CANARY}"'
    assert shared.enter(inline, "input_values")["values"] == {"secret": "***"}
    assert "inputs value set secret *****" in shared.seen, "its characters show as stars"
    assert CANARY not in shared.seen
    shared.enter("inputs value clear", "input_values")
    file = folder / "a2c-smcp" / "history"
    assert CANARY not in file.read_text()
    assert "config show" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_desktop_list_and_show(shared: Console) -> None:
    # Lists that are being read are waited for, and after 2 s no more.
    shared.until(lambda line: "window://fake/0" in line["windows"], "desktop list", "desktop_updated", _has_windows)
    assert len(shared.enter("desktop list --size 1", "desktop_updated", _has_windows)["windows"]) == 1
    shown = shared.enter("desktop show window://fake/1", "window")
    assert shown["desktop"] == "window://fake/1\n\nwindow 1"
    assert shared.enter("desktop show window://fake/none", "error")["code"] == 404
    # What changes before the computer has subscribed is not told.
    shared.until(_watches_window_1, "tools call a.stats", "tool_call_result")
    shared.keys('tools call a.set_resource {"uri": "window://fake/1", "text": "new"}\r')
    assert shared.lines("tool_call_result", "desktop_updated")["desktop_updated"]["windows"] is None


def _watches_window_1(line: Line) -> bool:
    return "window://fake/1" in json.loads(line["result"]["content"][0]["text"])["watched"]


def _has_windows(line: Line) -> bool:
    return line["windows"] is not None


def test_finder_list_and_show(shared: Console) -> None:
    assert shared.enter("finder list", "finder_updated", _has_documents)["total_count"] == 0
    document = {"title": "Plans", "file_type": "md", "keywords": ["budget"], "page_count": 1}
    params = json.dumps({"uri": "dpe://fake/plans", "text": json.dumps(document)})
    shared.keys(f"tools call a.set_resource {params}\r")
    assert shared.lines("tool_call_result", "finder_updated")["finder_updated"]["documents"] is None
    # A document that is being read is waited for, and after 3 s no more.
    found = shared.until(lambda line: line["total_count"] == 1, "finder list BUDGET", "finder_updated", _has_documents)
    assert [entry["uri"] for entry in found["documents"]] == ["dpe://fake/plans"]
    assert shared.enter("finder list --type pdf", "finder_updated", _has_documents)["total_count"] == 0
    shown = shared.enter("finder show dpe://fake/plans", "document")
    assert json.loads(shown["contents"][0]["text"]) == document
    assert shared.enter("finder show dpe://fake/none", "error")["code"] == 4201
    assert shared.enter("finder show window://fake/0", "error")["code"] == 4204
    shared.keys("tools call a.remove_resource uri=dpe://fake/plans\r")
    shared.lines("tool_call_result", "finder_updated")


def _has_documents(line: Line) -> bool:
    return line["documents"] is not None


def test_history(shared: Console) -> None:
    shared.call("a.echo", "text=remembered")
    last = shared.enter("history", "history")["calls"][-1]
    assert (last["server"], last["tool"], last["parameters"]) == ("a", "echo", {"text": "remembered"})
    assert last["success"]


def test_config_show_and_validate(shared: Console, folder: Path) -> None:
    assert set(shared.enter("config show", "config")["config"]["servers"]) == {"a", "ask"}
    assert shared.enter("config validate", "config_checked") == {
        "type": "config_checked",
        "ok": True,
        "problems": [],
        "warnings": [],
    }
    wrong = write(folder / "wrong.json", {**server("a"), "nonsense": 1})
    checked = shared.enter(f"config validate ~/{Path(wrong).name}", "config_checked")
    assert not checked["ok"]
    assert "nonsense" in checked["problems"][0]


def test_config_reload_takes_over_what_the_files_say(shared: Console, folder: Path) -> None:
    file = folder / "config.json"
    before = file.read_text()
    write(file, server("a"), asking("ask"), server("late"), server("dead", "dies-on-start"), inputs=INPUTS)
    checked = shared.enter("config reload", "config_checked")
    assert "dead" in checked["problems"][0]
    listed = states(shared.enter("servers list", "server_status", lambda line: line["all"]))
    assert listed.pop("dead") != "running", "it is kept, and tried again"
    assert listed == {"a": "running", "ask": "running", "late": "running"}
    file.write_text("{")
    assert not shared.enter("config reload", "config_checked")["ok"]
    file.write_text(before)
    assert shared.enter("config reload", "config_checked")["ok"]
    assert set(states(shared.enter("servers list", "server_status", lambda line: line["all"]))) == {"a", "ask"}


def test_help_and_typos(shared: Console) -> None:
    assert len(shared.enter("help", "help")["commands"]) > 30
    (described,) = shared.enter("help tools call", "help")["commands"]
    assert described["name"] == "tools call"
    assert "'servers list'" in shared.enter("servers lits", "error")["message"]
    assert shared.enter("tools call a.echo {", "error")["code"] == 400


def test_connect_join_leave_and_disconnect(shared: Console, hub: Running) -> None:
    office = new_office()
    assert shared.enter("join nowhere", "error")["code"] == 4103
    shared.keys(f"connect --url {hub.url} --office {office} --name desk\r")
    assert shared.line("connected")["url"] == hub.url
    assert shared.line("joined") == {"type": "joined", "office": office, "name": "desk", "again": False}
    status = shared.enter("status", "status")
    assert (status["name"], status["url"], status["office"], status["joined"]) == ("desk", hub.url, office, True)
    assert shared.enter("leave", "left")["office"] == office
    assert shared.enter("leave", "error")["code"] == 4103
    assert shared.enter(f"join {office}", "joined")["office"] == office
    assert shared.enter("disconnect", "disconnected")["final"]
    assert shared.enter("disconnect", "error")["code"] == 4103
    assert shared.enter("status", "status")["url"] is None


def test_connect_remembers_what_is_left_out(shared: Console, hub: Running) -> None:
    office = new_office()
    shared.enter(f"connect --url {hub.url} --office {office} --name desk", "joined")
    shared.enter("disconnect", "disconnected")
    assert shared.enter("connect", "joined") == {"type": "joined", "office": office, "name": "desk", "again": False}
    # One that fails leaves everything as it was, the connection that stands included.
    assert shared.enter("connect --url http://127.0.0.1:1 --office x --name y", "error")["code"] == 0
    status = shared.enter("status", "status")
    assert (status["name"], status["url"], status["office"], status["joined"]) == ("desk", hub.url, office, True)
    shared.enter("disconnect", "disconnected")
    assert shared.enter("connect --url http://127.0.0.1:1", "error")["code"] == 0
    assert shared.enter("connect --name pc", "joined")["office"] == office
    # Who left an office does not want to be back in it.
    shared.enter("leave", "left")
    shared.enter("disconnect", "disconnected")
    shared.enter("connect", "connected")
    assert not shared.enter("status", "status")["joined"]
    shared.enter("disconnect", "disconnected")


def test_the_office_of_the_command_line_is_remembered_when_the_server_was_not_there(
    tmp_path: Path, hub: Running
) -> None:
    with console(tmp_path, "--url", "http://127.0.0.1:1", "--office", "lab-of-the-command-line", "--name", "pc") as it:
        assert it.line("error")["code"] == 0
        it.prompted()
        assert it.enter(f"connect --url {hub.url}", "joined")["office"] == "lab-of-the-command-line"


def test_a_server_that_goes_is_tried_for_until_disconnect(shared: Console) -> None:
    with async_server(OpenAuthentication(), LIMITS) as gone:
        shared.enter(f"connect --url {gone.url} --office o", "joined")
    assert not shared.line("disconnected")["final"]
    status = shared.enter("status", "status")
    assert (status["url"], status["office"], status["joined"]) == (None, "o", False)
    assert shared.enter("disconnect", "disconnected")["final"]


def test_tab_completes(shared: Console) -> None:
    shared.keys("tools call a.ec")
    shared.says("a.ec")
    shared.keys("\t")
    shared.says("ho")
    shared.keys(" \t")
    shared.says("text=")
    shared.keys("tab\r")
    assert shared.line("tool_call_result")["result"]["content"][0]["text"] == "tab"


# --- others at the same terminal


async def test_events_leave_a_half_typed_line_intact(shared: Console, hub: Running) -> None:
    async with met(shared, hub) as agent:
        shared.keys("tools call a.echo tex")
        await anyio.to_thread.run_sync(shared.says, "tex")
        for number in range(20):
            await agent.tool("a.add_tool", name=f"event-{number}")
            await seen(shared, "tool_list_changed", lambda line, n=number: f"event-{n}" in line["tools"])
        shared.keys("t=intact\r")
        result = await seen(shared, "tool_call_result")
        assert result["result"]["content"][0]["text"] == "intact"
        for number in range(20):
            await agent.tool("a.remove_tool", name=f"event-{number}")
            # Read, because a terminal that nobody reads fills up, and then the computer waits for it.
            await seen(shared, "tool_list_changed", lambda line, n=number: f"event-{n}" not in line["tools"])


async def test_a_call_that_needs_it_is_confirmed_there_and_then(shared: Console, hub: Running) -> None:
    async with met(shared, hub) as agent:
        shared.keys("tools call a.echo tex")
        await anyio.to_thread.run_sync(shared.says, "tex")
        for answer, code in (("n wrong folder\r", 4005), ("yes but\ry\r", None), ("\x03", 4005)):
            asked, replied = await ask(shared, agent, answer)
            assert (asked["agent"], asked["server"], asked["tool"]) == ("ag", "ask", "echo")
            assert asked["params"] == {"text": "sure"}
            assert 0 < asked["seconds"] <= 20
            assert (replied["meta"] or {}).get("error_code") == code
            assert code is None or "the person refused" in replied["content"][0]["text"]
            assert (replied["meta"] or {}).get("reason") == ("wrong folder" if answer.startswith("n") else None)
        await ask(shared, agent, "a\r")
        assert (await agent.tool("ask.echo", text="always"))["content"][0]["text"] == "always"
        shared.keys("t=still\r")  # the line that was being typed all along
        assert (await seen(shared, "tool_call_result"))["result"]["content"][0]["text"] == "still"


async def test_no_answer_within_the_deadline_says_so_and_is_no_refusal(shared: Console, hub: Running) -> None:
    async with met(shared, hub) as agent:
        unanswered = await agent.tool("ask.stats", 1)
        assert unanswered["meta"] == {"error_code": 4005, "outcome": "unanswered"}
        assert "nobody answered in time" in unanswered["content"][0]["text"]
        await anyio.to_thread.run_sync(shared.says, "Nobody answered in time: stats is not run.")
        assert shared.text("a.echo", "text=on") == "on"


async def ask(shared: Console, agent: Agent, answer: str) -> tuple[Line, Any]:
    """What is asked when the agent calls, and what the agent gets when this is the answer."""
    replies: list[Any] = []

    async def call() -> None:
        replies.append(await agent.tool("ask.echo", text="sure"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        asked = await seen(shared, "confirm_request")
        await anyio.to_thread.run_sync(shared.says, "Run it?")
        shared.keys(answer)
    return asked, replies[0]


async def seen(shared: Console, kind: str, matches: Any = lambda _: True) -> Line:
    return await anyio.to_thread.run_sync(shared.line, kind, matches)


class met:  # noqa: N801
    """An agent in an office with the shared run."""

    def __init__(self, shared: Console, hub: Running) -> None:
        self._shared = shared
        self._hub = hub
        self._agent = Agent()

    async def __aenter__(self) -> Agent:
        office = new_office()
        await self._agent.join(self._hub.url, office)
        self._shared.keys(f"connect --url {self._hub.url} --office {office} --name pc\r")
        await seen(self._shared, "joined")
        return self._agent

    async def __aexit__(self, *_: object) -> None:
        await self._agent.disconnect()
        self._shared.keys("disconnect\r")
        await seen(self._shared, "disconnected")


# --- how it is started


@pytest.mark.parametrize(
    ("command", "option", "variable", "has_lines"),
    [
        (["a2c", "computer"], "", "", False),
        (["a2c", "computer"], "--json-lines", "", True),
        (["a2c", "computer"], "", "1", True),
        (["a2c", "computer"], "--no-json-lines", "1", False),
        (["a2c-computer"], "", "", False),
        (["smcp-computer"], "", "0", False),
    ],
)
def test_lines_for_programs_are_not_on_a_persons_screen(
    tmp_path: Path, command: list[str], option: str, variable: str, has_lines: bool
) -> None:
    program, *rest = command
    started = (str(Path(SMCP_COMPUTER).with_name(program)), *rest)
    environment = {"A2C_JSON_LINES": variable} if variable else {}
    with console(tmp_path, *filter(None, [option]), command=started, **environment) as it:
        it.prompted()
        it.keys("status\r")
        it.says("protocol")
        it.keys("quit\r")
        assert it.ended() == 0
        assert ("@a2c" in it.seen) is has_lines


def test_url_office_and_name_may_come_from_the_environment(tmp_path: Path, hub: Running) -> None:
    office = new_office()
    with console(tmp_path, A2C_URL=hub.url, A2C_OFFICE=office, A2C_NAME="from-the-environment") as it:
        assert it.line("connected")["url"] == hub.url
        joined = it.line("joined")
        assert (joined["office"], joined["name"]) == (office, "from-the-environment")


async def test_a_missing_input_is_asked_for_while_the_office_is_joined_and_the_other_servers_work(
    tmp_path: Path, hub: Running
) -> None:
    config, office = server("a", resources="${input:count}"), new_office()
    config["server_parameters"]["env"] = {"SECRET": "${input:secret}"}
    file = write(tmp_path / "config.json", config, server("b"), inputs=INPUTS)
    agent = Agent()
    with console(tmp_path, "--config", file, "--url", hub.url, "--office", office, "--name", "pc") as it:
        boot = it.line("server_status", lambda line: line["all"])
        assert states(boot) == {"a": "starting", "b": "running"}
        assert boot["servers"][0]["reason"] == "waits for input 'count'"
        await agent.join(hub.url, office)
        try:
            assert (await agent.tool("b.echo", text="on"))["content"][0]["text"] == "on"
            not_yet = await agent.tool("a.echo", text="on")
            assert (not_yet["meta"]["error_code"], not_yet["meta"]["starting"]) == (4001, ["a"])
            it.keys("\x7f3\r")
            it.says("The secret (secret):")
            it.keys(f"{CANARY}\r")
            it.line("server_status", lambda line: states(line) == {"a": "running"})
            it.prompted()
            assert (await agent.tool("a.echo", text="on"))["content"][0]["text"] == "on"
        finally:
            await agent.disconnect()
        it.until(lambda line: len(line["windows"]) == 3 + 2, "desktop list", "desktop_updated", _has_windows)
        assert CANARY not in it.seen


def test_history_is_kept_between_runs_and_lines_for_programs_can_be_left_out(tmp_path: Path) -> None:
    with console(tmp_path) as it:
        it.prompted()
        it.enter("status", "status")
        it.keys("\x04")
        assert it.ended() == 0
    with console(tmp_path, "--no-json-lines") as it:
        it.prompted()
        it.keys("\x1b[A\r")
        it.says("protocol")
        it.prompted()  # before that, Ctrl-C is a signal
        it.keys("half a line\x03quit\r")  # Ctrl-C drops what was typed
        assert it.ended() == 0
        assert "@a2c" not in it.seen


def test_servers_start_when_told_and_a_factory_makes_the_computer(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from a2c_smcp.computer.computer import Computer\n"
        "def make(name, *, inputs, mcp_servers, auto_connect, auto_reconnect):\n"
        "    options = dict(mcp_servers=mcp_servers, auto_connect=auto_connect, auto_reconnect=auto_reconnect)\n"
        "    return Computer(name + '-made', inputs=inputs, **options)\n"
    )
    config = write(tmp_path / "config.json", server("a"), server("mute", "silent"))
    arguments = ["--config", config, "--name", "pc", "--no-auto-connect", "--computer-factory", "mine:make"]
    with console(tmp_path, *arguments, PYTHONPATH=str(tmp_path)) as it:
        assert states(it.line("server_status", lambda line: line["all"])) == {"a": "stopped", "mute": "stopped"}
        assert it.enter("status", "status")["name"] == "pc-made"
        assert states(it.enter("servers start a", "server_status", lambda line: line["all"]))["a"] == "running"

        it.enter("servers start mute", "server_status", lambda line: states(line) == {"mute": "starting"})
        it.keys("\x03")  # ends the command, and nothing else
        assert it.line("error")["message"] == "interrupted"
        left = it.enter("servers list", "server_status", lambda line: line["all"])
        assert states(left) == {"a": "running", "mute": "stopped"}


async def test_a_server_that_dies_says_so_while_nobody_types(tmp_path: Path) -> None:
    config = write(tmp_path / "config.json", server("a"))
    with console(tmp_path, "--config", config, "--no-auto-reconnect") as it:
        it.prompted()
        pid = it.pid("a.stats")
        it.keys("tools call a.crash\r")
        assert it.line("server_status", lambda line: not line["all"])["servers"][0]["state"] == "failed"
        await eventually(lambda: not is_alive(pid))


def test_a_log_that_is_sent_elsewhere_goes_there_and_not_to_the_screen(tmp_path: Path) -> None:
    config, log = write(tmp_path / "config.json", server("a")), tmp_path / "log"
    redirected = ("/bin/sh", "-c", f'exec "{SMCP_COMPUTER}" "$@" 2>"{log}"', "sh")
    with console(tmp_path, "--config", config, "--log-level", "info", command=redirected) as it:
        it.prompted()
        it.keys("quit\r")
        assert it.ended() == 0
    assert "INFO" in log.read_text()
    assert "INFO" not in it.seen

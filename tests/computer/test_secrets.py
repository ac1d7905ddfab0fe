"""No resolved secret shows. Whoever adds a place where one could show adds it here."""

import contextlib
import logging
import os
import pprint
import socket
import traceback
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.config.files import load_config_files
from a2c_smcp.computer.inputs import BaseInputResolver, InputResolver, InputStore
from a2c_smcp.computer.mcp_clients.masking import config_view
from a2c_smcp.computer.mcp_clients.model import MCPServerInput, StdioServerConfig, parse_input, wire_server
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.errors import SMCPError
from a2c_smcp.results import to_wire
from tests.computer.fakes.computers import FAST, call, recorded, server

#: Of this process: where the same tests run beside these, their processes have it in their arguments.
CANARY = f"canary-9c1f-{os.getpid()}-secret"

INPUTS = [
    parse_input({"id": "typed", "type": "promptString", "password": True, "default": CANARY + "-default"}),
    parse_input({"id": "env", "type": "promptString"}),
    parse_input({"id": "cmd", "type": "command", "command": "cat secret.txt"}),
]
IDS = [definition.id for definition in INPUTS]

STDIO = {
    "name": "local",
    "type": "stdio",
    "server_parameters": {
        "command": "run",
        "args": [f"--{input_id}=${{input:{input_id}}}" for input_id in IDS],
        "env": {"TYPED": "${input:typed}", "PLAIN": CANARY + "-in-the-file"},
        "cwd": "${input:typed}",
    },
    "tool_meta": {"t": {"alias": "${input:typed}", "extra": ["${input:cmd}"]}},
}
HTTP = {
    "name": "remote",
    "type": "streamable",
    "server_parameters": {
        "url": f"https://me:{CANARY}@host/${{input:typed}}?key={CANARY}",
        "headers": {"Authorization": "Bearer ${input:env}", "X-Key": CANARY + "-in-the-file"},
    },
}
#: Each goes wrong only once a value is in its place.
WRONG = [
    {**STDIO, "disabled": "${input:typed}"},
    {**STDIO, "server_parameters": "${input:typed}"},
    {**STDIO, "server_parameters": {"command": "run", "args": "${input:typed}", "encoding": "${input:cmd}"}},
    {**STDIO, "protocol": "${input:env}", "tool_meta": "${input:typed}", "forbidden_tools": "${input:cmd}"},
    {**HTTP, "server_parameters": {"url": "${input:typed}", "timeout": "${input:cmd}", "headers": "${input:env}"}},
    {**HTTP, "server_parameters": {"url": "ftp://${input:typed}", "nonsense": "${env:A2C_INPUT_ENV}"}},
    {**HTTP, "type": "sse", "server_parameters": {"url": "http://h:${input:typed}", "timeout": "${input:cmd}"}},
]


class Person(BaseInputResolver):
    async def resolve(self, definition: MCPServerInput) -> str:
        return f"{CANARY}-typed"


@pytest.fixture
def resolver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> InputResolver:
    caplog.set_level(logging.DEBUG)
    (tmp_path / "secret.txt").write_text(f"{CANARY}-cmd\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("A2C_INPUT_ENV", f"{CANARY}-env")
    return InputResolver(InputStore(INPUTS), Person())


def clean(*seen: Any) -> None:
    for thing in seen:
        assert CANARY not in (thing if isinstance(thing, str) else f"{thing!r} {thing} {pprint.pformat(thing)}")


async def test_a_rendered_config_holds_the_secrets_and_shows_none(
    resolver: InputResolver, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    local, remote = await resolver.config(STDIO), await resolver.config(HTTP)
    assert isinstance(local, StdioServerConfig)
    assert local.server_parameters.args == [f"--{input_id}={CANARY}-{input_id}" for input_id in IDS]
    assert CANARY in str(wire_server(remote))
    logging.getLogger("a2c_smcp.test").info("started %s and %r", local, remote)
    clean(local, remote, local.server_parameters, remote.server_parameters, local.tool_meta, [local, remote])
    clean(resolver, caplog.text, *capfd.readouterr())


async def test_get_config_shows_no_secret_before_or_after_it_is_known(resolver: InputResolver) -> None:
    for _ in range(2):
        clean(config_view([STDIO, HTTP], INPUTS))
        await resolver.config(STDIO)


@pytest.mark.parametrize("raw", WRONG)
async def test_an_error_shows_no_secret(
    resolver: InputResolver, raw: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(SMCPError) as caught:
        await resolver.config(raw)
    error = caught.value
    try:
        raise error
    except SMCPError:
        logging.getLogger("a2c_smcp.test").exception("could not start")
    clean(error, error.payload(), error.tool_call_payload(), error.reason(), error.details, caplog.text)
    clean("".join(traceback.format_exception(error)))


async def test_a_file_with_secrets_in_it_shows_none(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    file.write_text(f'{{"mcpServers": {{"a": {{"command": "run", "env": {{"K": "{CANARY}"}}}}}}}}')
    clean(load_config_files(file))


def command_lines() -> list[str]:
    lines = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it may have ended meanwhile
            lines.append(process.read_text(errors="replace"))
    return lines


async def test_the_process_list_shows_no_secret(resolver: InputResolver, tmp_path: Path) -> None:
    """While a command runs, neither its arguments nor its environment tell the values of other inputs."""
    await resolver.config(STDIO)
    started, finish = tmp_path / "started", tmp_path / "finish"
    os.mkfifo(started)
    os.mkfifo(finish)
    script = f"echo $$ > {started}; read line < {finish}"
    definition = parse_input({"id": "slow", "type": "command", "command": script, "shell": True})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(InputResolver(InputStore([definition])).resolve, "slow")
        with anyio.fail_after(20):
            pid = int(await anyio.to_thread.run_sync(started.read_text, abandon_on_cancel=True))
            lines = await anyio.to_thread.run_sync(command_lines)
            environment = await anyio.Path(f"/proc/{pid}/environ").read_text()
            await anyio.to_thread.run_sync(finish.write_text, "go on\n", abandon_on_cancel=True)
    assert any(str(started) in line for line in lines)
    assert "PATH=" in environment
    clean(environment, *lines)


def unused_url() -> str:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        return f"127.0.0.1:{reserved.getsockname()[1]}"


async def test_a_computer_shows_no_secret_whatever_becomes_of_its_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG, "a2c_smcp")  # what mcp says at DEBUG is not ours, nor shown by our commands
    (tmp_path / "secret.txt").write_text(f"{CANARY}-cmd\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("A2C_INPUT_ENV", f"{CANARY}-env")
    secretive = {"env": {"TYPED": "${input:typed}", "PLAIN": CANARY}}
    good, dies = server("good"), server("dies", "dies-on-start")
    for config in (good, dies):
        config["server_parameters"] |= secretive
        config["server_parameters"]["args"].append("--key=${input:cmd}")
    unreachable = {**HTTP, "server_parameters": {**HTTP["server_parameters"]}}  # type: ignore[dict-item]
    unreachable["server_parameters"]["url"] = f"http://me:{CANARY}@{unused_url()}/${{input:env}}?key=${{input:typed}}"  # type: ignore[index]
    bad_command = {**server("bad"), "server_parameters": {"command": "${input:typed}", "cwd": "${input:typed}"}}
    wrong = {**WRONG[3], "name": "wrong"}
    configs = [good, dies, unreachable, bad_command, wrong]
    computer = Computer("pc", inputs=INPUTS, mcp_servers=configs, input_resolver=Person(), timings=FAST)
    clean(computer, computer.get_config())
    async with recorded(computer) as record, computer:
        assert [status.server for status in computer.statuses if status.state is ServerState.RUNNING] == ["good"]
        results = [await call(computer, tool) for tool in ("good.crash", "dies.echo", "good.broken", CANARY[:6])]
        await record.reached("good", ServerState.RUNNING, 2)
        for config in configs[1:]:
            with pytest.raises(SMCPError) as caught:
                await computer.add_or_update_server(config)
            clean(caught.value, caught.value.payload())
        computer.inputs.set_value("typed", CANARY + "-other")
        clean(*map(to_wire, results), computer.get_config(), computer.statuses, record.events, *computer.history)
        clean(computer, computer.inputs)
    clean(caplog.text, *capfd.readouterr())

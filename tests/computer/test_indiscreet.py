"""A server that quotes its own secrets whenever it can: everybody reads what was written in the config."""

import logging
import sys
import time
from pathlib import Path

import pytest

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.mcp_clients.model import parse_input
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.computer.resources.shown import ResourceTimings
from a2c_smcp.errors import SMCPError
from a2c_smcp.smcp import GET_CONFIG_EVENT, READ_RESOURCE_EVENT
from tests.computer.fakes.computers import FAST, recorded, server
from tests.computer.fakes.offices import watched
from tests.computer.fakes.processes import eventually
from tests.server.harness import Running

SCRIPT = str(Path(__file__).parent / "fakes" / "indiscreet.py")
CONFIG = {
    "name": "indiscreet",
    "type": "stdio",
    "protocol": "legacy",
    "default_tool_meta": {"auto_apply": True},
    "server_parameters": {
        "command": sys.executable,
        "args": ["-I", "-S", SCRIPT, "--token=${input:argument}"],
        "env": {"TOKEN": "Bearer ${input:token}", "PIN": "8831", "PLAIN": "canary-in-the-file"},
    },
}
SECRETS = ("canary-4711", "canary-4712", "8831", "canary-in-the-file")
SHOWN = "${input:argument} Bearer ${input:token} *** ***"
INPUTS = [
    parse_input({"id": "argument", "type": "promptString", "description": "", "default": "canary-4711"}),
    parse_input({"id": "token", "type": "promptString", "description": "", "default": "canary-4712"}),
]


@pytest.fixture(autouse=True)
def _nothing_was_said_before() -> None:
    """A line that mcp has logged in the test before, within a second, would be left out."""
    for each in logging.getLogger("client").filters:
        each.__init__()  # type: ignore[misc]


def clean(*seen: object) -> None:
    for thing in seen:
        for secret in SECRETS:
            assert secret not in repr(thing)
            assert secret[:7] not in repr(thing)


async def test_what_a_server_quotes_of_its_config_is_shown_as_written(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "a2c_smcp")
    # What is not listed or subscribed to in time is not refused by the server.
    patient = ResourceTimings(list=30, subscribe=30)
    computer = Computer("c", mcp_servers=[CONFIG], inputs=INPUTS, timings=FAST, resource_timings=patient)
    began = time.monotonic()
    async with recorded(computer) as record, computer:
        leak = await computer.execute_tool("1", "leak", {}, timeout=20)
        with pytest.raises(SMCPError) as caught:
            await computer.read_resource("window://indiscreet/one")
        assert await computer.get_desktop() == []
        died = await computer.execute_tool("2", "die", {}, timeout=20)
        status = await record.reached("indiscreet", ServerState.BACKING_OFF)
        await record.reached("indiscreet", ServerState.RUNNING, 2)
        await eventually(lambda: len(computer.server_logs("indiscreet")) >= 5)
        clean(leak, died, caught.value, caught.value.details, status, record.events, computer.history)
        clean(computer.server_logs("indiscreet"), computer.statuses)
        assert f"refused for {SHOWN}" in repr(leak)
        assert f"refused for {SHOWN}" in repr(caught.value.details)
        assert f"stderr: started with {SHOWN}" in (status.reason or "")
        assert f"started with {SHOWN}" in computer.server_logs("indiscreet")
        assert f"refused for {SHOWN}" in computer.server_logs("indiscreet")
    clean(caplog.text)
    wrong = [record for record in caplog.records if "Failed to validate notification" in record.getMessage()]
    assert wrong
    assert len(wrong) < 10 + time.monotonic() - began  # one a second of those that say the same
    assert "Traceback" not in caplog.text
    assert f"a tool for {SHOWN}" in caplog.text
    for told in ("resources/subscribe failed", "could not be read", "tool call 1 failed", "is backing_off"):
        assert told in caplog.text


async def test_an_error_of_megabytes_is_cut_wherever_it_is_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "a2c_smcp")
    async with Computer("c", mcp_servers=[CONFIG], inputs=INPUTS, timings=FAST) as computer:
        result = await computer.execute_tool("1", "shout", {"size": 10_000_000}, timeout=30)
        assert result.is_error
        for told in (repr(result), repr(computer.history), caplog.text):
            assert f"refused for {SHOWN}xxx" in told
            assert "x" * 1500 in told
        assert len(repr(result)) < 3000
        assert max(len(record.getMessage()) for record in caplog.records) < 3000


async def test_inner_addresses_stay_in_the_computer_and_its_log(hub: Running, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "a2c_smcp")
    said = "http://bob:canary-4713@10.1.2.3:5432/x [::1]:6379"
    kept = said.replace("canary-4713", "***")  # its log keeps addresses, and no password
    shown = "http://***@***/x ***"
    config = {**CONFIG, "server_parameters": {**CONFIG["server_parameters"], "env": {}}}  # type: ignore[dict-item]
    config["server_parameters"]["args"] = ["-I", "-S", SCRIPT, f"--token={said}"]  # type: ignore[index]
    options = {"auto_reconnect": False, "resource_timings": ResourceTimings(list=30, subscribe=30)}
    async with watched(hub.url, config, server("b"), **options) as (agent, computer):
        failed = await agent.tool("leak")
        assert (failed["isError"], failed["meta"]["error_code"]) == (True, 4003)
        assert f"refused for {shown}" in failed["content"][0]["text"]
        unread = (await agent.ask(READ_RESOURCE_EVENT, uri="window://indiscreet/one"))["error"]
        assert f"refused for {shown}" in unread["details"]["mcp_message"]
        local = await computer.execute_tool("1", "leak", {}, timeout=20)
        assert kept in repr(local), "the person at the computer reads it"
        logged = [record.getMessage() for record in caplog.records if kept in record.getMessage()]
        assert any("tool call" in line for line in logged)
        assert any("a read failed" in line for line in logged)
        # What a tool answers is content, and so is what it answers when it fails.
        assert (await agent.tool("b.echo", text=said))["content"][0]["text"] == said
        died = await agent.tool("die")
        await eventually(lambda: any(status.state is ServerState.FAILED for status in computer.statuses))
        config_now = await agent.ask(GET_CONFIG_EVENT)
        assert f"started with {shown}" in config_now["server_info"]["indiscreet"]["reason"]
        down = await agent.tool("leak")
        assert (down["meta"]["error_code"], down["meta"]["state"]) == (4003, "failed")
        assert f"started with {shown}" in down["meta"]["reason"]
        unknown = await agent.tool("nothing")
        assert f"started with {shown}" in unknown["meta"]["down"]["indiscreet"]
        for answer in (failed, unread, died, config_now["server_info"], down, unknown):
            assert not [word for word in ("canary", "10.1.2.3", "6379") if word in repr(answer)]
        assert any(kept in status.reason for status in computer.statuses if status.reason)

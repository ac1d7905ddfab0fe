"""Who asks, from the server's stamp to the rules; and the stamp goes nowhere else."""

import json
import logging
from typing import Any

import pytest

from a2c_smcp.agent import text_of
from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.rules.rule import parse_rules
from a2c_smcp.server.auth import Credentials
from a2c_smcp.server.offices import Grant
from a2c_smcp.smcp import EVENTS, STAMP_FIELD, Kind
from a2c_smcp.testing import office
from tests.computer.fakes.computers import sharing
from tests.computer.fakes.offices import watched
from tests.server.harness import Running
from tests.server.test_scenarios import request_for

#: What requests need. Each takes what it knows.
FIELDS: dict[str, Any] = {
    "mcp_server": "s",
    "name": "plain",
    "ref": {"type": "ref/prompt", "name": "greet"},
    "argument": {"name": "who", "value": "a"},
    "blob_handle": "x",
    "blob": "",
    "chunk_offset": 0,
    "eof": True,
}


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


class NamedBySeat:
    """Lets everybody in, and binds one name."""

    async def authenticate(self, _: Credentials) -> Grant:
        return Grant(name="the key", names=("librarian", "pc"))


async def test_a_stamp_reaches_no_mcp_server_no_log_and_no_agent(
    hub: Running, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "a2c_smcp")
    async with watched(hub.url, sharing("s", share="all")) as (agent, computer):
        answers: list[Any] = []
        for event, row in EVENTS.items():
            if row.kind is not Kind.RELAY:
                continue
            request = {**FIELDS, **request_for(event), "agent": "own-id", "computer": "pc", "uri": "note://one"}
            answers.append(await agent.call(event, request, timeout=30))
            answers.append(await agent.call(event, {**request, "req_id": 5}, timeout=30))
        told = await agent.tool("s.meta")
        seen = await agent.tool("s.seen")
        assert not told["isError"] and not seen["isError"]
        assert STAMP_FIELD not in json.dumps([answers, told, seen, agent.received])
        assert computer.ended_calls[-1].call.asker == Asker("ag", office=agent.office)
    assert len(answers) > 20 and STAMP_FIELD not in caplog.text


async def test_in_a_lab_a_name_is_claimed_as_at_a_server_without_keys() -> None:
    async with office(mcp_servers=[add], agent="librarian") as lab:
        pc = lab.computers["pc"].computer
        pc.decisions.rules.use_config(rules({"effect": "deny", "agent": "intern"}))
        result = await lab.agent.call_tool("pc", "add", {"a": 1, "b": 2})
        assert result.is_error and (result.meta or {})["outcome"] == "rule"
        assert pc.ended_calls[-1].call.asker == Asker("librarian", office="lab")


async def test_in_a_lab_with_keys_a_name_is_bound() -> None:
    async with office(mcp_servers=[add], agent="librarian", auth=NamedBySeat()) as lab:
        pc = lab.computers["pc"].computer
        pc.decisions.rules.use_config(
            rules({"effect": "deny", "agent": "intern"}, {"effect": "allow", "agent": "librarian"}, {"effect": "deny"})
        )
        assert text_of(await lab.agent.call_tool("pc", "add", {"a": 1, "b": 2})) == "3"
        assert pc.ended_calls[-1].call.asker == Asker("librarian", "the key", True, "lab")


async def test_a_program_that_has_no_server_asks_as_nobody() -> None:
    async with office(mcp_servers=[add], agent=None) as lab:
        pc = lab.computers["pc"].computer
        pc.decisions.rules.use_config(rules({"effect": "deny", "agent": "intern"}, {"effect": "deny", "key": "x"}))
        assert text_of(await pc.execute_tool("r", "add", {"a": 1, "b": 2})) == "3"
        assert pc.ended_calls[-1].call.asker is None


def rules(*written: dict[str, Any]) -> Any:
    parsed, problems = parse_rules(list(written))
    assert not problems
    return parsed

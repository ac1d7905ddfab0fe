"""A hostile MCP server and a hostile agent against the rules and the record of a computer: the rules decide in time and
never too much, and the record stays whole and has every call.
"""

import json
import time
from pathlib import Path
from typing import Any

from a2c_smcp.agent import AsyncSMCPAgentClient
from a2c_smcp.record.queries import RecordQuery
from a2c_smcp.record.reading import reading
from a2c_smcp.results import ERROR_CODE_MARKER
from tests.attack.harness import honest_pair, target
from tests.attack.processes import A2C, started
from tests.attack.test_mcp_servers import hostile

RULES = """
[[rules]]
effect = "deny"
args.path = {under = "/srv/secret"}

[[rules]]
effect = "deny"
args."/opts/force" = {equals = true}

[[rules]]
effect = "deny"
args.text = {glob = "*a*a*a*a*a*a*a*a*b"}

[[rules]]
effect = "allow"
tool = "lie"
"""


def deep(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


#: The arguments, and whether a rule denies them.
CALLS: list[tuple[dict[str, Any], bool]] = [
    ({}, False),
    ({"path": "/srv/secret/key"}, True),
    ({"path": "/srv/./x/../secret/key"}, True),
    ({"path": "secret/key"}, True),  # nobody knows where that leads
    ({"path": ["/srv/secret/key"]}, True),
    ({"path": "/srv/secret\0"}, True),
    ({"path": "/tmp/" + "x/" * 2000}, False),
    ({"opts": '{"force": true}'}, True),
    ({"opts": {"force": True}}, True),
    ({"text": "a" * 60_000}, False),
    ({"text": "a" * 60_000 + "b"}, True),
    ({"text": "a" * 70_000}, True),  # too large to look at
    ({"number": 2**80, "half": "\ud800", "deep": deep(80)}, False),
    ({"password": "hunter2", "nested": {"api_key": "hunter2"}}, False),
]


async def test_lies_and_odd_arguments_end_neither_the_rules_nor_the_record(tmp_path: Path) -> None:
    rules, config = tmp_path / "rules.toml", tmp_path / "attacked.json"
    rules.write_text(RULES)
    config.write_text(json.dumps([hostile("lies")]))
    state = ["env", f"XDG_STATE_HOME={tmp_path / 'state'}"]
    run = [*state, A2C, "computer", "run", "--headless", "--config", str(config), "--rules", str(rules)]
    with target(tmp_path) as server, honest_pair(server) as pair:
        place = ["--url", server.url, "--office", "attacked", "--name", "pc"]
        with started([*run, *place], tmp_path / "attacked.log") as process:
            process.says("is in office")
            async with AsyncSMCPAgentClient(server.url, name="agent", live=False) as agent:
                await agent.join_office("attacked")
                began = time.monotonic()
                denied = []
                for arguments, _ in CALLS * 3:
                    result = await agent.call_tool("pc", "lie", arguments, timeout=30)
                    assert result.meta is not None
                    denied.append(result.meta[ERROR_CODE_MARKER] == 4005)
                assert time.monotonic() - began < 30
            assert denied == [expected for _, expected in CALLS * 3]
        assert not pair.watch(lambda: None, at_least=3).failures
    (file,) = (tmp_path / "state").rglob("*.sqlite")
    with reading(file) as reader:
        rows = list(reader.all(RecordQuery(kind="call")))
        assert [row.row.code == 4005 for row in rows] == denied
        assert not list(reader.all(RecordQuery(kind="lost")))
        assert reader.check().problems == ()
    assert "hunter2" not in str(rows)

"""A hostile MCP server and a hostile agent against the rules and the record of a computer: the rules decide in time and
never too much, what they decide on is what the tool gets, and the record stays whole and has every call.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from a2c_smcp.agent import AsyncSMCPAgentClient
from a2c_smcp.record.queries import RecordQuery
from a2c_smcp.record.reading import reading
from a2c_smcp.results import ERROR_CODE_MARKER
from tests.attack.harness import HERE, honest_pair, target
from tests.attack.processes import A2C, started
from tests.attack.test_mcp_servers import hostile
from tests.attack.test_members import member

PARROT = str(HERE / "parrot_mcp.py")
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


# --- what goes into a pipe

FORBIDDEN = """
[[rules]]
effect = "deny"
args.path = {under = "/srv/secret"}

[[rules]]
effect = "deny"
args.name = {glob = "*\ufffd*"}
"""
#: A request of its own, if it came to stand in a line of its own.
SMUGGLED = (
    '{"jsonrpc":"2.0","id":9999,"method":"tools/call","params":{"name":"parrot","arguments":{"path":"/srv/secret"}}}'
)
QUOTED = json.dumps(SMUGGLED)[1:-1]

#: The text of `params` as it is sent, and whether the tool is called. Of two equal keys the last one counts.
TEXTS: list[tuple[str, bool]] = [
    ('{"path":"/tmp/a"}', True),
    ('{\n"path"\r\n:\t"/tmp/a"\n\n}\n', True),
    (f'{{"text":"a\\n{QUOTED}\\n"}}', True),
    (f'{{"a\\n{QUOTED}\\r\\n":1}}', True),
    (f'{{"text":"\u2028{QUOTED}\u2029\u0085{QUOTED}"}}', True),
    (f'{{"text":"\\u000a\\u000d{QUOTED}\\u000b\\u001e\\u2028"}}', True),
    ('{"path":"/srv/secret/key"}', False),
    ('{"name":"half \\ud800"}', False),  # this tool would get U+FFFD
    ('{"name":"half \\ud83d\\ude00"}', True),
    ('{"path":"/tmp/a","path":"/srv/secret/key"}', False),
    ('{"path":"/srv/secret/key","path":"/tmp/a"}', True),
    ('{"path":"/srv/secret/key","\\u0070ath":"/tmp/b"}', True),
    ('{"path":"/tmp/a","p\\u0061th":"/srv/secret/key"}', False),
]
#: These are no JSON, so nobody answers them.
BROKEN = [
    f'{{"text":"a\n{QUOTED}\n"}}',
    f'{{"path":"/tmp/a"}}\n{SMUGGLED}\n',
    f'{{"path":"/tmp/a"\n}}}}\n{SMUGGLED}\n',
    '{"path":"/tmp/a\x00"}',
]


def test_no_text_of_an_agent_becomes_a_line_of_its_own_or_is_read_in_two_ways(tmp_path: Path) -> None:
    rules, config, pipe = tmp_path / "rules.toml", tmp_path / "parrot.json", tmp_path / "pipe"
    rules.write_text(FORBIDDEN)
    command = {"command": sys.executable, "args": ["-I", "-S", PARROT, str(pipe)]}
    meta = {"default_tool_meta": {"auto_apply": True}, "forbidden_tools": ["parrot"]}
    config.write_text(json.dumps([{"name": "parrot", "type": "stdio", "server_parameters": command, **meta}]))
    state = ["env", f"XDG_STATE_HOME={tmp_path / 'state'}"]
    run = [*state, A2C, "computer", "run", "--headless", "--config", str(config), "--rules", str(rules)]
    with target(tmp_path) as server:
        place = ["--url", server.url, "--office", "attacked", "--name", "pc"]
        with started([*run, *place], tmp_path / "attacked.log") as process:
            process.says("is in office")
            with member(server, "agent", "a", "attacked") as agent:
                tools = agent.ask("client:get_tools", {"agent": "a", "req_id": "t", "computer": "pc"})[0]["tools"]
                assert [tool["name"] for tool in tools] == ["repeat"]
                called = []
                for number, (text, _) in enumerate(TEXTS):
                    for broken in BROKEN[number : number + 1]:  # a few: who sends more of them is disconnected
                        agent.emit_text(_call(f"broken-{number}", f'"params":{broken}'))
                    odd = f'"params":{{"path":"/srv/secret"}},\n"meta":{{"x\\n{QUOTED}":"\\n{QUOTED}"}},"params":{text}'
                    for name, rest in ((f"{number}", f'"params":{text}'), (f"{number}-twice", odd)):
                        said = agent.ack(agent.emit_text(_call(name, rest)))[0]
                        called.append(None if said["isError"] else json.loads(said["content"][0]["text"]))
    wanted = [json.loads(text) if is_called else None for text, is_called in TEXTS for _ in range(2)]
    assert called == wanted
    lines = [json.loads(line) for line in pipe.read_bytes().splitlines()]
    sent = [line["params"] for line in lines if line["method"] == "tools/call"]
    assert [params["arguments"] for params in sent] == [value for value in wanted if value is not None]
    assert {params["name"] for params in sent} == {"repeat"}
    assert len({line["id"] for line in lines if "id" in line}) == len([line for line in lines if "id" in line])


def _call(req_id: str, rest: str) -> str:
    head = f'"agent":"a","req_id":"{req_id}","computer":"pc","tool_name":"repeat","timeout":30'
    return f'["client:tool_call",{{{head},{rest}}}]'

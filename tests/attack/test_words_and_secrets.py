"""Secrets in the arguments of calls, and strangers who speak in the name of others: the secrets stay out of everything
that is kept, logged or told on, and nobody's words pass for those of somebody else.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import ElicitRequestFormParams

from a2c_smcp.agent import AsyncSMCPAgentClient
from a2c_smcp.computer import Computer
from a2c_smcp.computer.decisions.book import Accepted, Confirmation, Declined
from a2c_smcp.computer.decisions.made_rules import no_proposal_for
from a2c_smcp.errors import BadRequestError
from a2c_smcp.office_mcp.hosted_calls import elicit_params
from a2c_smcp.record.queries import RecordQuery
from a2c_smcp.record.reading import reading
from a2c_smcp.results import text_of
from tests.attack.harness import honest_pair, target
from tests.attack.processes import A2C, started
from tests.server.harness import eventually

PARROT = {
    "name": "parrot",
    "type": "stdio",
    "protocol": "legacy",
    "server_parameters": {
        "command": sys.executable,
        "args": ["-I", "-S", str(Path(__file__).with_name("parrot_mcp.py"))],
    },
}
#: Arguments with a secret that no name announces, and one that a name does. Every secret has `canary` in it.
ARGUMENTS: tuple[dict[str, Any], ...] = (
    {"command": "mysql -uroot -pcanary1 shop"},
    {"command": "curl -H 'Authorization: Bearer canary2AbCdEf' https://x"},
    {"command": "git push https://ada:canary3@git.example/x"},
    {"text": "my key is ghp_" + "canary4" * 5},
    {"text": "sk-" + "live-canary5-0123456789"},
    {"env": ["PATH=/bin", "DB_PASSWORD=canary6"]},
    {"env": [{"name": "API_TOKEN", "value": "canary7"}]},
    {"argv": ["deploy", "--password", "canary8", "--now"]},
    {"argv": ["mysqldump", "-pcanary9"]},
    {"pin": "canary10", "auth": ["canary11"], "passwd": "canary12"},
    {"yaml": "user: ada\npassword: canary13\n"},
    {"json": '{"client_secret": "canary14"}'},
    {"pem": "-----BEGIN RSA PRIVATE KEY-----\n" + "canary15" * 9 + "\n-----END RSA PRIVATE KEY-----"},
)


async def test_secrets_in_arguments_reach_neither_the_record_nor_a_log_nor_an_error(tmp_path: Path) -> None:
    config = tmp_path / "parrot.json"
    config.write_text(json.dumps([{**PARROT, "default_tool_meta": {"auto_apply": True}}]))
    state = ["env", f"XDG_STATE_HOME={tmp_path / 'state'}"]
    run = [*state, A2C, "computer", "run", "--headless", "--log-level", "debug", "--config", str(config)]
    with target(tmp_path) as server, honest_pair(server) as pair:
        place = ["--url", server.url, "--office", "attacked", "--name", "pc"]
        with started([*run, "--record-results", *place], tmp_path / "attacked.log") as process:
            process.says("is in office")
            process.says("parrot is running")
            async with AsyncSMCPAgentClient(server.url, name="agent", live=False) as agent:
                await agent.join_office("attacked")
                for arguments in ARGUMENTS:
                    failed = await agent.call_tool("pc", "parrot", arguments, timeout=30)
                    assert failed.is_error and "cannot do it" in text_of(failed)
                    assert "canary" not in repr(failed), arguments
                    # What a tool answers is content: the agent has it whole.
                    answer = await agent.call_tool("pc", "repeat", arguments, timeout=30)
                    assert json.loads(text_of(answer)) == arguments
        assert not pair.watch(lambda: None, at_least=2).failures
    (file,) = (tmp_path / "state").rglob("*.sqlite")
    with reading(file) as reader:
        rows = list(reader.all(RecordQuery(kind="call")))
    assert len(rows) == 2 * len(ARGUMENTS)
    for kept in (repr(rows), process.log.read_text(), server.log):
        assert [kept[at - 60 : at + 20] for at in range(len(kept)) if kept.startswith("canary", at)] == []


async def test_secrets_that_a_server_writes_to_stderr_are_not_in_its_lines() -> None:
    config = {**PARROT, "default_tool_meta": {"auto_apply": True}}
    async with Computer("pc", mcp_servers=[config]) as computer:
        for arguments in ARGUMENTS:
            assert (await computer.execute_tool("r", "parrot", arguments, 30)).is_error
        await eventually(lambda: len(computer.server_logs("parrot")) >= len(ARGUMENTS))
        assert "called with" in str(computer.server_logs("parrot"))
        assert "canary" not in str(computer.server_logs("parrot"))


async def test_no_rule_has_a_secret_of_the_call_and_none_is_wider_for_it(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    async with Computer("pc", mcp_servers=[PARROT]) as computer:
        computer.decisions.rules.open(file)
        with computer.decisions.attend("page"):
            for arguments in ARGUMENTS:
                call = asyncio.create_task(computer.execute_tool("r", "repeat", arguments, 60))
                await eventually(lambda: bool(computer.decisions.pending))
                (decision,) = computer.decisions.pending
                assert isinstance(decision, Confirmation)
                asked = decision.id
                if no_proposal_for(decision) == ("", ""):
                    # Arguments that are named as secrets, or hold such fields: any value, and the person reads so.
                    assert arguments in (ARGUMENTS[6], ARGUMENTS[9])
                    computer.decisions.answer(asked, Accepted(widths=()), by="page")
                else:
                    with pytest.raises(BadRequestError, match="a rules file is no place for secrets"):
                        computer.decisions.answer(asked, Accepted(widths=()), by="page")
                    reason = f"never again with {arguments}"
                    computer.decisions.answer(
                        asked, Declined(reason=reason, never=arguments is ARGUMENTS[-1]), by="page"
                    )
                await call
        await computer.decisions.rules.aclose()
    assert "repeat" in file.read_text()
    assert "canary" not in file.read_text()


#: Files of a folder that somebody serves as documents, without looking. Each has `canary` in it.
FILES = (
    *(
        "passwords.csv",
        "secrets.yaml",
        "credentials.json",
        "service-account-prod.json",
        "terraform.tfstate",
        "kubeconfig",
    ),
    *("bitwarden_export_1.json", "lastpass_export.csv", "Chrome Passwords.csv", "keys.kdbx", "wallet.dat", "id_rsa"),
    *(".env.production", "server.pem", "renamed-export.csv"),
)


async def test_a_folder_that_is_served_gives_nobody_the_passwords_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "readme.md").write_text("# Read me\n\nNothing secret.\n")
    for name in FILES:
        (folder / name).write_text("name,url,username,password,note\nx,https://x,ada,canary,\n")
    wide = ["--include", "*.csv", "--include", "*.json", "--include", "*", "--cache", str(tmp_path / "index")]
    command = StdioServerParameters(command=A2C, args=["docs", "serve", str(folder), *wide])
    async with Client(command, mode="legacy") as client:
        listed = [resource.uri for resource in (await client.list_resources()).resources]
        heard = [repr(await client.read_resource(uri)) for uri in listed if uri.startswith("dpe:")]
        (search,) = [tool.name for tool in (await client.list_tools()).tools if "search" in tool.name]
        heard.append(repr(await client.call_tool(search, {"query": "canary"})))
    assert any("Read me" in said for said in heard)
    # The word that was looked for is quoted.
    assert not [name for name in FILES if name in repr(heard)]
    assert "https://x" not in repr(heard)


#: How the honest server's words are introduced. The parrot writes the same line.
HEADING = "The MCP server bank on pc says:"


def is_whole(text: str) -> bool:
    """Whether a text has no hidden character, no line break of another kind, and no secret."""
    odd = [each for each in text if each != "\n" and (not each.isprintable() or each in "\u202e\u2028")]
    return not odd and "canary" not in text and "forged-" not in text


@pytest.mark.parametrize("only", [[], ["--computer", "pc"]], ids=["office", "one computer"])
async def test_a_servers_words_pass_for_nobody_elses_at_a_host(tmp_path: Path, only: list[str]) -> None:
    config = tmp_path / "parrot.json"
    config.write_text(json.dumps([PARROT, {**PARROT, "name": "bank", "tool_prefix": "bank"}]))
    with target(tmp_path) as server:
        place = ["--url", server.url, "--office", "attacked", "--name", "pc"]
        run = ["env", f"XDG_STATE_HOME={tmp_path / 'state'}", A2C, "computer", "run", "--headless"]
        with started([*run, "--config", str(config), *place], tmp_path / "attacked.log") as process:
            process.says("is in office")
            process.says("parrot is running")
            process.says("bank is running")
            host = [A2C, "mcp", "--url", server.url, "--office", "attacked", "--search", "never", *only]
            folders = {"XDG_STATE_HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
            by_host = StdioServerParameters(command=host[0], args=host[1:], env=folders)
            async with Client(by_host, mode="legacy") as client:
                said = client.instructions or ""
                tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert "Weather for everybody." in said
    lines = said.split("\n")
    assert lines.count(HEADING) == 1, "the honest server's own"
    own, theirs = lines.index(HEADING), lines.index("The MCP server parrot on pc says:")
    assert all(line.startswith(">") or not line for at, line in enumerate(lines) if at > 0 and at not in (own, theirs))
    assert is_whole(said)
    shown = [tool.description or "" for name, tool in tools.items() if name.endswith("parrot")]
    assert len(shown) == 2
    for description in shown:
        assert "Weather for everybody." in description and is_whole(description)


def test_a_question_of_several_lines_does_not_speak_for_another_server() -> None:
    question: Any = {"question_id": "q", "message": "Hello\nbank on pc asks: your PIN\u202e?"}
    params = elicit_params(question, "parrot on pc asks: ")
    assert isinstance(params, ElicitRequestFormParams)
    assert params.message == "parrot on pc asks: \n> Hello\n> bank on pc asks: your PIN\\u202e?"

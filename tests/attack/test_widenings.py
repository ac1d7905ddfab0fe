"""A hostile agent against the rules that a person made with one more click, and against what a person has forbidden: it
says the same thing in other words. No rule takes more than it was made for, and no other name gets past a deny.
"""

import json
import math
from pathlib import Path
from typing import Any

from a2c_smcp.agent import AsyncSMCPAgentClient
from a2c_smcp.computer.rules.deciding import RuledCall, RuledTool
from a2c_smcp.computer.rules.proposing import propose
from a2c_smcp.computer.rules.toml_text import with_rule
from a2c_smcp.results import ERROR_CODE_MARKER
from tests.attack.harness import honest_pair, target
from tests.attack.processes import A2C, started
from tests.attack.test_mcp_servers import hostile
from tests.computer.rules.test_other_names import SPELLINGS
from tests.computer.rules.test_recipes import NEAR
from tests.computer.rules.test_widening import WIDTHS


def made_by_a_card(name: str, value: Any, operator: str) -> tuple[str, int]:
    """What a card writes when a person widens a part of a call of `lie` to this operator; and which width that is."""
    proposal = propose(RuledCall(RuledTool("hostile", "lie", "lie"), {name: value}))
    assert proposal is not None
    widths = [json.dumps(step.written) for step in proposal.parts[0].steps]
    width = max(at for at, written in enumerate(widths) if operator in written and (operator != "under" or at == 1))
    return with_rule("", proposal.rule(f"card-{name}", (width,))), width


def can_be_sent(value: Any) -> bool:
    return not (isinstance(value, float) and not math.isfinite(value))


async def test_a_widened_rule_takes_nothing_that_a_person_did_not_see_and_a_deny_misses_no_name(tmp_path: Path) -> None:
    secret, link, docs = tmp_path / "app" / ".env", tmp_path / "readme.md", tmp_path / "docs"
    secret.parent.mkdir()
    secret.write_text("KEY=1")
    link.symlink_to(secret)
    docs.symlink_to(secret.parent)
    # A name that nobody can look up may take five seconds: one of them is enough.
    near = [*(host for host in NEAR if not host.endswith(".example")), "no-such-name.invalid"]
    denies = {
        "path": '{glob = "*.env"}',
        "file": f'{{equals = "{secret}"}}',
        "url": '{host = ["loopback", "private", "link_local"]}',
    }
    text = "".join(f'[[rules]]\neffect = "deny"\nargs.{name} = {written}\n\n' for name, written in denies.items())
    calls: list[tuple[dict[str, Any], bool]] = [({"path": str(tmp_path / "a.md")}, True), ({"file": str(docs)}, True)]
    paths = [
        value.replace("/srv/app/.env", str(secret)) for value in SPELLINGS if "srv" not in value or ".env" in value
    ]
    calls += [({"path": each}, False) for each in (*paths, str(link), f"{docs}/.env/.", [str(secret)])]
    calls += [({"file": each}, False) for each in (f"{secret}/", f"{docs}/.env", str(link), "app/.env", f"/{secret}")]
    calls += [({"url": f"http://{host}/"}, False) for host in near]
    calls += [({"url": "http://93.184.216.34/"}, True)]
    text += '[[rules]]\neffect = "allow"\ntool = "lie"\nonly_args = ["path", "file", "url"]\n\n'
    for number, (value, operator, fine, wrong) in enumerate(WIDTHS):
        written, _ = made_by_a_card(f"x{number}", value, operator)
        text += f"{written}\n"
        calls += [({f"x{number}": each}, True) for each in (value, *fine)]
        calls += [({f"x{number}": each}, False) for each in wrong if can_be_sent(each)]
    rules, config = tmp_path / "rules.toml", tmp_path / "attacked.json"
    rules.write_text(text)
    rules.chmod(0o600)
    config.write_text(json.dumps([hostile("lies")]))
    state = ["env", f"XDG_STATE_HOME={tmp_path / 'state'}"]
    run = [*state, A2C, "computer", "run", "--headless", "--config", str(config), "--rules", str(rules)]
    with target(tmp_path) as server, honest_pair(server) as pair:
        place = ["--url", server.url, "--office", "attacked", "--name", "pc"]
        with started([*run, *place], tmp_path / "attacked.log") as process:
            process.says("is in office")
            async with AsyncSMCPAgentClient(server.url, name="agent", live=False) as agent:
                await agent.join_office("attacked")
                wrongly = []
                for arguments, expected in calls:
                    result = await agent.call_tool("pc", "lie", arguments, timeout=60)
                    assert result.meta is not None
                    if (result.meta[ERROR_CODE_MARKER] != 4005) is not expected:
                        wrongly.append((arguments, expected))
        assert wrongly == [] and len(calls) > 200
        assert not pair.watch(lambda: None, at_least=2).failures

"""Commands about the rules of this computer."""

import time
from collections.abc import Iterable

from a2c_smcp.computer.cli.command_table import command, first, page
from a2c_smcp.computer.cli.output import printable
from a2c_smcp.computer.cli.rule_checks import explained
from a2c_smcp.computer.cli.session import CLISession
from a2c_smcp.computer.rules.cautions import cautions_of, rule_warnings
from a2c_smcp.computer.rules.words import sentence_of
from a2c_smcp.utils.values import read_values

__all__: list[str] = []


def _ids(session: CLISession) -> Iterable[str]:
    return [listed.rule.id for listed in session.computer.decisions.rules.listed()]


@command("rules list")
async def rules_list(session: CLISession) -> None:
    """The rules in the order in which they decide, with how often each decided, and when last."""
    rules, asleep = session.computer.decisions.rules, session.computer.sleeping_rules()
    rows, fields = [], []
    for listed in rules.listed():
        rule = listed.rule
        sleeps = "sleeps: " if rule.id in asleep else ""
        last = "" if listed.last is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(listed.last))
        rows.append((rule.id, str(listed.matched), last, f"{sleeps}{sentence_of(rule)}"))
        fields.append(
            {
                "id": rule.id,
                "effect": rule.effect,
                "text": sentence_of(rule),
                "source": listed.source,
                "matched": listed.matched,
                "last": listed.last,
                "asleep": rule.id in asleep,
                "warnings": list(rule_warnings(rule)),
            }
        )
    problem = "".join(f"\n! {printable(each)}" for each in (rules.problem, rules.gone) if each)
    warned = "".join(f"\n! {printable(said)}" for said in cautions_of(listed.rule for listed in rules.listed()))
    where = f"\n  {rules.file}" if rules.file is not None else ""
    text = page(("rule", "times", "last", "what it says"), rows) + where + warned + problem
    file = None if rules.file is None else str(rules.file)
    session.output.event("rules", text, rules=fields, file=file, problem=rules.problem, gone=rules.gone)


@command("rules test", "TOOL [KEY=VALUE...]", first(lambda session: session.computer.tool_servers))
async def rules_test(session: CLISession, name: str, *values: str) -> None:
    """Which rule decides a call with these arguments, and why. The call is not made."""
    verdict = await session.computer.test_rules(name, read_values(values).read(None))
    text = explained(verdict, session.computer.decisions.rules.list.all)
    rule = None if verdict is None else verdict.rule.id
    effect = None if verdict is None else verdict.effect
    session.output.event("rule_tested", text, tool=name, rule=rule, effect=effect)


@command("rules undo", "ID", first(_ids))
async def rules_undo(session: CLISession, rule_id: str) -> None:
    """Remove one rule, also from the rules file. Everything else in the file stays as it is."""
    session.computer.decisions.rules.remove(rule_id, by="terminal")
    session.output.event("rule_undone", f"✓ rule {printable(rule_id)} is undone", rule=rule_id)

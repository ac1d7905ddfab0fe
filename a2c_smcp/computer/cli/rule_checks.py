"""`a2c computer rules`: what the rules of a file say, and which of them decides a call. It starts nothing."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.config.files import load_config_files
from a2c_smcp.computer.rules.cautions import rule_warnings
from a2c_smcp.computer.rules.deciding import (
    Moment,
    RuleCounters,
    RuledCall,
    RuledTool,
    RuleVerdict,
    decide,
)
from a2c_smcp.computer.rules.deciding_reads import decide_read
from a2c_smcp.computer.rules.lookups import known_now
from a2c_smcp.computer.rules.reads import ReadPattern, RuledRead, kind_of
from a2c_smcp.computer.rules.rule import Rule
from a2c_smcp.computer.rules.rules_file import read_rules_file
from a2c_smcp.computer.rules.words import in_english, rule_phrases, sentence_of
from a2c_smcp.errors import BadRequestError, SMCPError
from a2c_smcp.record.reading import rule_counts
from a2c_smcp.terminal.exits import FAILED
from a2c_smcp.terminal.screen import say
from a2c_smcp.utils.text import printable
from a2c_smcp.utils.values import read_values

__all__ = ["explained", "list_rules", "test_read_rules", "test_rules"]


def list_rules(path: Path | None, record: Path | None = None) -> int:
    """Print the rules of a file in words, with how often each decided by this record, and return the exit status."""
    if path is None:
        say("there is no home folder; name a file", err=True)
        return FAILED
    try:
        rules = _rules_of(path)
    except SMCPError as error:
        return _failed(error)
    say(f"{path}: {_count(rules)}")
    counts = {} if record is None else rule_counts(record)
    for rule in rules:
        say(f"{rule.id}  {printable(sentence_of(rule))}")
        if rule.reason:
            say(f"    {printable(rule.reason)}")
        if rule.id in counts:
            times, last = counts[rule.id]
            said = "once" if times == 1 else f"{times:,} times"
            say(f"    decided {said}, last at {time.strftime('%Y-%m-%d %H:%M', time.localtime(last))}")
        for warning in rule_warnings(rule):
            say(f"    ! {printable(warning)}")
    return 0


def test_rules(
    path: Path, tool: str, arguments: Sequence[str], asker: Asker | None, server: str, hints: Sequence[str]
) -> int:
    """Print which rule decides this call, and return the exit status. If another answer holds for an agent that only
    claims this name, print that, too.
    """
    try:
        rules = _rules_of(path, needed=True)
        values = read_values(arguments).read(None)
    except SMCPError as error:
        return _failed(error)
    clock = time.localtime()
    server, digest = _tool_of_rules(rules, tool, server)
    ruled = RuledTool(server, tool, tool, dict.fromkeys(hints, True), lambda: digest)
    now = Moment(time.time(), clock.tm_hour * 60 + clock.tm_min)

    def answer(asker: Asker | None) -> str:
        call = RuledCall(ruled, values, asker)
        return explained(decide(rules, call, now, RuleCounters(), known_now(rules, call)), rules)

    said = answer(asker)
    say(said)
    if asker is not None and asker.bound and (claimed := answer(replace(asker, bound=False))) != said:
        say(f"If no key is bound to the name {printable(asker.name)}:\n{claimed}")
    return 0


def test_read_rules(path: Path, what: str, asker: Asker | None, server: str) -> int:
    """Print which rule decides this read, and return the exit status."""
    try:
        rules = _rules_of(path, needed=True)
        named = ReadPattern(what)
    except (SMCPError, ValueError) as error:
        return _failed(error if isinstance(error, SMCPError) else BadRequestError(f"--read {error}"))
    read = RuledRead(named.kind or kind_of(what), "" if named.kind else what, server, asker)
    clock = time.localtime()
    verdict = decide_read(rules, read, Moment(time.time(), clock.tm_hour * 60 + clock.tm_min))
    say(explained(verdict, rules) if verdict is not None else f"no rule matches ({_count(rules)}): it may be read")
    return 0


def _tool_of_rules(rules: Sequence[Rule], tool: str, server: str) -> tuple[str, str]:
    """The server and the digest of the tool. A file alone does not know the tools: the first rule that is bound to a
    tool of this name is taken as if that tool had not changed. If no server was given, it is that of this rule.
    """
    for rule in rules:
        if not rule.digest or not any(glob.matches(tool) for glob in rule.tool):
            continue
        if not server:
            return (rule.server[0].text if rule.server else ""), rule.digest
        if not rule.server or any(glob.matches(server) for glob in rule.server):
            return server, rule.digest
    return server, ""


def explained(verdict: RuleVerdict | None, rules: Sequence[Rule]) -> str:
    """Which rule decides, and why, in lines."""
    if verdict is None:
        return f"no rule matches ({_count(rules)}): auto_apply decides, or a person"
    rule = verdict.rule
    number = next((at for at, each in enumerate(rules, 1) if each.id == rule.id), 0)
    why = [f"    {printable(in_english(phrase))}" for phrase in rule_phrases(rule)]
    asleep = ["    the tool has changed since this rule was made: it sleeps, and a person is asked"]
    reason = [f"    reason: {printable(rule.reason)}"] if rule.reason else []
    said = [f"{verdict.effect}: rule {rule.id}, number {number} of {len(rules)}", *why]
    return "\n".join([*said, *(asleep if verdict.is_asleep else []), *reason])


def _rules_of(path: Path, *, needed: bool = False) -> tuple[Rule, ...]:
    if path.suffix == ".toml":
        return read_rules_file(path, needed=needed)
    return load_config_files(path).rules


def _failed(error: SMCPError) -> int:
    problems: Sequence[Any] = getattr(error, "problems", ()) or (printable(error.message),)
    for problem in problems:
        say(f"error: {problem}", err=True)
    return FAILED


def _count(rules: Sequence[Rule]) -> str:
    return "1 rule" if len(rules) == 1 else f"{len(rules)} rules"

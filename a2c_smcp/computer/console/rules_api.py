"""What a page asks and changes about rules: the list, a rule that is written or moved, one for a tool, and tests."""

import re
import secrets
import time
from dataclasses import asdict, replace
from datetime import datetime
from itertools import islice
from typing import Any, Final

import anyio.to_thread
from starlette.requests import Request
from starlette.routing import Route

from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.console.calls_api import CallsAPI
from a2c_smcp.computer.console.limits import CONSOLE_LIMITS
from a2c_smcp.computer.console.requests import read_routes, text_field, visitor, write_routes
from a2c_smcp.computer.console.rule_views import is_tool_wide, parted, replayed_view, rule_view, verdict_view
from a2c_smcp.computer.rules.cautions import rule_warnings
from a2c_smcp.computer.rules.deciding import Moment, RuledCall, RuledTool
from a2c_smcp.computer.rules.proposing import deny_rule, tool_rule
from a2c_smcp.computer.rules.replaying import PastCall, replayed
from a2c_smcp.computer.rules.rule import Rule, parse_rules
from a2c_smcp.computer.rules.rule_list import AddRule, RemoveRule, apply_edit
from a2c_smcp.computer.rules.store import ListedRule, RuleStore
from a2c_smcp.computer.rules.toml_text import read_rules, rule_text
from a2c_smcp.computer.rules.words import effect_phrase, rule_phrases
from a2c_smcp.errors import BadRequestError, SMCPError
from a2c_smcp.record.rows import StoredRow

__all__ = ["RulesAPI"]

#: "For an hour", in seconds.
_HOUR: Final = 3600.0
_SHOWN: Final = 20
_HEADER: Final = re.compile(r"^\s*\[\[", re.MULTILINE)


class RulesAPI:
    """The routes about rules."""

    def __init__(self, computer: Computer, calls: CallsAPI) -> None:
        self._computer = computer
        self._calls = calls

    @property
    def routes(self) -> list[Route]:
        writes = {
            "/check-rule": self._check,
            "/save-rule": self._save,
            "/move-rule": self._move,
            "/tool-rule": self._tool_rule,
            "/test-rules": self._test,
            "/undo-rule": self._undo,
        }
        return [*read_routes({"/rules": self._rules}), *write_routes(writes, 8 * CONSOLE_LIMITS.paste_bytes)]

    @property
    def _store(self) -> RuleStore:
        return self._computer.decisions.rules

    async def _rules(self, request: Request) -> Any:
        """All rules, in the order in which they decide."""
        rules, asleep = self._store, self._computer.sleeping_rules()
        return {
            "rules": [rule_view(listed, is_asleep=listed.rule.id in asleep) for listed in rules.listed()],
            "file": None if rules.file is None else str(rules.file),
            "problem": rules.problem,
            "gone": rules.gone_denies,
        }

    # --- writing

    async def _check(self, request: Request, body: dict[str, Any]) -> Any:
        """What a written rule says, or what is wrong with it; and what it would have said of past calls."""
        rule, problems = _written(body)
        if rule is None:
            return {"problems": problems}
        before, old = self._store.list.own, body.get("replaces")
        if rule.id != old and any(each.id == rule.id for each in self._store.list.all):
            return {"problems": [f"another rule has the id {rule.id!r}"]}
        edits = (*((RemoveRule(old),) if isinstance(old, str) else ()), self._placed(rule, body))
        after = before
        for edit in edits:
            after = apply_edit(after, edit)
        calls = await self._past()
        now = _moment()
        others = self._store.list.in_configs
        found = await anyio.to_thread.run_sync(replayed, (*before, *others), (*after, *others), rule, calls, now)
        return {
            "problems": [],
            "says": effect_phrase(rule).key,
            "effect": rule.effect,
            "phrases": [phrase.data for phrase in rule_phrases(rule)],
            "warnings": list(rule_warnings(rule)),
            "calls": len(calls),
            "found": len(found),
            "past": [replayed_view(each) for each in found[:_SHOWN]],
        }

    async def _past(self) -> list[PastCall]:
        """The calls in memory, then those of the record, newest first, each with its tool as it is now."""
        known: dict[str, RuledTool] = {}

        def ruled(name: str, server: str, tool: str) -> RuledTool:
            if name not in known:
                known[name] = self._tool(name) or RuledTool(server, name, tool)
            return known[name]

        most, found = CONSOLE_LIMITS.replayed_calls, []
        for ended in islice(self._computer.past_calls(), most):
            call = ended.call
            tool = ruled(call.name, call.server or "", call.tool or "")
            found.append(PastCall(RuledCall(tool, call.arguments, call.asker), call.started_at))
        for row in await self._calls.recorded_rows(most - len(found)) if len(found) < most else ():
            tool = ruled(str(row.body.get("name") or row.row.tool), row.row.server, row.row.tool)
            found.append(PastCall(RuledCall(tool, _arguments(row), _asker(row)), row.row.at / 1e6))
        return found

    def _tool(self, name: str) -> RuledTool | None:
        try:
            tool, definition = self._computer.ruled_tool(name)
        except SMCPError:
            return None
        return replace(tool, make_digest=lambda: definition.digest)

    def _placed(self, rule: Rule, body: dict[str, Any]) -> AddRule:
        """Where the rule goes: its own place if it replaces one, or else first or last."""
        own, old = [each.id for each in self._store.list.own], body.get("replaces")
        if isinstance(old, str) and old in own:
            following = own[own.index(old) + 1 :]
            return AddRule(rule, following[0] if following else None)
        return AddRule(rule, is_first=body.get("first") is True)

    async def _save(self, request: Request, body: dict[str, Any]) -> Any:
        rule, problems = _written(body)
        if rule is None:
            raise BadRequestError(problems[0] if problems else "there is no rule in this text", {"field": "text"})
        place, old, by = self._placed(rule, body), body.get("replaces"), visitor(request).name
        if isinstance(old, str) and rule_text(self._store.list.find(old).raw) != body.get("was"):
            raise BadRequestError("this rule has changed meanwhile; nothing was written", {"says": "rule"})
        replaces = [old] if isinstance(old, str) else []
        kept = [words for each in replaces if (words := parted(self._comment(each))[0])]
        self._store.add(
            rule, place.before, "\n".join([*kept, _made(by)]), is_first=place.is_first, by=by, replaces=replaces
        )
        return {"id": rule.id}

    async def _move(self, request: Request, body: dict[str, Any]) -> None:
        """Put a rule one place up or down among those of the file."""
        rule_id, up = text_field(body, "id"), body.get("up") is True
        own = list(self._store.list.own)
        at = next((number for number, rule in enumerate(own) if rule.id == rule_id), None)
        if at is None or not 0 <= (to := at + (-1 if up else 1)) < len(own):
            raise BadRequestError("this rule cannot be moved there", {"rule": rule_id})
        rest = [rule.id for rule in own if rule.id != rule_id]
        before = rest[to] if to < len(rest) else None
        self._store.add(own[at], before, self._comment(rule_id), by=visitor(request).name, replaces=[rule_id])

    def _comment(self, rule_id: str) -> str:
        return next((listed.comment for listed in self._store.listed() if listed.rule.id == rule_id), "")

    async def _undo(self, request: Request, body: dict[str, Any]) -> None:
        self._store.remove(text_field(body, "id"), by=visitor(request).name)

    async def _tool_rule(self, request: Request, body: dict[str, Any]) -> None:
        """The one rule for all calls of a tool: allow, ask, deny, or none. It replaces those that there are."""
        effect, by = text_field(body, "effect"), visitor(request).name
        tool, definition = self._computer.ruled_tool(text_field(body, "tool"))
        old = [listed.rule.id for listed in self._store.listed() if _is_of(listed, tool)]
        if effect == "":
            for each in old:
                self._store.remove(each, by=by)
            return
        rule = _rule_for(effect, tool)
        if body.get("hour") is True:
            rule = _for_an_hour(rule)
        seen = asdict(definition) if rule.digest else None
        first = effect != "allow"
        self._store.add(rule, comment=_made(by), seen=seen, is_first=first, by=by, replaces=old)

    # --- testing

    async def _test(self, request: Request, body: dict[str, Any]) -> Any:
        """Which rule decides such a call. It is not made."""
        arguments, agent = body.get("arguments"), body.get("agent") or ""
        if not isinstance(arguments, dict) or not isinstance(agent, str):
            raise BadRequestError("fields 'arguments' and 'agent' must be an object and a text", {"field": "arguments"})
        claimed = body.get("bound") is not True
        tool = text_field(body, "tool")
        verdict = await self._computer.test_rules(tool, arguments, agent=agent, claimed=claimed)
        return {"verdict": None if verdict is None else verdict_view(verdict)}


def _arguments(row: StoredRow) -> dict[str, Any]:
    found = row.body.get("arguments")
    return found if isinstance(found, dict) else {}


def _asker(row: StoredRow) -> Asker | None:
    if not row.row.agent:
        return None
    key = row.body.get("key")
    is_bound = row.body.get("claimed") is False
    return Asker(row.row.agent, key if isinstance(key, str) else None, is_bound, row.row.office)


def _written(body: dict[str, Any]) -> tuple[Rule | None, list[str]]:
    """The one rule of a text, with or without its header, or what is wrong with it."""
    text = text_field(body, "text")
    if len(text.encode("utf-8", "replace")) > CONSOLE_LIMITS.paste_bytes:
        return None, [f"a rule has at most {CONSOLE_LIMITS.paste_bytes // 1024} KiB"]
    rules, problems = read_rules(text if _HEADER.search(text) else f"[[rules]]\n{text}")
    if problems:
        return None, [str(problem).removeprefix("rules[1].") for problem in problems]
    if len(rules) != 1:
        return None, ["write one rule at a time"]
    rule = rules[0] if "id" in rules[0].raw else _with(rules[0], id=_new_id())
    return (_for_an_hour(rule) if body.get("hour") is True else rule), []


def _with(rule: Rule, **more: Any) -> Rule:
    rules, problems = parse_rules([{**rule.raw, **more}])
    assert not problems
    return rules[0]


def _for_an_hour(rule: Rule) -> Rule:
    until = datetime.fromtimestamp(time.time() + _HOUR).astimezone()
    return _with(rule, expires=until.isoformat(timespec="seconds"))


def _rule_for(effect: str, tool: RuledTool) -> Rule:
    call = RuledCall(tool, {}, None)
    if effect == "allow":
        return tool_rule(call, _new_id())
    if effect not in ("ask", "deny"):
        raise BadRequestError("field 'effect' must be allow, ask, deny, or empty", {"field": "effect"})
    return _with(deny_rule(call, _new_id()), effect=effect)


def _is_of(listed: ListedRule, tool: RuledTool) -> bool:
    rule = listed.rule
    if listed.source == "config" or not is_tool_wide(rule):
        return False
    return (rule.server[0].text, rule.tool[0].text) == (tool.server, tool.name)


def _new_id() -> str:
    return f"page-{secrets.token_hex(4)}"


def _made(by: str) -> str:
    return f"made on {time.strftime('%Y-%m-%d %H:%M')} by {by}"


def _moment() -> Moment:
    now = time.time()
    clock = time.localtime(now)
    return Moment(now, clock.tm_hour * 60 + clock.tm_min, time.monotonic())

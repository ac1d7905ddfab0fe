"""The rules' decisions: the table of cases, and what holds for all rules and calls."""

import datetime as dt
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.rules.cautions import cautions_of
from a2c_smcp.computer.rules.conditions import lexical
from a2c_smcp.computer.rules.deciding import (
    Moment,
    RuleCounters,
    RuledCall,
    RuledTool,
    answer_for_all,
    decide,
    paths_to_resolve,
)
from a2c_smcp.computer.rules.proposing import propose, tool_rule, why_no_rule
from a2c_smcp.computer.rules.rule import Effect, Rule, parse_rules
from a2c_smcp.computer.rules.toml_text import read_rules, with_rule, without_rule
from a2c_smcp.computer.rules.words import sentence_of

ADA, EVE = Asker("ada", "home", True, "lab"), Asker("eve", "home", True, "lab")
DIGEST, OTHER_DIGEST = "d" * 64, "e" * 64
CASES = tomllib.loads(Path(__file__).with_name("cases.toml").read_text("utf-8"))["cases"]


def call_of(case: dict[str, Any]) -> RuledCall:
    arguments = json.loads(case["args_json"]) if "args_json" in case else case["args"]
    if "fill" in case:
        arguments = {"x": "a" * case["fill"]}
    name = case["tool"]
    tool = RuledTool(
        case["server"],
        name,
        case.get("original", name),
        case.get("annotations", {}),
        lambda: case.get("digest", ""),
    )
    who = [case.get(name) for name in ("agent", "key", "office")]
    asker = Asker(who[0] or "", who[1], not case.get("claimed", False), who[2] or "") if any(who) else None
    return RuledCall(tool, arguments, asker)


def rules_of(data: list[Any]) -> tuple[Rule, ...]:
    rules, problems = parse_rules(data)
    assert not problems, [str(problem) for problem in problems]
    return rules


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_case(case: dict[str, Any]) -> None:
    rules, call = rules_of(case["rules"]), call_of(case)
    hour, minute = map(int, case.get("at", "12:00").split(":"))
    day = case.get("day", dt.date(2026, 1, 1))
    now = Moment(dt.datetime.combine(day, dt.time(hour, minute)).timestamp(), hour * 60 + minute, 100_000.0)
    counters = RuleCounters()
    for seconds in sorted(case.get("earlier", ()), reverse=True):
        counters.count(rules[0], Moment(now.time - seconds, 0, now.steady - seconds))
    links = case.get("links", {})
    ruling = decide(rules, call, now, counters, lambda path: links.get(path, lexical(path)))
    assert ("none" if ruling is None else ruling.effect) == case["expect"]
    assert (ruling is not None and ruling.is_asleep) == case.get("asleep", False)
    assert all(sentence_of(rule) for rule in rules)


def test_there_are_sixty_cases() -> None:
    assert len(CASES) >= 60 and len({case["name"] for case in CASES}) == len(CASES)


# --- what holds for all of them

NAMES = st.sampled_from(["read", "write", "files", "web", "*", "r*", "ada", "?ead", ""])
TEXTS = st.one_of(
    st.sampled_from(["/a/b", "/a/../b", "https://x.org/", "http://[::1]:80/", "http://a@b@c", "x", "\0", "\ud800"]),
    st.text(max_size=8),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)),
    max_leaves=6,
)
ITEM_CONDITIONS: list[st.SearchStrategy[dict[str, Any]]] = [
    st.fixed_dictionaries({"equals": st.one_of(st.booleans(), st.integers(), TEXTS)}),
    st.fixed_dictionaries({"one_of": st.lists(TEXTS, min_size=1, max_size=3)}),
    st.fixed_dictionaries({"glob": st.sampled_from(["*", "a*b", "?", "*x*y*"])}),
    st.fixed_dictionaries({"under": st.sampled_from(["/", "/a", "~/x"])}),
    st.fixed_dictionaries({"host": st.sampled_from(["x.org", "*.x.org", "[::1]:80", "127.0.0.1"])}),
    st.fixed_dictionaries({"at_most": st.integers(), "at_least": st.integers()}),
    st.fixed_dictionaries({"longest": st.integers(0, 3)}),
]
CONDITIONS = st.one_of(
    *ITEM_CONDITIONS,
    st.fixed_dictionaries({"absent": st.booleans()}),
    st.fixed_dictionaries({"every": st.one_of(*ITEM_CONDITIONS)}),
    st.fixed_dictionaries({"some": st.one_of(*ITEM_CONDITIONS)}),
)


def written_rules(effects: tuple[Effect, ...] = ("allow", "ask", "deny")) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"effect": st.sampled_from(effects)},
        optional={
            "tool": NAMES.filter(bool),
            "server": NAMES.filter(bool),
            "agent": NAMES.filter(bool),
            "key": NAMES.filter(bool),
            "office": NAMES.filter(bool),
            "read_only": st.booleans(),
            "hours": st.sampled_from(["00:00-12:00", "22:00-06:00"]),
            "args": st.dictionaries(st.sampled_from(["x", "y", "/x/0"]), CONDITIONS, max_size=2),
            "only_args": st.lists(st.sampled_from("xyz"), max_size=2),
            "expires": st.sampled_from(["1970-01-01", "2999-01-01"]),
        },
    ).flatmap(_with_bounds)


def _with_bounds(written: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """The rule, perhaps with a rate, and perhaps bound to one of two tools: the one that there is, or another one."""
    more: dict[str, st.SearchStrategy[str]] = {}
    if written["effect"] == "allow":
        more["at_most"] = st.sampled_from(["1 per day", "2 per day"])
    if "*" not in (tool := written.get("tool", "*")) and "?" not in tool:
        more["digest"] = st.sampled_from([DIGEST, OTHER_DIGEST])
    return st.fixed_dictionaries({}, optional=more).map(lambda chosen: {**written, **chosen})


CALLS = st.builds(
    RuledCall,
    st.builds(
        RuledTool,
        NAMES,
        NAMES,
        NAMES,
        st.dictionaries(st.sampled_from(["readOnlyHint"]), VALUES),
        st.just(lambda: DIGEST),
    ),
    st.dictionaries(st.sampled_from(["x", "y"]), VALUES, max_size=2),
    st.one_of(
        st.none(),
        st.builds(Asker, NAMES, st.one_of(st.none(), NAMES.filter(bool)), st.booleans(), NAMES),
    ),
)
NOW = Moment(1_000_000.0, 600, 50.0)
RANK = {"deny": 0, "ask": 1, None: 1, "allow": 2}
#: Where paths lead: where they say, or nobody knows.
REAL_PATHS: st.SearchStrategy[Callable[[str], str | None]] = st.sampled_from([lexical, lambda _: None])
quickly = settings(max_examples=150, deadline=None, derandomize=True)


def effect(rules: tuple[Rule, ...], call: RuledCall, real_path: Callable[[str], str | None] = lexical) -> Effect | None:
    counters = RuleCounters()
    for rule in rules:
        counters.count(rule, NOW)  # so that a rate of one is spent
    ruling = decide(rules, call, NOW, counters, real_path)
    paths_to_resolve(rules, call)
    return None if ruling is None else ruling.effect


@quickly
@given(st.lists(written_rules(), max_size=5), written_rules(("deny",)), st.integers(0, 5), CALLS, REAL_PATHS)
def test_one_more_deny_never_allows_more(
    rules: list[Any], deny: Any, place: int, call: RuledCall, real_path: Callable[[str], str | None]
) -> None:
    before = effect(rules_of(rules), call, real_path)
    after = effect(rules_of([*rules[:place], deny, *rules[place:]]), call, real_path)
    assert after == before or after == "deny"


@quickly
@given(st.lists(written_rules(), min_size=2, max_size=5), st.data(), CALLS, REAL_PATHS)
def test_order_matters_only_where_two_rules_match(
    rules: list[Any], data: st.DataObject, call: RuledCall, real_path: Callable[[str], str | None]
) -> None:
    place = data.draw(st.integers(0, len(rules) - 2))
    one, other = rules[place], rules[place + 1]
    swapped = [*rules[:place], other, one, *rules[place + 2 :]]
    both_match = all(effect(rules_of([each]), call, real_path) is not None for each in (one, other))
    if not both_match:
        assert effect(rules_of(rules), call, real_path) == effect(rules_of(swapped), call, real_path)


@quickly
@given(st.lists(written_rules(), max_size=4), CALLS, st.sampled_from(["ask", "allow"]), REAL_PATHS)
def test_one_answer_for_all_holds_for_this_call(
    rules: list[Any], call: RuledCall, otherwise: Effect, real_path: Callable[[str], str | None]
) -> None:
    parsed = rules_of(rules)
    answer = answer_for_all(parsed, call.tool, otherwise)
    if answer is not None:
        assert (effect(parsed, call, real_path) or otherwise) == answer


@pytest.mark.parametrize(
    ("effects", "answer"),
    [(["card"], "allow"), (["card", "deny"], "deny"), (["card", "ask"], "allow"), (["card", "allow", "deny"], "allow")],
)
def test_the_one_answer_knows_that_a_deny_beats_the_allow_of_a_card(effects: list[str], answer: str) -> None:
    tool = RuledTool("files", "write", "write", {}, lambda: DIGEST)
    card = {"effect": "allow", "tool": "write", "server": "files", "digest": DIGEST}
    rules = rules_of([card if each == "card" else {"effect": each, "tool": "write"} for each in effects])
    assert answer_for_all(rules, tool, "ask") == answer
    assert effect(rules, RuledCall(tool)) == answer


@quickly
@given(CALLS, st.data())
def test_a_proposed_rule_covers_its_call_and_survives_a_file(call: RuledCall, data: st.DataObject) -> None:
    tool = RuledTool("files", "write", "write", {}, lambda: "d" * 64)
    call = RuledCall(tool, call.arguments, call.asker)
    proposal = propose(call)
    if proposal is None:
        return
    widths = [data.draw(st.integers(0, len(part.steps) - 1)) for part in proposal.parts]
    rule = proposal.rule("r-1", widths)
    assert effect((rule,), call) == "allow"
    assert len(proposal.sentences(widths)) >= len(widths)
    text = with_rule("# kept\n", rule)
    assert read_rules(text)[0] == (rule,)
    assert without_rule(text, "r-1") == "# kept\n"


@quickly
@given(
    st.one_of(VALUES, st.lists(st.one_of(VALUES, st.dictionaries(st.sampled_from(["effect", "args", "tool"]), VALUES))))
)
def test_any_data_is_rules_or_problems(data: Any) -> None:
    rules, problems = parse_rules(data)
    assert problems or (isinstance(data, list) and len(rules) == len(data))
    assert all(str(problem) for problem in problems)


def test_the_narrowest_rule_takes_no_other_argument() -> None:
    tool = RuledTool("files", "write", "write", {}, lambda: "d" * 64)
    proposal = propose(RuledCall(tool, {"path": "/home/ada/a.md"}, ADA))
    assert proposal is not None
    rule = proposal.rule("r", [1, 1])
    assert effect((rule,), RuledCall(tool, {"path": "/home/ada/b.md"}, EVE)) == "allow"
    assert effect((rule,), RuledCall(tool, {"path": "/home/ada/b.md", "force": True}, EVE)) is None
    assert sentence_of(rule) == (
        'Allow: the tool is write; the server is files; path is in the folder "/home/ada"; '
        "it has no other arguments than path; as long as the tool stays as it was shown"
    )
    assert effect((tool_rule(RuledCall(tool), "t"),), RuledCall(tool, {"any": 1})) == "allow"


@pytest.mark.parametrize(
    ("asker", "narrowest", "covers", "not_covers"),
    [
        (ADA, "the agent is ada, by a key that is bound to this name", ADA, EVE),
        (
            Asker("ada", "home", False, "lab"),
            "any agent with the key home: no key is bound to the name ada",
            Asker("eve", "home"),
            Asker("ada", "work", False, "lab"),
        ),
        (
            Asker("ada", office="lab"),
            "any agent in the office lab: no key is bound to the name ada",
            Asker("eve", office="lab"),
            Asker("ada", office="kitchen"),
        ),
    ],
)
def test_the_rule_of_a_card_says_for_whom_it_is_and_holds_for_them(
    asker: Asker, narrowest: str, covers: Asker, not_covers: Asker
) -> None:
    tool = RuledTool("files", "write", "write", {}, lambda: DIGEST)
    proposal = propose(RuledCall(tool, {}, asker))
    assert proposal is not None and proposal.sentences([0])[-1] == narrowest
    rule = proposal.rule("r", [0])
    answers = [effect((rule,), RuledCall(tool, {}, each)) for each in (asker, covers, not_covers, None)]
    assert answers == ["allow", "allow", None, None]
    assert effect((proposal.rule("r", [1]),), RuledCall(tool, {}, not_covers)) == "allow"


@pytest.mark.parametrize("asker", [Asker("ada"), Asker("ada", "h*me", False, "l?b"), Asker("*", office="*")])
def test_where_nothing_is_certain_of_an_agent_the_rule_of_its_card_is_for_any_agent_and_says_so(asker: Asker) -> None:
    tool = RuledTool("files", "write", "write", {}, lambda: DIGEST)
    proposal = propose(RuledCall(tool, {}, asker))
    assert proposal is not None and proposal.sentences([0])[-1] == "any agent"
    assert effect((proposal.rule("r", [0]),), RuledCall(tool, {}, EVE)) == "allow"


def test_who_allows_any_name_is_told_that_a_claimed_one_is_none() -> None:
    (said,) = cautions_of(rules_of([{"effect": "allow", "id": "any", "agent": ["ada", "*"]}]))
    assert said.startswith("rule any: agent: ")
    assert not list(cautions_of(rules_of([{"effect": "deny", "agent": "*"}, {"effect": "allow", "agent": "a*"}])))


def test_rules_say_in_words_what_is_uncertain() -> None:
    for_ada, against_ada = rules_of([{"effect": each, "agent": "ada", "key": "home"} for each in ("allow", "deny")])
    assert sentence_of(for_ada) == (
        "Allow: any tool, and whatever can be read; the agent is ada, by a key that is bound to this name;"
        " its key is home"
    )
    assert sentence_of(against_ada) == (
        "Never run: any tool, and whatever can be read; the agent is ada, or no key is bound to its name;"
        " its key is home, or is not known"
    )


def test_a_proposal_quotes_no_secret_and_says_so_and_a_written_one_is_masked() -> None:
    tool = RuledTool("files", "login", "login", {}, lambda: DIGEST)
    call = RuledCall(tool, {"user": "ada", "password": "hunter2", "more": {"api_key": "hunter2"}, "has_token": True})
    proposal = propose(call)
    assert proposal is not None
    assert "any value of password: a secret is not written into a rule" in proposal.sentences([0, 0, 0, 0])
    rule = proposal.rule("r", [0, 0, 0, 0])
    assert "hunter2" not in with_rule("", rule) and effect((rule,), call) == "allow"
    conditions = [
        {"equals": "hunter2"},
        {"one_of": ["hunter2"]},
        {"glob": "hunter2*"},
        {"every": {"equals": "hunter2"}},
    ]
    for condition in conditions:
        (written,) = rules_of([{"effect": "deny", "args": {"/auth/password": condition}}])
        assert "hunter2" not in sentence_of(written) and "***" in sentence_of(written)
    (written,) = rules_of([{"effect": "deny", "args": {"login": {"equals": {"password": "hunter2"}}}}])
    assert "hunter2" not in sentence_of(written)


def test_a_secret_inside_of_an_argument_leaves_no_rule_and_the_person_is_told_why() -> None:
    tool = RuledTool("shell", "run", "run", {}, lambda: DIGEST)
    for arguments in ({"command": "mysql -phunter2 shop"}, {"argv": ["x", "--token", "hunter2"]}):
        call = RuledCall(tool, arguments)
        (name,) = arguments
        assert propose(call) is None
        assert why_no_rule(call) == ("secret", f"{name} has a secret in it, and a rules file is no place for secrets")
    assert why_no_rule(RuledCall(tool, {"command": "ls"})) == ("", "")
    assert why_no_rule(RuledCall(tool, {str(n): n for n in range(50)}))[0] == "large"
    (written,) = rules_of([{"effect": "deny", "args": {"command": {"equals": "mysql -phunter2 shop"}}}])
    assert "hunter2" not in sentence_of(written)

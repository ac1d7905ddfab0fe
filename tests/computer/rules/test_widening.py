"""What a person allows with one more click: no width of a proposal takes what they could not see in it."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.rules.deciding import Moment, RuleCounters, RuledCall, RuledTool, decide
from a2c_smcp.computer.rules.globs import Glob, PlainGlob
from a2c_smcp.computer.rules.proposing import Proposal, propose
from a2c_smcp.computer.rules.proposing_reads import propose_read
from a2c_smcp.computer.rules.reads import ReadKind, RuledRead
from a2c_smcp.computer.rules.rule import Rule, parse_rules

PLANNER = Asker("planner", "key", True, "home")
NOW = Moment(1.8e9, 600, 100.0)
TOOL = RuledTool("server", "tool", "tool", {}, lambda: "d" * 64)


def call(value: Any) -> RuledCall:
    return RuledCall(TOOL, {"x": value}, PLANNER)


def proposed(value: Any) -> Proposal:
    proposal = propose(call(value))
    assert proposal is not None
    return proposal


def allows(rule: Rule, value: Any) -> bool:
    verdict = decide((rule,), call(value), NOW, RuleCounters())
    return verdict is not None and verdict.effect == "allow"


def widened(value: Any, operator: str) -> Rule:
    """The rule of the proposal for a value whose condition on it has this operator."""
    proposal = proposed(value)
    for width, step in enumerate(proposal.parts[0].steps):
        if isinstance(step.written, dict) and operator in step.written:
            return proposal.rule("r", (width,))
    raise AssertionError(f"no width of {value!r} has {operator}")


#: The value of a call, the operator of a width, what this width is for, and what it must not take.
WIDTHS: list[tuple[Any, str, list[Any], list[Any]]] = [
    (
        "ben@example.com",
        "mail",
        ["ann@example.com", "ann.b+c@EXAMPLE.com", "o'neil@example.com"],
        [
            *("eve@evil.org, ben@example.com", "a@example.com,b@example.com", "a@example.com b@example.com"),
            *(
                "ben@example.com\r\nBcc: eve@evil.org",
                "eve@evil.org\r\n@example.com",
                "a\t@example.com",
                "a\0@example.com",
            ),
            *(
                '"eve@evil.org"@example.com',
                "Ben <ben@example.com>",
                "(x)ben@example.com",
                "ben(@evil.org)@example.com",
            ),
            *(
                "eve%evil.org@example.com",
                "evil.org!eve@example.com",
                "@evil.org,@b:ben@example.com",
                "/tmp/x@example.com",
            ),
            *(
                "=?utf-8?q?eve=40evil.org=3e?=@example.com",
                "-oQ/tmp@example.com",
                "|id@example.com",
                "ben@sub.example.com",
            ),
            *("ben@example.com.evil.org", "ben@ex\u0430mple.com", "b\u0435n@example.com", "ben@example\uff0ecom"),
            *(
                "ben@\uff45xample.com",
                "ben@example.com.",
                "ben@example.com\u200b",
                " ben@example.com",
                "ben@@example.com",
            ),
            *(["ben@example.com"], {"address": "ben@example.com"}, None, ""),
        ],
    ),
    (
        ["ben@example.com", "ann@example.org"],
        "every",
        [["ann@example.org"]],
        [["eve@evil.org"], [], ["ben@example.com"] * 3, ["ben@example.com, eve@evil.org"], "ben@example.com", [None]],
    ),
    (
        "http://localhost:8080/a",
        "host",
        ["http://localhost:8080/b", "HTTP://LOCALHOST:8080/"],
        [
            *(
                "file://localhost/etc/passwd",
                "gopher://localhost:8080/",
                "https://localhost:8080/",
                "http://localhost/",
            ),
            *("http://localhost:22/", "http://user:pw@localhost:8080/", "http://localhost:8080@evil.org/"),
            *(
                "http://localhost:8080\\@evil.org/",
                "http://evil.org\\@localhost:8080/",
                "http://localhost:8080/\r\nX: y",
            ),
            *("http://127.0.0.1:8080/", "http://[::1]:8080/", "http://2130706433:8080/", "http://a.localhost:8080/"),
            *("http://localhost:8080.evil.org/", "http://localhost:8080:80/", "http://evil.org#@localhost:8080/"),
            *("http://\uff4cocalhost:8080/", "localhost:8080", "//localhost:8080/", "jar:http://localhost:8080/"),
        ],
    ),
    (
        "https://example.com/a",
        "host",
        ["https://example.com/b?c=d", "https://example.com:443/"],
        [
            "http://example.com/",
            "https://example.com:8443/",
            "https://www.example.com/",
            "file://example.com/etc/passwd",
        ],
    ),
    (
        10,
        "at_most",
        [1, 10, 2.0],
        [-1, 0, 11, 9.5, 10.000001, -(2**70), 2**70, math.nan, math.inf, -math.inf, True, "5", [5], None, 1e-300],
    ),
    (-10, "at_most", [-1, -10], [1, 0, -11, -0.5, True, -math.inf, math.nan]),
    (2.5, "at_most", [0, 1, 2.5], [-0.1, -1, 2.6, True, math.nan, -math.inf, "1"]),
    (
        "agent/x",
        "plain_glob",
        ["agent/main", "agent/x-1_2.3"],
        [
            *("agent/x:main", "agent/x y", "agent/x,y", "agent/x@{1}", "agent/a/b", "agent/..", "agent/x..y", "agent/"),
            *(
                "agent/x\n",
                "agent/\nmain",
                "agent/-x",
                "agent/.git",
                "agent/x\u2028y",
                "agent/x;id",
                "+agent/x",
                "main",
            ),
        ],
    ),
    ("a/b:1.0", "plain_glob", ["a/b:2.0"], ["a/c:1.0", "a/b:1:2", "a/b:1/c", "a/b:1@sha", "a/b:", "a/b:-1"]),
    (
        "/home/ada/notes/a.md",
        "under",
        ["/home/ada/notes/b.md", "/home/ada/notes/c/d"],
        [
            "/home/ada/notes/../x",
            "/home/ada/notes/a\n/etc/x",
            "/home/ada/notes/a\0",
            "/home/ada/notes\\..\\x",
            "/home/ada/x",
        ],
    ),
    (
        ["/home/ada/notes/a", "/home/ada/notes/b"],
        "every",
        [["/home/ada/notes/b"]],
        [[], ["/home/ada/x"], ["/home/ada/notes/a"] * 3, ["/home/ada/notes/../x"]],
    ),
]


@pytest.mark.parametrize(("value", "operator", "fine", "hostile"), WIDTHS, ids=[repr(row[0]) for row in WIDTHS])
def test_a_width_takes_what_it_is_for_and_nothing_else(
    value: Any, operator: str, fine: list[Any], hostile: list[Any]
) -> None:
    proposal = proposed(value)
    widths = [
        width for width, step in enumerate(proposal.parts[0].steps) if isinstance(step.written, dict) and width > 0
    ]
    rule = widened(value, operator)
    last = proposal.rule("r", (widths[-1],)) if operator != "under" else rule
    assert [each for each in fine if not allows(last, each)] == []
    assert [each for each in hostile if allows(rule, each) or allows(last, each)] == []


@pytest.mark.parametrize(
    "value",
    [
        *(
            "https://user@example.com/",
            "file://localhost/a",
            "gopher://example.com/",
            "http://2130706433/",
            "x y",
            "main",
            *("a..b/c", "../x", "-rf", "a/b c", "a/-b", "a/b\n", "https://example.com?@evil.org/"),
        ),
        *("Ben <ben@example.com>", "a, b", 0, 1, -1, True, None, {}, [], ["/a/b/c", "/x/y/z"], ["a", 1]),
    ],
)
def test_what_is_odd_is_allowed_as_it_is_or_as_anything(value: Any) -> None:
    first, *wider = proposed(value).parts[0].steps
    assert first.written is not None
    widest = [step.written for step in wider if step.written is not None]
    assert widest in ([], [{"every": {"one_of": value}, "longest": 2}])


def test_there_is_no_folder_for_files_of_two_trees() -> None:
    steps = proposed(["/home/ada/a", "/srv/b"]).parts[0].steps
    assert not [step for step in steps if "under" in json.dumps(step.written)]


# --- what a person is shown of it


VALUES = st.one_of(
    st.sampled_from([value for value, *_ in WIDTHS]),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.none(),
    st.text(max_size=10),
    st.lists(st.one_of(st.text(max_size=5), st.integers()), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(VALUES)
def test_the_values_that_are_shown_are_new_and_the_rule_takes_them(value: Any) -> None:
    if (proposal := propose(call(value))) is None:
        return
    before: list[Rule] = []
    for width, step in enumerate(proposal.parts[0].steps):
        rule = proposal.rule("r", (width,))
        shown = [json.loads(text) for text in step.examples if not text.endswith(")")]
        for example in shown:
            assert allows(rule, example)
            assert example != value or type(example) is not type(value)
            assert not any(allows(narrower, example) for narrower in before)
        before.append(rule)
    agent = proposal.parts[1]
    assert agent.steps[0].examples == () and len(agent.steps[1].examples) == 3
    anybody = proposal.rule("r", (0, 1))
    for name in agent.steps[1].examples:
        verdict = decide(
            (anybody,), replace(call(value), asker=replace(PLANNER, name=json.loads(name))), NOW, RuleCounters()
        )
        assert verdict is not None and verdict.effect == "allow"


@pytest.mark.parametrize("value", [value for value, *_ in WIDTHS], ids=repr)
def test_every_width_but_the_narrowest_shows_three_new_values(value: Any) -> None:
    first, *wider = proposed(value).parts[0].steps
    assert first.examples == ()
    assert [len(step.examples) for step in wider] == [3] * len(wider) or isinstance(value, list)
    assert all(step.examples for step in wider)


def test_no_example_has_a_part_of_a_secret() -> None:
    proposal = propose(RuledCall(TOOL, {"api_key": "/hunter2/x", "login": {"password": "hunter2"}}, PLANNER))
    assert proposal is not None
    shown = [example for part in proposal.parts for step in part.steps for example in step.examples]
    assert shown and "hunter2" not in "".join(shown)


@pytest.mark.parametrize("kind", list(ReadKind))
@pytest.mark.parametrize("bound", [True, False])
def test_the_card_of_a_read_shows_what_else_may_then_be_read(kind: ReadKind, bound: bool) -> None:
    uris = {ReadKind.WINDOW: "window://host/a", ReadKind.DOCUMENT: "dpe://host/doc", ReadKind.RESOURCE: "x://y/z"}
    read = RuledRead(
        kind, uris.get(kind, "" if kind is ReadKind.CONFIG else "name"), "server", Asker("ada", "k", bound)
    )
    proposal = propose_read(read)
    assert proposal is not None
    narrow, wide = proposal.parts[0].steps
    assert len(wide.examples) == 3 or not bound
    # A rule for one prompt is a rule for the prompts of its server: the person sees other names.
    by_kind = kind not in uris and read.name != ""
    assert any(f"another-{kind}" in example for example in narrow.examples) is by_kind


# --- patterns


@pytest.mark.parametrize("control", ["\n", "\r", "\0", "\t", "\x1b", "\x7f", "\x85", "\u2028", "\u2029"])
@pytest.mark.parametrize("pattern", ["*@b", "a*", "a?b", "*", "a*b*c"])
def test_no_wildcard_of_an_allow_is_a_control_character_and_no_deny_misses_one(pattern: str, control: str) -> None:
    text = {"*@b": f"a{control}@b", "a?b": f"a{control}b", "a*b*c": f"ab{control}c"}.get(pattern, f"a{control}")
    assert not Glob(pattern).matches(text) and Glob(pattern).may_match(text)
    assert not PlainGlob(pattern).matches(text)
    rules, _ = parse_rules([{"effect": effect, "args": {"x": {"glob": pattern}}} for effect in ("allow", "deny")])
    verdict = decide(rules, call(text), NOW, RuleCounters())
    assert verdict is not None and verdict.effect == "deny"


def test_a_line_break_in_a_name_keeps_an_allow_away_and_no_deny() -> None:
    rules, _ = parse_rules([{"effect": "allow", "tool": "to*"}, {"effect": "deny", "tool": "to*", "agent": "plan*"}])
    assert [rule.effect for rule in rules] == ["allow", "deny"]
    odd = RuledCall(RuledTool("s", "to\nol", "x"), {}, replace(PLANNER, name="plan\nner"))
    verdict = decide(rules, odd, NOW, RuleCounters())
    assert verdict is not None and verdict.effect == "deny"


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text("ab*?/. \n", max_size=8), st.text("ab/. :\n", max_size=12))
def test_a_plain_pattern_takes_no_more_than_the_pattern(pattern: str, text: str) -> None:
    if pattern and PlainGlob(pattern).matches(text):
        assert Glob(pattern).matches(text)


def test_no_pattern_takes_long() -> None:
    for pattern in ("*a*a*a*a*a*a*a*a*b", "a*" * 20 + "b"):
        for glob in (Glob(pattern), PlainGlob(pattern)):
            assert not glob.matches("a" * 60_000)

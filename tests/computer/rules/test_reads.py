"""Rules about what agents read: patterns, forms of a URI, which rule decides, and how long a verdict is good."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.cli.main import app
from a2c_smcp.computer.decisions.book import Accepted, Confirmation, Declined
from a2c_smcp.computer.decisions.made_rules import made_rule, proposal_for
from a2c_smcp.computer.rules.deciding import Moment, RuleCounters, RuledCall, RuledTool, decide
from a2c_smcp.computer.rules.deciding_reads import MOST_KEPT, MOST_LISTED, ReadVerdicts, decide_read
from a2c_smcp.computer.rules.reads import _SIMPLE, ReadKind, RuledRead, _forms, _is_plain, kind_of, plain_uri
from a2c_smcp.computer.rules.rule import Rule, parse_rules
from a2c_smcp.computer.rules.rule_list import RuleList
from a2c_smcp.computer.rules.words import sentence_of
from a2c_smcp.errors import BadRequestError

NOON = Moment(1.8e9, 12 * 60)
ADA = Asker("ada", "ada-key", bound=True, office="lab")
WINDOW, DOCUMENT = ReadKind.WINDOW, ReadKind.DOCUMENT


def rules(*raw: dict[str, Any]) -> tuple[Rule, ...]:
    found, problems = parse_rules(list(raw))
    assert not problems, problems
    return found


def effect(written: tuple[Rule, ...], uri: str, server: str = "s", asker: Asker | None = ADA) -> str | None:
    kind = kind_of(uri)
    verdict = decide_read(written, RuledRead(kind, uri, server, asker), NOON)
    # What is kept for a catalogue is decided in a shorter way.
    assert verdict == ReadVerdicts(RuleList(written), NOON, asker).of(kind, server, uri)
    return None if verdict is None else verdict.effect


@pytest.mark.parametrize(
    ("pattern", "uri", "matches"),
    [
        ("window://mail/*", "window://mail/inbox?priority=5", True),
        ("window://mail/inbox", "window://mail/inbox?priority=5", True),
        ("window://mail/inbox", "window://mail/in%62ox", True),
        ("window://mail/*", "window://news/1", False),
        ("dpe://files/secret*", "dpe://files/secret.md", True),
        ("dpe://files/secret*", "dpe://files/s%65cret.md", True),
        ("dpe://files/secret*", "dpe://files/%73ecret.md/pages/3?format=text", True),
        ("dpe://files/a b", "dpe://files/a%20b/elements/x", True),
        ("dpe://files/plan", "dpe://files/plan/", True),
        ("dpe://files/plan", "dpe://files/planet", False),
        ("dpe://files/plan/pages/3", "dpe://files/plan/pages/3", True),
        ("dpe://files/dir/*", "dpe://files/dir%2Fx", True),
        ("file:///home/ada/*", "file:///home/ada/x", True),
        ("file:///secret/*", "file:///a/../secret/x", True),
        ("file:///secret/*", "file:///a/%2e%2e/secret/x", True),
        ("file:///secret/*", "FILE:///secret/x", True),
        ("file:///secret/*", "file:////secret//x", True),
        ("file:///secret/*", "file://localhost/secret/x", True),
        ("file:///secret/*", "file:/secret/x", True),
        ("file:///secret/*", "FILE:/a/%2e%2e/secret/x", True),
        ("https://example.com/*", "https://EXAMPLE.com/x", True),
        ("resource", "note://one", True),
        ("resource", "window://mail/inbox", False),
        ("prompt", "window://mail/inbox", False),
        ("*", "dpe://files/plan", True),
    ],
)
def test_a_deny_matches_every_form_of_a_uri(pattern: str, uri: str, matches: bool) -> None:
    assert (effect(rules({"effect": "deny", "reads": pattern}), uri) == "deny") is matches


@pytest.mark.parametrize(
    ("pattern", "uri", "matches"),
    [
        ("window://mail/*", "window://mail/inbox?priority=5", True),
        ("dpe://files/public*", "dpe://files/public-1/pages/3", True),
        ("dpe://files/*.md", "dpe://files/secret/elements/x.md", False),  # the document's own name counts
        ("dpe://files/public/*", "dpe://files/public%2F..%2Fsecret", False),
        ("dpe://files/plan", "dpe://files/plan?format=text", True),
        ("file:///public/*", "file:///public/a", True),
        ("file:///public/*", "file:///public/../secret", False),
        ("file:///public/*", "file:/public/../secret", False),
        ("file:///public/*", "file:///public/%2e%2e/secret", False),
        ("file:///public/*", "file:///public//etc/passwd", False),
    ],
)
def test_an_allow_matches_only_what_can_mean_one_thing(pattern: str, uri: str, matches: bool) -> None:
    allowed = rules({"effect": "allow", "reads": pattern}, {"effect": "deny"})
    assert effect(allowed, uri) == ("allow" if matches else "deny")


def test_a_rule_with_neither_is_about_calls_and_reads() -> None:
    recipe = rules({"effect": "allow", "tool": ["clock"]}, {"effect": "deny", "reason": "only the time"})
    assert effect(recipe, "window://mail/inbox") == effect(recipe, "dpe://a/b") == "deny"
    for kind in (ReadKind.PROMPT, ReadKind.SKILL, ReadKind.BLOB, ReadKind.CONFIG):
        verdict = decide_read(recipe, RuledRead(kind), NOON)
        assert verdict is not None and verdict.effect == "deny"
    for tool, expected in (("clock", "allow"), ("run", "deny")):
        verdict = decide(recipe, RuledCall(RuledTool("s", tool, tool)), NOON, RuleCounters())
        assert verdict is not None and verdict.effect == expected
    assert "whatever can be read" in sentence_of(recipe[1])


@pytest.mark.parametrize(
    "of_calls",
    [
        {"tool": "x"},
        {"args": {"path": {"absent": True}}},
        {"only_args": []},
        {"read_only": False},
        {"destructive": True},
        {"open_world": True},
    ],
)
def test_a_rule_with_a_condition_of_calls_is_not_about_reads(of_calls: dict[str, Any]) -> None:
    assert effect(rules({"effect": "deny", **of_calls}), "window://mail/inbox") is None
    assert parse_rules([{"effect": "deny", "reads": "window://*", **of_calls}])[1]


def test_a_rule_about_reads_is_not_about_calls() -> None:
    denied = rules({"effect": "deny", "reads": "*"})
    assert decide(denied, RuledCall(RuledTool("s", "x", "x")), NOON, RuleCounters()) is None
    assert RuleList(denied).about(RuledTool("s", "x", "x")) == []


@pytest.mark.parametrize("wrong", ["windows", "prompts", "", 5, [], [""], "window:/x"])
def test_a_kind_that_does_not_exist_is_a_mistake(wrong: object) -> None:
    assert parse_rules([{"effect": "deny", "reads": wrong}])[1]


def test_the_first_rule_that_matches_decides_by_server_and_agent() -> None:
    written = rules(
        {"effect": "allow", "reads": "window://*", "server": "books", "agent": "ada"},
        {"effect": "ask", "reads": "window://*", "office": "lab"},
        {"effect": "deny", "reads": ["window://*", "prompt"]},
    )
    assert effect(written, "window://a/b", "books") == "allow"
    assert effect(written, "window://a/b", "other") == "ask"
    eve = Asker("eve", "eve-key", bound=True, office="attic")
    assert effect(written, "window://a/b", "books", eve) == "deny"
    assert effect(written, "dpe://a/b", "books") is None


# --- verdicts that are kept


def verdicts(*raw: dict[str, Any], now: Moment = NOON) -> ReadVerdicts:
    return ReadVerdicts(RuleList(rules(*raw)), now, ADA)


def test_a_catalogue_of_4000_documents_is_decided_once() -> None:
    known = verdicts({"effect": "deny", "reads": "dpe://files/secret*"})
    uris = [f"dpe://files/{'secret' if n % 2 else 'plan'}-{n}" for n in range(4000)]
    for _ in range(5):
        shown = [uri for uri in uris if (verdict := known.of(DOCUMENT, "s", uri)) is None or verdict.effect != "deny"]
    assert len(shown) == 2000 and known.decided == 4000


def test_what_is_kept_is_bounded() -> None:
    known = verdicts({"effect": "deny", "reads": "dpe://files/secret*"})
    known.of(ReadKind.PROMPT, "s", "x" * 1000)
    assert not known._kept
    for n in range(MOST_KEPT + 10):
        known.of(ReadKind.PROMPT, "s", str(n))
    assert len(known._kept) == MOST_KEPT
    known.of(DOCUMENT, "s", "dpe://files/plan", listed=True)
    assert len(known._kept) == MOST_KEPT + 1 <= MOST_LISTED


@pytest.mark.parametrize(
    ("more", "good_for"),
    [
        ({}, float("inf")),
        ({"expires": "2999-01-01"}, 1e9),
        ({"hours": "12:20-18:00"}, 20 * 60),
        ({"hours": "09:00-12:05"}, 5 * 60),
        ({"hours": "20:00-08:00"}, 60 * 60),  # the clock may go forward or back at a full hour
    ],
)
def test_verdicts_are_good_until_an_hour_or_expiry_can_change_them(more: dict[str, Any], good_for: float) -> None:
    known = verdicts({"effect": "deny", "reads": "window://*", **more})
    assert known.is_good(known.rules, NOON.time + min(good_for, 1e9) - 1)
    if good_for < 1e9:
        assert not known.is_good(known.rules, NOON.time + good_for)
    assert not known.is_good(known.rules, NOON.time - 1)
    assert not known.is_good(RuleList(), NOON.time)


def test_an_expiry_ends_a_verdict() -> None:
    (rule,) = rules({"effect": "deny", "reads": "window://*", "expires": "2027-01-15T08:00:30+00:00"})
    assert rule.expires is not None
    known = ReadVerdicts(RuleList((rule,)), Moment(rule.expires - 10, 0), ADA)
    assert known.of(WINDOW, "s", "window://a/b") is not None
    assert known.is_good(known.rules, rule.expires - 1) and not known.is_good(known.rules, rule.expires)
    later = ReadVerdicts(RuleList((rule,)), Moment(rule.expires, 0), ADA)
    assert later.of(WINDOW, "s", "window://a/b") is None


@pytest.mark.parametrize(
    ("raw", "strictest"),
    [
        ([{"effect": "deny", "reads": "dpe://files/secret*"}], "deny"),
        ([{"effect": "deny", "reads": "*secret*://*"}], "deny"),
        ([{"effect": "deny", "reads": "dpe://other/*"}], None),
        ([{"effect": "deny", "reads": "dpe://files"}], None),
        ([{"effect": "allow", "reads": "dpe://files*"}, {"effect": "deny"}], None),
        ([{"effect": "allow", "reads": "dpe://files/p*"}, {"effect": "deny"}], "deny"),
        ([{"effect": "ask", "reads": "dpe://files/p*"}], "ask"),
        ([{"effect": "ask", "reads": "dpe://*"}, {"effect": "deny"}], "ask"),
        ([{"effect": "deny", "reads": "prompt"}, {"effect": "deny", "tool": "x"}], None),
        ([{"effect": "deny", "server": "other"}], None),
    ],
)
def test_what_tells_of_many_documents_gets_the_strictest_verdict(
    raw: list[dict[str, Any]], strictest: str | None
) -> None:
    found = verdicts(*raw).strictest_below("s", "dpe://files/")
    assert (None if found is None else found.effect) == strictest


# --- cards


def card(uri: str, kind: ReadKind | None = None, asker: Asker = ADA) -> Confirmation:
    read = RuledRead(kind or kind_of(uri), uri, "s", asker)
    return Confirmation("c", 0, None, None, reads=read)  # type: ignore[arg-type]


def test_a_card_for_a_read_makes_a_rule_about_this_document() -> None:
    decision = card("dpe://files/plan/pages/2")
    assert proposal_for(decision) is not None
    narrow = made_rule(decision, Accepted(widths=(0,)), "r")
    assert narrow is not None
    assert narrow.raw == {"id": "r", "effect": "allow", "reads": "dpe://files/plan", "server": "s", "agent": "ada"}
    wide = made_rule(decision, Accepted(always=True), "r")
    assert wide is not None and wide.agent == () and effect((wide,), "dpe://files/plan/pages/7") == "allow"
    assert effect((wide,), "dpe://files/planet") is None
    never = made_rule(decision, Declined("mine", never=True), "r")
    assert never is not None and (never.effect, never.reason) == ("deny", "mine")
    of_kind = made_rule(card("greet", ReadKind.PROMPT), Accepted(always=True), "r")
    assert of_kind is not None and of_kind.raw["reads"] == "prompt"
    assert made_rule(decision, Accepted(), "r") is None


@pytest.mark.parametrize("uri", ["file:///a/../b", "file:///a%20b", "note://*"])
def test_no_rule_is_made_for_an_address_that_may_mean_several(uri: str) -> None:
    assert proposal_for(card(uri)) is None
    with pytest.raises(BadRequestError):
        made_rule(card(uri), Accepted(always=True), "r")


@given(st.from_regex(_SIMPLE, fullmatch=True))
@settings(derandomize=True, deadline=None)
def test_a_simple_uri_has_one_form(uri: str) -> None:
    assert {*_forms(uri), plain_uri(uri)} == {uri} and _is_plain(uri)


def test_plain_uris() -> None:
    assert plain_uri("dpe://h/a%20b/pages/3?x=1") == "dpe://h/a b"
    assert plain_uri("window://h/a%2Fb?priority=1") == "window://h/a/b"
    assert plain_uri("dpe://h") == "dpe://h"


def test_the_command_says_which_rule_decides_a_read(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text('[[rules]]\nid = "mine"\neffect = "deny"\nreads = ["window://mail/*", "prompt"]\nagent = "ada"\n')

    def said(*given: str) -> str:
        return CliRunner().invoke(app, ["rules", "test", str(file), *given]).output

    assert "deny: rule mine, number 1 of 1" in said("--read", "window://mail/inbox?priority=1", "--agent", "ada")
    assert "what is read is window://mail/*, prompt" in said("--read", "prompt", "--agent", "ada")
    assert "no rule matches (1 rule): it may be read" in said("--read", "window://news/1", "--agent", "ada")
    assert "no rule matches" in said("--read", "prompt", "--agent", "ben")
    assert "must be a URI with its scheme" in said("--read", "prompts")
    assert "give a --call or a --read" in said() + said("--call", "x", "--read", "prompt")

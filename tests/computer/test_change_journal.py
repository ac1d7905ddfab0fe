"""What the announced changes are about, and whether an agent may hear of them."""

from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.decisions.store import DecisionStore
from a2c_smcp.computer.resources.read_guard import ReadGuard
from a2c_smcp.computer.rules.rule import parse_rules
from a2c_smcp.computer.watching.change_journal import MOST_NOTED, ChangeFanOut, ChangeJournal
from a2c_smcp.smcp import (
    UPDATE_CONFIG_EVENT,
    UPDATE_DESKTOP_EVENT,
    UPDATE_FINDER_EVENT,
    UPDATE_PROMPTS_EVENT,
    UPDATE_RESOURCES_EVENT,
    UPDATE_SKILLS_EVENT,
    UPDATE_TOOL_LIST_EVENT,
)


def test_what_has_changed_is_taken_once_and_is_bounded() -> None:
    everybody, journal = ChangeFanOut(), ChangeJournal()
    everybody.note("e", "s", lambda: 1 / 0)  # type: ignore[arg-type, return-value]  # nobody listens: not called
    everybody.add(journal)
    everybody.note("e", "s", lambda: ["a", "b"])
    everybody.note("e", "t", lambda: ["a"])
    assert journal.take("e") == {("s", "a"), ("s", "b"), ("t", "a")} and journal.take("e") == set()
    everybody.note("e", "s", lambda: map(str, range(MOST_NOTED + 1)))
    everybody.note("e", "s", lambda: ["a"])
    assert journal.take("e") is None
    everybody.note("e", "s", lambda: None)
    assert journal.take("e") is None
    everybody.discard(journal)
    everybody.note("e", "s", lambda: ["a"])
    assert journal.take("e") == set()


def test_an_agent_hears_of_nothing_that_it_may_not_read() -> None:
    decisions = DecisionStore()
    sight = ReadGuard(decisions, None, 10).sight_of(Asker("ada"))
    assert sight.tells(UPDATE_DESKTOP_EVENT, {("s", "window://a/b")})
    raw = [{"effect": "deny", "reads": ["window://a/*", "note://*", "prompt", "skill", "config"]}]
    decisions.rules.use_config(parse_rules(raw)[0])
    sight = ReadGuard(decisions, None, 10).sight_of(Asker("ada"))
    assert not sight.tells(UPDATE_DESKTOP_EVENT, {("s", "window://a/b")})
    assert not sight.tells(UPDATE_DESKTOP_EVENT, set())  # an earlier announcement told of it, or kept it back
    assert sight.tells(UPDATE_DESKTOP_EVENT, {("s", "window://a/b"), ("s", "window://c/d")})
    assert sight.tells(UPDATE_DESKTOP_EVENT, None) and sight.tells(UPDATE_FINDER_EVENT, None)
    assert not sight.tells(UPDATE_RESOURCES_EVENT, {("s", "note://one")})
    assert sight.tells(UPDATE_RESOURCES_EVENT, {("s", "ui://one")})
    assert not sight.tells(UPDATE_PROMPTS_EVENT, {("s", "")})
    assert not sight.tells(UPDATE_SKILLS_EVENT, set()) and not sight.tells(UPDATE_CONFIG_EVENT, set())
    assert sight.tells(UPDATE_TOOL_LIST_EVENT, set())
    decisions.rules.use_config(parse_rules([{"effect": "deny"}])[0])
    sight = ReadGuard(decisions, None, 10).sight_of(Asker("ada"))
    for event in (UPDATE_DESKTOP_EVENT, UPDATE_FINDER_EVENT, UPDATE_RESOURCES_EVENT, UPDATE_PROMPTS_EVENT):
        assert not sight.tells(event, None)

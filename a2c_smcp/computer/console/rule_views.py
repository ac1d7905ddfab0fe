"""Rules as JSON for the page: what is proposed on a card, what changed in a tool, and the list of rules. Pure.

A rule is shown in words. The page has a sentence for the key of each phrase, in its language.
"""

import re
from typing import Any, Final

from a2c_smcp.computer.decisions.book import Confirmation, ToolDefinition
from a2c_smcp.computer.decisions.made_rules import no_proposal_for, proposal_for
from a2c_smcp.computer.decisions.shown_text import text_start, words
from a2c_smcp.computer.decisions.tool_changes import part_text
from a2c_smcp.computer.rules.deciding import RuleVerdict
from a2c_smcp.computer.rules.difference import word_changes
from a2c_smcp.computer.rules.replaying import ReplayedCall
from a2c_smcp.computer.rules.rule import Rule
from a2c_smcp.computer.rules.store import ListedRule
from a2c_smcp.computer.rules.toml_text import rule_text
from a2c_smcp.computer.rules.words import effect_phrase, rule_phrases
from a2c_smcp.errors import BadRequestError
from a2c_smcp.utils.secret_shapes import hidden
from a2c_smcp.utils.text import visible

__all__ = ["difference_view", "is_tool_wide", "parted", "proposal_view", "replayed_view", "rule_view", "verdict_view"]

#: Characters of a part of a tool that a card shows before and after a change.
_LONGEST_TEXT: Final = 100_000
_PREVIEW: Final = 200
#: What a rule for a whole tool has, and no more.
_TOOL_WIDE: Final = frozenset({"id", "effect", "tool", "server", "digest", "reason", "expires"})
#: The comment above a rule that was made on a page or in a terminal.
_MADE: Final = re.compile(r"made on (\d{4}-\d\d-\d\d \d\d:\d\d) by (.+)")


def proposal_view(decision: Confirmation) -> dict[str, Any]:
    """The rule for calls like this one: what is fixed, and the steps of each part, from the narrowest on. Each has
    examples of what it would newly allow. `none` says why there is no such rule.
    """
    if (proposal := proposal_for(decision)) is None:
        return {"none": no_proposal_for(decision)[0]}
    return {
        "fixed": [phrase.data for phrase in proposal.fixed],
        "parts": [
            {
                "name": visible(part.name),
                "steps": [{**step.phrase.data, "examples": list(step.examples)} for step in part.steps],
            }
            for part in proposal.parts
        ],
    }


def difference_view(before: ToolDefinition, now: ToolDefinition) -> list[dict[str, Any]]:
    """Each part of a tool that has changed, word by word. `cut` counts the characters that are left out."""
    texts = {part: (part_text(before, part), part_text(now, part)) for part in now.changes_since(before)}
    return [
        {
            "part": part,
            "changes": [[kind, words(text)] for kind, text in word_changes(old[:_LONGEST_TEXT], new[:_LONGEST_TEXT])],
            "cut": max(0, len(old) - _LONGEST_TEXT) + max(0, len(new) - _LONGEST_TEXT),
        }
        for part, (old, new) in texts.items()
    ]


def rule_view(listed: ListedRule, *, is_asleep: bool) -> dict[str, Any]:
    """A rule of the list: what it says, who made it, how often it decided, and its text to edit."""
    rule = listed.rule
    comment, made = parted(listed.comment)
    try:
        text = rule_text(rule.raw)
    except BadRequestError:  # a value that only a config file can have
        text = ""
    return {
        "id": rule.id,
        "effect": rule.effect,
        "says": effect_phrase(rule).key,
        "phrases": [phrase.data for phrase in rule_phrases(rule)],
        "reason": visible(rule.reason),
        "source": listed.source,
        "matched": listed.matched,
        "last": listed.last,
        "asleep": is_asleep,
        "expires": rule.expires,
        "comment": visible(comment),
        "made": None if made is None else {"at": made[1], "by": made[2]},
        "text": text,
        "of_tool": [rule.server[0].text, rule.tool[0].text] if is_tool_wide(rule) else None,
    }


def parted(comment: str) -> tuple[str, re.Match[str] | None]:
    """The words of a comment above a rule, and its last line if that says when it was made and by whom."""
    *words_of, last = comment.splitlines() or [""]
    made = _MADE.fullmatch(last)
    return (comment if made is None else "\n".join(words_of)), made


def is_tool_wide(rule: Rule) -> bool:
    """Whether it is about all calls of one tool of one server, and nothing else."""
    return set(rule.raw) <= _TOOL_WIDE and len(rule.tool) == len(rule.server) == 1 and not rule.tool[0].is_wide


def replayed_view(found: ReplayedCall) -> dict[str, Any]:
    """A past call, and what other rules would have said of it."""
    call = found.past.call
    return {
        "tool": visible(call.tool.name),
        "agent": None if call.asker is None else visible(call.asker.name),
        "at": found.past.at,
        "arguments": hidden(text_start(call.arguments, _PREVIEW)[0]),
        "before": _verdict_view(found.before),
        "after": _verdict_view(found.after),
    }


def _verdict_view(verdict: RuleVerdict | None) -> dict[str, Any] | None:
    return None if verdict is None else verdict_view(verdict)


def verdict_view(verdict: RuleVerdict) -> dict[str, Any]:
    """What decides a call: the rule, what it says, and its words."""
    rule = verdict.rule
    return {
        "id": rule.id,
        "effect": verdict.effect,
        "says": effect_phrase(rule).key,
        "phrases": [phrase.data for phrase in rule_phrases(rule)],
        "asleep": verdict.is_asleep,
    }

"""Rules as JSON for the page: what is proposed on a card, what changed in a tool, and the list of rules. Pure.

A rule is shown in words. The page has a sentence for the key of each phrase, in its language.
"""

from typing import Any, Final

from a2c_smcp.computer.decisions.book import Confirmation, ToolDefinition
from a2c_smcp.computer.decisions.made_rules import proposal_for
from a2c_smcp.computer.decisions.shown_text import words
from a2c_smcp.computer.decisions.tool_changes import part_text
from a2c_smcp.computer.rules.difference import word_changes
from a2c_smcp.computer.rules.store import ListedRule
from a2c_smcp.computer.rules.words import rule_phrases
from a2c_smcp.utils.text import visible

__all__ = ["difference_view", "proposal_view", "rule_view"]

#: Characters of a part of a tool that a card shows before and after a change.
_LONGEST_TEXT: Final = 100_000


def proposal_view(decision: Confirmation) -> dict[str, Any] | None:
    """The rule for calls like this one: what is fixed, and the steps of each part, from the narrowest on."""
    if (proposal := proposal_for(decision)) is None:
        return None
    return {
        "fixed": [phrase.data for phrase in proposal.fixed],
        "parts": [
            {"name": visible(part.name), "steps": [step.phrase.data for step in part.steps]} for part in proposal.parts
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
    rule = listed.rule
    return {
        "id": rule.id,
        "effect": rule.effect,
        "phrases": [phrase.data for phrase in rule_phrases(rule)],
        "reason": visible(rule.reason),
        "source": listed.source,
        "matched": listed.matched,
        "last": listed.last,
        "asleep": is_asleep,
    }

"""Proposes rules for a read that a person looks at: this window, document or resource; prompts and the like by their
kind. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from a2c_smcp.computer.rules.examples import newly_readable
from a2c_smcp.computer.rules.proposing import Proposal, Step, Widening, asker_steps
from a2c_smcp.computer.rules.reads import ReadKind, RuledRead
from a2c_smcp.computer.rules.rule import Effect, Rule, parse_rules
from a2c_smcp.computer.rules.words import Phrase, rule_phrases
from a2c_smcp.errors import BadRequestError
from a2c_smcp.utils.secret_shapes import hidden

__all__ = ["ReadProposal", "propose_read", "read_rule"]

_WITH_URI = (ReadKind.WINDOW, ReadKind.DOCUMENT, ReadKind.RESOURCE)


class ReadProposal(Proposal):
    """The rule that allows a read. Its only part is the agent."""

    __slots__ = ()

    def rule(self, rule_id: str, widths: Sequence[int] = ()) -> Rule:
        """The rule with these widths. Raises `BadRequestError` for a width that no part has."""
        chosen = [*widths, *(0 for _ in self.parts[len(widths) :])]
        if len(chosen) > len(self.parts):
            raise BadRequestError("there are more widths than parts of the rule")
        raw: dict[str, Any] = {"id": rule_id, **self.base}
        for part, width in zip(self.parts, chosen, strict=True):
            if not 0 <= width < len(part.steps):
                raise BadRequestError("the rule cannot be widened like this")
            written = part.steps[width].written
            raw |= written if isinstance(written, Mapping) else {}
        return _parsed(raw)

    @property
    def fixed(self) -> list[Phrase]:
        """What no width changes."""
        return rule_phrases(_parsed({"id": "shown", **self.base}))


def propose_read(read: RuledRead) -> ReadProposal | None:
    """The narrowest rule that allows this read; `None` if there is none, because its URI may mean several things."""
    try:
        base = _base(read, "allow")
    except BadRequestError:
        return None
    who = () if read.asker is None else asker_steps(read.asker)
    steps = (*who, Step(Phrase("anyagent"), None))
    bare = ReadProposal(base, (Widening("", steps),))
    shown = newly_readable([bare.rule("shown", (width,)) for width in range(len(steps))], read)
    shown_steps = tuple(replace(step, examples=found) for step, found in zip(steps, shown, strict=True))
    return ReadProposal(base, (Widening("", shown_steps),))


def read_rule(read: RuledRead, rule_id: str, effect: Effect, reason: str = "") -> Rule:
    """The rule that allows or denies this read for every agent. Raises `BadRequestError` if there can be none."""
    return _parsed({"id": rule_id, **_base(read, effect), **({"reason": reason} if reason else {})})


def _base(read: RuledRead, effect: Effect) -> dict[str, Any]:
    pattern = read.document if read.kind in _WITH_URI else read.kind.value
    if hidden(pattern) != pattern:
        raise BadRequestError("no rule can be made for this address: it has a secret in it")
    if "*" in pattern or "?" in pattern or _is_wide(read.server) or (read.kind in _WITH_URI and not read.is_plain):
        raise BadRequestError("no rule can be made for this address: it may mean several; write one by hand")
    return {"effect": effect, "reads": pattern, **({"server": read.server} if read.server else {})}


def _parsed(raw: dict[str, Any]) -> Rule:
    rules, problems = parse_rules([raw])
    if problems:
        raise BadRequestError(f"no rule can be made for this: {problems[0].message}")
    return rules[0]


def _is_wide(name: str) -> bool:
    return "*" in name or "?" in name

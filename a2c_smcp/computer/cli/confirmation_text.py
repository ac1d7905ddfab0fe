"""A call that waits for a yes, as lines for a terminal: first a short view, then all of it. Pure.

What others wrote stands beside its name, or behind a bar on lines that are no wider than the terminal. So none of it
looks like words of ours.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from prompt_toolkit.utils import get_cwidth

from a2c_smcp.computer.decisions.book import Confirmation
from a2c_smcp.computer.decisions.shown_text import ArgumentRow, argument_rows, card_text, has_mixed_scripts
from a2c_smcp.computer.decisions.tool_changes import part_text
from a2c_smcp.computer.rules.difference import word_changes
from a2c_smcp.utils.text import cut, printable

__all__ = ["FirstLook", "first_look", "whole"]


@dataclass(frozen=True, slots=True)
class _Most:
    """How much the short view shows. Every argument gets its share, so that no argument hides another."""

    arguments: int = 40
    lines: int = 60
    """Of all arguments together. Each argument has at least one line."""
    lines_of_one: int = 8
    characters_of_a_line: int = 80
    characters_of_a_name: int = 100
    lines_of_the_description: int = 6
    characters_of_a_title: int = 200
    characters_of_a_change: int = 2000

    def lines_of_each(self, arguments: int) -> int:
        return max(1, min(self.lines_of_one, self.lines // max(1, arguments)))


_MOST: Final = _Most()
_BAR: Final = "  │ "


@dataclass(frozen=True, slots=True)
class FirstLook:
    lines: Sequence[str]
    is_cut: bool
    """Whether a part of the arguments, or of what changed in the tool, is not in the lines."""
    has_more: bool
    """Whether a part of the arguments or of the tool's description is not in the lines."""
    has_secrets: bool = False
    """Whether passwords or keys are hidden in the lines."""


def first_look(decision: Confirmation, width: int) -> FirstLook:
    """Who asks for which tool, and the beginning of each argument. What is left out is counted."""
    said, unsaid = _beginning(decision.definition.description, _MOST.lines_of_the_description)
    changed = [*_changes(decision, _MOST.characters_of_a_change, width)]
    has_cut_changes = changed != [*_changes(decision, None, width)]
    lines = [*_heading(decision), *changed, *_about(decision), *_description(said, unsaid, width)]
    lines += _before_arguments(decision)
    rows = argument_rows(decision.call.arguments)
    each = _MOST.lines_of_each(len(rows))
    has_cut_arguments, has_secrets = len(rows) > _MOST.arguments, False
    for row in rows[: _MOST.arguments]:
        said, rest = _beginning(row.text, each)
        has_secrets = has_secrets or (shown := card_text(row, said)) != said
        name, rest_of_name = row.name[: _MOST.characters_of_a_name], row.name[_MOST.characters_of_a_name :]
        lines += _argument(ArgumentRow(name + ("…" if rest_of_name else ""), shown, row.is_text), width)
        if rest or rest_of_name:
            has_cut_arguments = True
            lines.append(_left_out(rest_of_name + rest))
    if len(rows) > _MOST.arguments:
        lines.append(f"  … {len(rows) - _MOST.arguments} more arguments are not shown")
    is_cut = has_cut_arguments or has_cut_changes
    return FirstLook(lines, is_cut, has_more=is_cut or bool(unsaid), has_secrets=has_secrets)


def whole(decision: Confirmation, width: int, *, secrets: bool = False) -> Iterator[str]:
    """All of the call, with nothing left out, and with its secrets if the person wants to see them. There may be very
    many lines.
    """
    yield from _heading(decision)
    yield from _changes(decision, None, width)
    yield from _about(decision)
    yield from _description(decision.definition.description, "", width)
    yield from _before_arguments(decision)
    for row in argument_rows(decision.call.arguments):
        yield from _argument(row if secrets else replace(row, text=card_text(row, row.text)), width)


def _heading(decision: Confirmation) -> Iterator[str]:
    call, definition = decision.call, decision.definition
    agent, tool, server = call.agent or "an agent", call.tool or call.name, call.server or ""
    key = call.key or ""
    office = f" in office {printable(call.office)}" if call.office else ""
    what = f"read a {decision.reads.kind}" if decision.reads is not None else f"run {printable(tool)}"
    asks = f"asks to {what} of {printable(server)}"
    if call.agent and call.claimed:
        yield f"An agent says it is {printable(agent)}{office}."
        yield f"  It {asks}"
    else:
        yield f"{printable(agent)}{office} {asks}"
    if key:
        yield f"  Its key is {printable(key)}."
    if call.name != tool:
        yield f"  Agents know it as {printable(call.name)}."
    for name in dict.fromkeys((agent, key, call.office or "", tool, server)):
        if has_mixed_scripts(name):
            yield f"  ! The name {printable(name)} has letters of several alphabets: it may look like another one."
    if definition.is_dangerous:
        yield "  ! It may destroy something: its server says so, or its config tags it as dangerous."


def _about(decision: Confirmation) -> Iterator[str]:
    definition = decision.definition
    if definition.title:
        yield f"  Its title: {printable(cut(definition.title, _MOST.characters_of_a_title))}"
    said = [(hint, value) for hint, value in definition.annotations.items() if isinstance(value, bool)]
    if said:
        hints = ", ".join(f"{hint}: {'yes' if value else 'no'}" for hint, value in said)
        yield f"  Its hints: {printable(cut(hints, _MOST.characters_of_a_title))}"


def _changes(decision: Confirmation, most: int | None, width: int) -> Iterator[str]:
    """What changed in a tool since a rule was made for it, word by word; of each part at most `most` characters."""
    before, now = decision.allowed_before, decision.definition
    if before is None:
        return
    if not before.digest:
        yield "  ! A rule was made for another tool than this one is now. How that one was is not known here."
        return
    changed = now.changes_since(before)
    yield f"  ! A rule allowed it. Since then this has changed: {', '.join(changed) or 'its name'}."
    for part in changed:
        marks = {"same": "{}", "gone": "[-{}-]", "new": "{{+{}+}}"}
        parts = word_changes(part_text(before, part), part_text(now, part))
        text = "".join(marks[kind].format(_shortened(words) if kind == "same" else words) for kind, words in parts)
        yield f"    {part}:"
        yield from _barred(text[:most], width)
        if rest := text[len(text[:most]) :]:
            yield _left_out(rest)


def _shortened(text: str) -> str:
    """What stays the same is shown by its ends only."""
    return text if len(text) <= 80 else f"{text[:35]} … {text[-35:]}"


def _description(said: str, unsaid: str, width: int) -> Iterator[str]:
    if said.strip():
        yield "  What its server says about it:"
        yield from _barred(said, width)
    if unsaid:
        yield _left_out(unsaid)


def _before_arguments(decision: Confirmation) -> Iterator[str]:
    yield "  With these arguments:" if decision.call.arguments else "  Without arguments."


def _argument(row: ArgumentRow, width: int) -> Iterator[str]:
    name = _flat(row.name)
    text = row.text if row.text or not row.is_text else '""'
    if "\n" not in text and len(text) <= width and get_cwidth(line := f"  {name}: {_flat(text)}") <= width:
        yield line
        return
    yield from (f"  {piece}" for piece in _folded(f"{name}:", width - 2))
    yield from _barred(text, width)


def _barred(text: str, width: int) -> Iterator[str]:
    for line in text.split("\n"):
        for piece in _folded(_flat(line), width - len(_BAR)):
            yield _BAR + piece


def _flat(text: str) -> str:
    """On one line, with blanks for tabs: the width of a tab depends on its column."""
    return printable(text).expandtabs(4)


def _folded(line: str, width: int) -> Iterator[str]:
    """The line in pieces of at most `width` columns. Many characters take two."""
    piece, taken = "", 0
    for character in line:
        columns = get_cwidth(character)
        if taken + columns > max(width, 20):
            yield piece
            piece, taken = "", 0
        piece += character
        taken += columns
    yield piece


def _beginning(text: str, lines: int) -> tuple[str, str]:
    """The first `lines` lines and the rest. Of long lines, less is kept."""
    kept = "\n".join(text.split("\n", lines)[:lines])[: lines * _MOST.characters_of_a_line]
    return kept, text[len(kept) :]


def _left_out(rest: str) -> str:
    lines = rest.count("\n")
    more = f" on {lines:,} more {'line' if lines == 1 else 'lines'}" if lines else ""
    return f"    … {len(rest):,} more {'character is' if len(rest) == 1 else 'characters are'} not shown{more}"

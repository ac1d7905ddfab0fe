"""Asks the person at the terminal whether an agent's call may run. A yes counts only after all of the call was
shown.
"""

import shutil
import time
from itertools import islice
from typing import Final

from a2c_smcp.computer.cli.confirmation_text import first_look, whole
from a2c_smcp.computer.cli.output import Output, printable
from a2c_smcp.computer.cli.terminal import Terminal
from a2c_smcp.computer.decisions.book import Accepted, Confirmation, DecisionAnswer, Declined
from a2c_smcp.computer.decisions.made_rules import no_proposal_for, proposal_for

__all__ = ["answer_of", "ask_to_confirm"]

_SHOW: Final = ("s", "show", "show all")
_REVEAL: Final = ("r", "reveal")
_LIKE: Final = ("l", "like", "like this")
_UNSEEN: Final = "yes!"


def answer_of(typed: str) -> DecisionAnswer | None:
    """The answer that a line means, or `None`. Only a no may have more words: they are its reason."""
    first, _, words = typed.strip().partition(" ")
    match first.lower(), words.strip():
        case (("y" | "yes"), ""):
            return Accepted()
        case (("a" | "always"), ""):
            return Accepted(always=True)
        case (("n" | "no"), reason):
            return Declined(reason)
        case ("never", reason):
            return Declined(reason, never=True)
    return None


async def ask_to_confirm(terminal: Terminal, output: Output, decision: Confirmation) -> DecisionAnswer:
    """The person's decision, asked in the caller's `turn`. Ctrl-C and Ctrl-D raise as in `Terminal.text`.

    While a part of the arguments has not been on the screen, `y`, `l` and `a` decide nothing. A program gets all
    arguments in its line, so its `y` counts at once.
    """
    width = shutil.get_terminal_size().columns
    look = first_look(decision, width)
    _tell(output, decision, "\n".join(look.lines))
    rest = whole(decision, width)
    is_unseen, has_more = look.is_cut and not output.has_lines, look.has_more
    has_secrets = look.has_secrets
    while True:
        typed = await terminal.text(_question(decision, has_more, has_secrets))
        word, answer = typed.strip().lower(), answer_of(typed)
        if has_more and word in _SHOW:
            portion = list(islice(rest, 1000))  # an agent may send megabytes
            has_more = len(portion) == 1000
            is_unseen = is_unseen and has_more
            output.text("\n".join([*portion, "  … s shows more" if has_more else "  That is all of it."]))
        elif word in _REVEAL:
            rest, has_more, has_secrets = whole(decision, width, secrets=True), True, False
            output.text("Type s to see all of it, with passwords and keys.")
        elif is_unseen and word == _UNSEEN:
            return Accepted()
        elif is_unseen and (isinstance(answer, Accepted) or word in _LIKE):
            output.text(f"A part of it was not shown. Type s to see it; then {word} counts. {_UNSEEN} runs it unseen.")
        elif word in _LIKE:
            if (like := await _ask_for_rule(terminal, output, decision)) is not None:
                return like
        elif answer is not None:
            return answer


async def _ask_for_rule(terminal: Terminal, output: Output, decision: Confirmation) -> Accepted | None:
    """Show the narrowest rule that covers this call, and let the person widen it. `None` if they take it back."""
    if (proposal := proposal_for(decision)) is None:
        output.text(printable(f"No rule like this can be made: {no_proposal_for(decision)[1]}."))
        return None
    widths = [0] * len(proposal.parts)
    fixed = len(proposal.fixed)
    while True:
        said = proposal.sentences(widths)
        lines = ["A rule would allow such calls from now on, if all of this is so:"]
        lines += [f"      {printable(sentence)}" for sentence in said[:fixed]]
        for number, (sentence, examples) in enumerate(zip(said[fixed:], proposal.examples(widths), strict=True), 1):
            lines.append(f"  {number:>3} {printable(sentence)}")
            if examples:
                lines.append(f"        so it would also allow {printable(' · '.join(examples))}")
        output.text("\n".join(lines))
        widen = "a number widens that part, " if proposal.parts else ""
        typed = (await terminal.text(f"Make this rule and run it? y(es), {widen}b(ack): ")).strip().lower()
        if typed in ("y", "yes"):
            return Accepted(widths=tuple(widths))
        if typed in ("b", "back", "n", "no"):
            return None
        if typed.isascii() and typed.isdigit() and 1 <= int(typed[:9]) <= len(widths):
            part = int(typed) - 1
            # After the widest comes the narrowest again.
            widths[part] = (widths[part] + 1) % len(proposal.parts[part].steps)


def _question(decision: Confirmation, has_more: bool, has_secrets: bool) -> str:
    seconds = _seconds(decision)
    within = "" if seconds is None else f" within {seconds:.0f} s"
    show = (", s(how all)" if has_more else "") + (", r(eveal)" if has_secrets else "")
    return f"Run it? y(es), l(ike this), a(lways), n(o), never{show}{within}: "


def _seconds(decision: Confirmation) -> float | None:
    return None if decision.deadline is None else max(0.0, round(decision.deadline - time.time(), 1))


def _tell(output: Output, decision: Confirmation, text: str) -> None:
    call, definition = decision.call, decision.definition
    output.event(
        "confirm_request",
        text,
        decision=decision.id,
        req_id=call.req_id,
        agent=call.agent,
        key=call.key,
        claimed=call.claimed,
        office=call.office,
        server=call.server or "",
        tool=call.tool or "",
        params=call.arguments,
        title=definition.title,
        description=definition.description,
        annotations=definition.annotations,
        dangerous=definition.is_dangerous,
        seconds=_seconds(decision),
    )

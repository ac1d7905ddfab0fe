"""Asks the person at the terminal whether an agent's call may run: who asks, which tool, which arguments."""

import json
import time

from a2c_smcp.computer.cli.output import Output, printable, quoted
from a2c_smcp.computer.cli.terminal import Terminal
from a2c_smcp.computer.decisions import Accepted, Confirmation, DecisionAnswer, Declined

__all__ = ["answer_of", "ask_to_confirm"]


def answer_of(typed: str) -> DecisionAnswer | None:
    """What a person's line stands for, or `None`: only a no may be followed by words, which are its reason."""
    first, _, words = typed.strip().partition(" ")
    match first.lower(), words.strip():
        case (("y" | "yes"), ""):
            return Accepted()
        case (("a" | "always"), ""):
            return Accepted(always=True)
        case (("n" | "no"), reason):
            return Declined(reason)
    return None


async def ask_to_confirm(terminal: Terminal, output: Output, decision: Confirmation) -> DecisionAnswer:
    """What the person decides; in the caller's `turn`. Asked again until the answer stands for
    something. Ctrl-C and Ctrl-D raise as in `Terminal.text`."""
    call = decision.call
    server, tool = call.server or "", call.tool or ""
    seconds = None if decision.deadline is None else max(0.0, round(decision.deadline - time.time(), 1))
    within = "" if seconds is None else f" within {seconds:.0f} s"
    output.event(
        "confirm_request",
        f"{printable(call.agent or 'an agent')} asks to run {printable(tool)} of {printable(server)} with\n"
        + quoted(json.dumps(call.arguments, indent=2, ensure_ascii=False)),
        decision=decision.id,
        req_id=call.req_id,
        agent=call.agent,
        server=server,
        tool=tool,
        params=call.arguments,
        seconds=seconds,
    )
    while (answer := answer_of(await terminal.text(f"Run it? y(es), n(o) and why, a(lways){within}: "))) is None:
        pass
    return answer

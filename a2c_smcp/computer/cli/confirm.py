"""Asks the person at the terminal whether an agent's call may run: who asks, which tool, which arguments."""

import json
import time
from typing import Final

from a2c_smcp.computer.cli.output import Output, printable, quoted
from a2c_smcp.computer.cli.terminal import Terminal
from a2c_smcp.computer.decisions import Accepted, Confirmation, DecisionAnswer, Declined

__all__ = ["ask_to_confirm"]

_CHOICES: Final = {"y": "yes", "yes": "yes", "n": "no", "no": "no", "a": "always", "always": "always"}


async def ask_to_confirm(terminal: Terminal, output: Output, decision: Confirmation) -> DecisionAnswer:
    """What the person decides; in the caller's `turn`. Ctrl-C and Ctrl-D raise as in `Terminal.choose`."""
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
    answer = await terminal.choose(f"Run it? y(es), n(o), a(lways){within}: ", _CHOICES)
    return Declined() if answer == "no" else Accepted(always=answer == "always")

"""Puts the question of an MCP server to the person at the terminal: a form, field by field, or a page to visit.

The server's words cannot control the terminal. The person's answer is in no line for programs.
"""

import time
from dataclasses import dataclass

from a2c_smcp.computer.calls.log import WatchedCall
from a2c_smcp.computer.cli.output import Output, printable, quoted
from a2c_smcp.computer.cli.terminal import Terminal
from a2c_smcp.computer.decisions.book import Accepted, DecisionAnswer, Declined, Dismissed, Question
from a2c_smcp.terminal.form_dialogue import YES_NO, fill_in, url_lines
from a2c_smcp.utils.forms import parse_form

__all__ = ["ask_a_question"]


@dataclass(frozen=True, slots=True)
class _AtTerminal:
    """The `Dialogue` at a computer's terminal, in the caller's turn."""

    terminal: Terminal
    output: Output

    def show(self, text: str) -> None:
        self.output.text(text)

    async def choose(self, question: str, choices: dict[str, str]) -> str:
        return await self.terminal.choose(question, choices)

    async def text(self, question: str, default: str = "") -> str:
        return await self.terminal.text(question, default)


async def ask_a_question(terminal: Terminal, output: Output, question: Question) -> DecisionAnswer:
    """The person's answer, asked in the caller's `turn`. Ctrl-C and Ctrl-D dismiss the question; they do not refuse."""
    seconds = None if question.deadline is None else max(0.0, round(question.deadline - time.time(), 1))
    within = "" if seconds is None else f" within {seconds:.0f} s"
    output.event(
        "question_request",
        _intro(question),
        decision=question.id,
        server=question.server,
        message=question.message,
        schema=question.schema,
        url=question.url,
        call=question.call and question.call.req_id,
        calls=[
            {
                "req_id": call.req_id,
                "agent": call.agent,
                "claimed": call.claimed,
                "tool": call.tool,
            }
            for call in question.calls
        ],
        seconds=seconds,
    )
    try:
        if question.url is not None:
            answer = await terminal.choose(f"Open it yourself. Is it done? y(es), n(o){within}: ", YES_NO)
            return Accepted() if answer == "yes" else Declined()
        if await terminal.choose(f"Answer? y(es), n(o){within}: ", YES_NO) == "no":
            return Declined()
        content = await fill_in(_AtTerminal(terminal, output), question.server, parse_form(question.schema or {}))
        return Declined() if content is None else Accepted(content)
    except (KeyboardInterrupt, EOFError):
        return Dismissed()


# --- what is shown


def _intro(question: Question) -> str:
    lines = [f"{printable(question.server)} asks {_whose(question)}", quoted(question.message)]
    if question.url is not None:
        lines += url_lines(question.url)
    return "\n".join(lines)


def _whose(question: Question) -> str:
    if question.call is not None:
        return f"while it runs {_named(question.call)}:"
    if question.calls:
        return f"while it runs one of these: {', '.join(map(_named, question.calls))}:"
    return "by itself, while it runs no call:"


def _named(call: WatchedCall) -> str:
    says = "an agent that says it is " if call.claimed else ""
    return f"{printable(call.tool or call.name)} for {f'{says}{printable(call.agent)}' if call.agent else 'you'}"

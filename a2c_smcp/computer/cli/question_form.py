"""Puts the question of an MCP server to the person at the terminal: a form, field by field, or a page to visit.

The server's words cannot control the terminal. The person's answer is in no line for programs.
"""

import time
from typing import Final
from urllib.parse import urlsplit

from a2c_smcp.computer.calls.log import WatchedCall
from a2c_smcp.computer.cli.output import Output, printable, quoted
from a2c_smcp.computer.cli.terminal import Terminal
from a2c_smcp.computer.decisions.book import Accepted, DecisionAnswer, Declined, Dismissed, Question
from a2c_smcp.computer.mcp_clients.elicitation.forms import (
    FieldKind,
    FieldOption,
    FieldValue,
    FormField,
    QuestionForm,
    parse_form,
)
from a2c_smcp.utils.text import cut

__all__ = ["ask_a_question"]

_YES_NO: Final = {"y": "yes", "yes": "yes", "n": "no", "no": "no"}
_SEND: Final = {**_YES_NO, "e": "edit", "edit": "edit"}
_HINTS: Final = {
    FieldKind.NUMBER: "a number",
    FieldKind.INTEGER: "a whole number",
    FieldKind.YES_NO: "yes or no",
    FieldKind.CHOICE: "one of these",
    FieldKind.SEVERAL: "any of these, with commas between them",
}


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
        calls=[{"req_id": call.req_id, "agent": call.agent, "tool": call.tool} for call in question.calls],
        seconds=seconds,
    )
    try:
        if question.url is not None:
            answer = await terminal.choose(f"Open it yourself. Is it done? y(es), n(o){within}: ", _YES_NO)
            return Accepted() if answer == "yes" else Declined()
        if await terminal.choose(f"Answer? y(es), n(o){within}: ", _YES_NO) == "no":
            return Declined()
        return await _fill_in(terminal, output, question.server, parse_form(question.schema or {}))
    except (KeyboardInterrupt, EOFError):
        return Dismissed()


async def _fill_in(terminal: Terminal, output: Output, server: str, form: QuestionForm) -> DecisionAnswer:
    """Ask for each field, then show all values, until the person sends or refuses them."""
    content: dict[str, FieldValue] = {}
    while form.fields:
        for field in form.fields:
            value = await _ask_field(terminal, output, field, content.get(field.name, field.default))
            if value is None:
                content.pop(field.name, None)
            else:
                content[field.name] = value
        output.text("\n".join(_line(field, content.get(field.name)) for field in form.fields))
        choice = await terminal.choose(f"Send this to {server}? y(es), n(o), e(dit): ", _SEND)
        if choice == "no":
            return Declined()
        if choice == "yes":
            break
    return Accepted(content)


async def _ask_field(
    terminal: Terminal, output: Output, field: FormField, value: FieldValue | None
) -> FieldValue | None:
    """The value that the person types. It is asked for again until it fits; the old value is there to be changed."""
    hints = ["required" if field.required else "may be left out"]
    if field.kind in _HINTS:
        hints.insert(0, _HINTS[field.kind])
    output.text(f"{_title(field)} ({', '.join(hints)})")
    if field.description:
        output.text(quoted(field.description))
    if field.options:
        output.text("\n".join(_option(number, option) for number, option in enumerate(field.options, 1)))
    typed = "" if value is None else field.written(value)
    while True:
        typed = await terminal.text(f"{_title(field)}: ", typed)
        try:
            return field.read(typed)
        except ValueError as problem:
            output.text(f"✗ {problem}")


# --- what is shown


def _intro(question: Question) -> str:
    lines = [f"{printable(question.server)} asks {_whose(question)}", quoted(question.message)]
    if question.url is not None:
        host = urlsplit(question.url).hostname or ""
        lines.append(f"  {printable(question.url)}")  # whole, so that the person sees where it leads
        lines.append(f"  It leads to {printable(host)}.")
        if not host.isascii() or "xn--" in host:
            lines.append("  ! The name of this host has letters that look like other letters.")
        if not question.url.startswith("https:"):
            lines.append("  ! The connection is not encrypted.")
    return "\n".join(lines)


def _whose(question: Question) -> str:
    if question.call is not None:
        return f"while it runs {_named(question.call)}:"
    if question.calls:
        return f"while it runs one of these: {', '.join(map(_named, question.calls))}:"
    return "by itself, while it runs no call:"


def _named(call: WatchedCall) -> str:
    return f"{printable(call.tool or call.name)} for {printable(call.agent) if call.agent else 'you'}"


def _title(field: FormField) -> str:
    return printable(cut(field.title, 200))


def _option(number: int, option: FieldOption) -> str:
    named = "" if option.title == option.value else f" ({printable(cut(option.value, 200))})"
    return f"  {number}. {printable(cut(option.title, 200))}{named}"


def _line(field: FormField, value: FieldValue | None) -> str:
    titles = {option.value: option.title for option in field.options}
    match value:
        case None:
            shown = "(left out)"
        case list():
            shown = ", ".join(titles.get(item, item) for item in value)
        case str():
            shown = titles.get(value, value)
        case _:
            shown = field.written(value)
    return f"  {_title(field)}: {printable(shown)}"

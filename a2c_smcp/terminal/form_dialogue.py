"""A question of an MCP server as a dialogue at a terminal: a form, field by field, or a page to visit.

Knows no terminal: a `Dialogue` shows texts and asks. Every text of the server is shown with nothing hidden.
"""

from typing import Final, Protocol
from urllib.parse import urlsplit

from a2c_smcp.utils.forms import FieldKind, FieldOption, FieldValue, FormField, QuestionForm
from a2c_smcp.utils.text import cut, printable, quoted

__all__ = ["YES_NO", "Dialogue", "fill_in", "url_lines"]

YES_NO: Final = {"y": "yes", "yes": "yes", "n": "no", "no": "no"}
_SEND: Final = {**YES_NO, "e": "edit", "edit": "edit"}
_HINTS: Final = {
    FieldKind.NUMBER: "a number",
    FieldKind.INTEGER: "a whole number",
    FieldKind.YES_NO: "yes or no",
    FieldKind.CHOICE: "one of these",
    FieldKind.SEVERAL: "any of these, with commas between them",
}


class Dialogue(Protocol):
    """A person at a terminal. Ctrl-C and Ctrl-D raise `KeyboardInterrupt` and `EOFError`."""

    def show(self, text: str) -> None:
        """Show a text of several lines, without letting it control the terminal."""

    async def choose(self, question: str, choices: dict[str, str]) -> str:
        """The choice that the person's answer means. Asks again until it means one."""

    async def text(self, question: str, default: str = "") -> str:
        """What the person types; `default` is there to be changed."""


async def fill_in(person: Dialogue, server: str, form: QuestionForm) -> dict[str, FieldValue] | None:
    """Ask for each field, then show all values, until the person sends them, or refuses: then `None`."""
    content: dict[str, FieldValue] = {}
    while form.fields:
        for field in form.fields:
            value = await _ask_field(person, field, content.get(field.name, field.default))
            if value is None:
                content.pop(field.name, None)
            else:
                content[field.name] = value
        person.show("\n".join(_line(field, content.get(field.name)) for field in form.fields))
        choice = await person.choose(f"Send this to {server}? y(es), n(o), e(dit): ", _SEND)
        if choice == "no":
            return None
        if choice == "yes":
            break
    return content


async def _ask_field(person: Dialogue, field: FormField, value: FieldValue | None) -> FieldValue | None:
    """The value that the person types. It is asked for again until it fits; the old value is there to be changed."""
    hints = ["required" if field.required else "may be left out"]
    if field.kind in _HINTS:
        hints.insert(0, _HINTS[field.kind])
    person.show(f"{_title(field)} ({', '.join(hints)})")
    if field.description:
        person.show(quoted(field.description))
    if field.options:
        person.show("\n".join(_option(number, option) for number, option in enumerate(field.options, 1)))
    typed = "" if value is None else field.written(value)
    while True:
        typed = await person.text(f"{_title(field)}: ", typed)
        try:
            return field.read(typed)
        except ValueError as problem:
            person.show(f"✗ {problem}")


def url_lines(url: str) -> list[str]:
    """A page to visit: its whole URL, where it leads, and what is odd about it."""
    host = urlsplit(url).hostname or ""
    lines = [f"  {printable(url)}", f"  It leads to {printable(host)}."]
    if not host.isascii() or "xn--" in host:
        lines.append("  ! The name of this host has letters that look like other letters.")
    if not url.startswith("https:"):
        lines.append("  ! The connection is not encrypted.")
    return lines


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

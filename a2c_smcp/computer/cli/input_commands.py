"""Commands about inputs and their values; secrets are masked."""

import re
from collections.abc import Iterable
from typing import Final

from a2c_smcp.computer.cli.command_table import CommandGroup, arguments, as_json, first, page
from a2c_smcp.computer.cli.session import CLISession
from a2c_smcp.computer.config.files import load_config_files
from a2c_smcp.computer.mcp_clients.masking import MASK, input_view
from a2c_smcp.computer.mcp_clients.model import parse_input
from a2c_smcp.errors import (
    BadRequestError,
    InputNotFoundError,
)
from a2c_smcp.utils.values import file_path, read_values, text_value, texts

__all__ = ["INPUT_COMMANDS", "secret_start"]

INPUT_COMMANDS: Final = CommandGroup()

_VALUE_SET: Final = re.compile(r"""\s*inputs\s+value\s+set\s+("[^"]*"|'[^']*'|\S+)\s+(?!@)""")


def _inputs(session: CLISession) -> Iterable[str]:
    return session.computer.inputs.definitions


def secret_start(session: CLISession, line: str) -> int:
    """Where the value of a secret input begins in a line that is being typed; its end if there is none."""
    typed = _VALUE_SET.match(line)
    definition = session.computer.inputs.definitions.get(typed[1].strip("\"'")) if typed else None
    return typed.end() if typed and definition is not None and definition.is_secret else len(line)


@INPUT_COMMANDS.command("inputs load", "FILE")
async def inputs_load(session: CLISession, words: list[str]) -> None:
    """Define the inputs that a file holds; those that are defined already are defined anew."""
    (name,) = arguments(words, "FILE")
    for definition in load_config_files(file_path(name.removeprefix("@"))).inputs:
        session.computer.inputs.put(definition)
    _show_inputs(session)


@INPUT_COMMANDS.command("inputs list")
async def inputs_list(session: CLISession, words: list[str]) -> None:
    """Every input, and whether it has a value."""
    arguments(words)
    _show_inputs(session)


def _show_inputs(session: CLISession) -> None:
    store = session.computer.inputs
    rows = [
        (input_id, definition.type, "yes" if input_id in store.values else "no", definition.description)
        for input_id, definition in store.definitions.items()
    ]
    session.output.event(
        "inputs_loaded",
        page(("input", "type", "has a value", "description"), rows),
        inputs=[
            {**input_view(definition), "has_value": input_id in store.values}
            for input_id, definition in store.definitions.items()
        ],
    )


@INPUT_COMMANDS.command("inputs add", "JSON | @FILE | KEY=VALUE...", secret=True)
async def inputs_add(session: CLISession, words: list[str]) -> None:
    """Define an input."""
    session.computer.inputs.add(parse_input(read_values(words).read(texts("id", "description", "default", "command"))))
    _show_inputs(session)


@INPUT_COMMANDS.command("inputs remove", "ID", first(_inputs))
async def inputs_remove(session: CLISession, words: list[str]) -> None:
    """Forget an input and its value."""
    session.computer.inputs.remove(*arguments(words, "ID"))
    _show_inputs(session)


@INPUT_COMMANDS.command("inputs value set", "ID [TEXT | JSON | @FILE]", first(_inputs), secret=True)
async def inputs_value_set(session: CLISession, words: list[str]) -> None:
    """Give an input a value; without one it is asked for, a password at a hidden prompt. No such line is kept."""
    if not words or len(words) > 2:
        raise BadRequestError("expected an ID and a value here; a value with blanks needs quotes")
    store = session.computer.inputs
    definition = store.definition(words[0])
    if len(words) == 1:
        value = await session.ask_input(definition)
    elif definition.is_password and not words[1].startswith("@"):
        value = words[1]  # whatever it starts with
    else:
        value = text_value(words[1])
    store.set_value(words[0], value)
    _show_values(session, words[0])


@INPUT_COMMANDS.command("inputs value get", "ID", first(_inputs))
async def inputs_value_get(session: CLISession, words: list[str]) -> None:
    """The value that an input has got; secrets are masked."""
    (input_id,) = arguments(words, "ID")
    session.computer.inputs.definition(input_id)
    if input_id not in session.computer.inputs.values:
        raise InputNotFoundError(input_id, "it has no value yet")
    _show_values(session, input_id)


@INPUT_COMMANDS.command("inputs value clear", "[ID]", first(_inputs))
async def inputs_value_clear(session: CLISession, words: list[str]) -> None:
    """Forget the value of an input, or of all of them; it is asked for when next needed."""
    if words:
        session.computer.inputs.clear_value(*arguments(words, "ID"))
    else:
        session.computer.inputs.clear_values()
    _show_values(session)


@INPUT_COMMANDS.command("inputs value list")
async def inputs_value_list(session: CLISession, words: list[str]) -> None:
    """The values that inputs have got; secrets are masked."""
    arguments(words)
    _show_values(session)


def _show_values(session: CLISession, only: str | None = None) -> None:
    store = session.computer.inputs
    shown = {
        input_id: MASK if store.definitions[input_id].is_secret else value
        for input_id, value in store.values.items()
        if only in (None, input_id)
    }
    rows = [(input_id, value if isinstance(value, str) else as_json(value)) for input_id, value in shown.items()]
    session.output.event("input_values", page(("input", "value"), rows), values=shown)

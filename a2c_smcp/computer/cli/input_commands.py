"""Commands about inputs and their values; secrets are masked."""

import re
from collections.abc import Iterable
from typing import Final

from a2c_smcp.computer.cli.command_table import as_json, command, first, page
from a2c_smcp.computer.cli.session import CLISession
from a2c_smcp.computer.config.files import load_config_files
from a2c_smcp.computer.mcp_clients.masking import input_view
from a2c_smcp.computer.mcp_clients.model import parse_input
from a2c_smcp.errors import InputNotFoundError
from a2c_smcp.utils.secret_shapes import MASK
from a2c_smcp.utils.values import file_path, read_values, text_value, texts

__all__ = ["secret_start"]

_VALUE_SET: Final = re.compile(r"""\s*inputs\s+value\s+set\s+("[^"]*"|'[^']*'|\S+)\s+(?!@)""")


def _inputs(session: CLISession) -> Iterable[str]:
    return session.computer.inputs.definitions


def secret_start(session: CLISession, line: str) -> int:
    """Where the value of a secret input begins in the line that is typed; the end of the line if it has no secret."""
    typed = _VALUE_SET.match(line)
    definition = session.computer.inputs.definitions.get(typed[1].strip("\"'")) if typed else None
    return typed.end() if typed and definition is not None and definition.is_secret else len(line)


@command("inputs load", "FILE")
async def inputs_load(session: CLISession, file: str) -> None:
    """Define the inputs of a file. An input that was defined before gets the new definition."""
    for definition in load_config_files(file_path(file.removeprefix("@"))).inputs:
        session.computer.inputs.put(definition)
    _show_inputs(session)


@command("inputs list")
async def inputs_list(session: CLISession) -> None:
    """Every input, and whether it has a value."""
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


@command("inputs add", "JSON|@FILE|KEY=VALUE...", secret=True)
async def inputs_add(session: CLISession, *words: str) -> None:
    """Define an input."""
    session.computer.inputs.add(parse_input(read_values(words).read(texts("id", "description", "default", "command"))))
    _show_inputs(session)


@command("inputs remove", "ID", first(_inputs))
async def inputs_remove(session: CLISession, input_id: str) -> None:
    """Forget an input and its value."""
    session.computer.inputs.remove(input_id)
    _show_inputs(session)


@command("inputs value set", "ID [TEXT|JSON|@FILE]", first(_inputs), secret=True)
async def inputs_value_set(session: CLISession, input_id: str, text: str | None = None) -> None:
    """Set the value of an input. Without a value you are asked for it; a password is not shown while you type it. This
    line is not kept in the history."""
    store = session.computer.inputs
    definition = store.definition(input_id)
    if text is None:
        value = await session.ask_input(definition)
    elif definition.is_password and not text.startswith("@"):
        value = text  # a password may begin like JSON
    else:
        value = text_value(text)
    store.set_value(input_id, value)
    _show_values(session, input_id)


@command("inputs value get", "ID", first(_inputs))
async def inputs_value_get(session: CLISession, input_id: str) -> None:
    """The value of an input; secrets are masked."""
    session.computer.inputs.definition(input_id)
    if input_id not in session.computer.inputs.values:
        raise InputNotFoundError(input_id, "it has no value yet")
    _show_values(session, input_id)


@command("inputs value clear", "[ID]", first(_inputs))
async def inputs_value_clear(session: CLISession, input_id: str | None = None) -> None:
    """Forget the value of an input, or of all inputs. You are asked for it when it is needed again."""
    if input_id is None:
        session.computer.inputs.clear_values()
    else:
        session.computer.inputs.clear_value(input_id)
    _show_values(session)


@command("inputs value list")
async def inputs_value_list(session: CLISession) -> None:
    """The values of all inputs that have one; secrets are masked."""
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

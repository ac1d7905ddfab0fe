"""Asks the person at the terminal for inputs. On the command line this is the last way to find a value."""

import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import anyio
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.input import Input
from prompt_toolkit.output import Output
from prompt_toolkit.validation import Validator

from a2c_smcp.computer.cli.editing import ShowHiddenCharacters
from a2c_smcp.computer.inputs import BaseInputResolver, InputFailedError
from a2c_smcp.computer.mcp_clients.model import CommandInput, MCPServerInput, PickStringInput, PromptStringInput
from a2c_smcp.errors import InputNotFoundError
from a2c_smcp.utils.text import printable

__all__ = ["CliInputResolver"]


class CliInputResolver(BaseInputResolver):
    """Prompts for one input at a time. Without a terminal it raises `InputNotFoundError`.

    `turn` reserves the terminal for a question, where others use it too.
    """

    def __init__(
        self,
        *,
        terminal_input: Input | None = None,
        terminal_output: Output | None = None,
        turn: Callable[[], AbstractAsyncContextManager[None]] | None = None,
    ) -> None:
        self._input = terminal_input
        self._output = terminal_output
        lock = anyio.Lock()
        self._turn = turn or (lambda: lock)

    async def resolve(self, definition: MCPServerInput) -> str:
        if isinstance(definition, CommandInput) or not self._can_ask():
            raise InputNotFoundError(definition.id)
        async with self._turn():
            try:
                return await self.ask(definition)
            except (KeyboardInterrupt, EOFError):
                raise InputFailedError(definition.id, "you were asked for it, and gave none") from None

    async def ask(self, definition: PickStringInput | PromptStringInput) -> str:
        """What the person types, for a caller that has the terminal. Ctrl-C and Ctrl-D raise as in `Terminal`."""
        return await (self._pick(definition) if isinstance(definition, PickStringInput) else self._prompt(definition))

    def _can_ask(self) -> bool:
        return self._input is not None or (sys.stdin.isatty() and sys.stdout.isatty())

    async def _prompt(self, definition: PromptStringInput) -> str:
        return await self._session().prompt_async(
            f"{_label(definition)}: ",
            is_password=bool(definition.password),
            default=definition.default or "",
            handle_sigint=False,
        )

    async def _pick(self, definition: PickStringInput) -> str:
        options, by_label = definition.options, _by_label(definition)
        by_number = {str(number): option for number, option in enumerate(options, 1)}
        # An option that is itself a number wins over the place with that number, and a value over a label.
        choices = {**by_number, **by_label, **{option: option for option in options}}
        menu = "".join(f"  {number}. {_shown(definition, option)}\n" for number, option in by_number.items())
        answer = await self._session().prompt_async(
            f"{_label(definition)}\n{menu}Number or text: ",
            default=definition.default or "",
            completer=WordCompleter([*by_label, *options], sentence=True),
            validator=Validator.from_callable(
                lambda text: text.strip() in choices, "Choose one of the options.", move_cursor_to_end=True
            ),
            validate_while_typing=False,
            handle_sigint=False,
        )
        return choices[answer.strip()]

    def _session(self) -> PromptSession[str]:
        # A new session for every question: answers, such as passwords, must not appear in a history.
        return PromptSession(input=self._input, output=self._output, input_processors=[ShowHiddenCharacters()])


def _by_label(definition: PickStringInput) -> dict[str, str]:
    """The value that each label stands for. A label of two options stands for neither."""
    said = [label.strip() for label in definition.labels.values()]
    return {label.strip(): value for value, label in definition.labels.items() if said.count(label.strip()) == 1}


def _shown(definition: PickStringInput, option: str) -> str:
    """An option as a person reads it: with its value, which is what the MCP server gets."""
    label = definition.labels.get(option)
    return printable(option) if label is None else f"{printable(label)} ({printable(option)})"


def _label(definition: MCPServerInput) -> str:
    return printable(f"{definition.description} ({definition.id})" if definition.description else definition.id)

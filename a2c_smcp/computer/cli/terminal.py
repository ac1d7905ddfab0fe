"""The one terminal that the prompt, the questions and the events share. Knows lines of text, but no commands.

A question takes the place of the line that is typed; afterwards the line comes back as it was. Events are written above
that line, which stays intact. A terminal that was stopped holds nobody up: lines that it does not take are dropped, and
the person is told when the terminal goes on.
"""

import asyncio
import contextvars
import itertools
import shutil
import sys
import termios
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final, TextIO, cast

import anyio
from prompt_toolkit import PromptSession
from prompt_toolkit.application import create_app_session, get_app_or_none
from prompt_toolkit.completion import Completer
from prompt_toolkit.document import Document
from prompt_toolkit.history import History
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.output import Output, create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.utils import get_cwidth

from a2c_smcp.computer.cli.editing import HideSecret, ShowHiddenCharacters
from a2c_smcp.terminal.background_stream import BackgroundStream
from a2c_smcp.utils.text import printable

__all__ = ["PROMPT", "Terminal"]

PROMPT: Final = "a2c> "
_FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_CLEAR_LINE: Final = "\r\x1b[K"
#: Resets styles, turns line wrapping on, and clears the screen from this line on.
_CLEAN: Final = "\x1b[0m\x1b[?7h\r\x1b[J"


class _TakenAway(Exception):  # noqa: N818 - not an error: a question needs the terminal
    pass


class Terminal:
    """Use `line` in a loop inside `with terminal.owned():`. `write` and `turn` work at any time, from any task."""

    def __init__(
        self,
        *,
        history: History | None = None,
        completer: Completer | None = None,
        secret_start: Callable[[str], int] = len,
    ) -> None:
        self._screen = BackgroundStream(sys.stdout, self._on_drained)
        self.output = _quiet_output(self._screen)
        self.on_lost: Callable[[int], None] = lambda lines: None
        """Called when a stopped terminal goes on, with the number of dropped lines."""
        self._session: PromptSession[str] = PromptSession(
            # prompt_toolkit drops blanks at the end of a line unless they are coloured, and the prompt has one.
            [("ansicyan", PROMPT)],
            history=history,
            completer=completer,
            input_processors=[HideSecret(secret_start), ShowHiddenCharacters()],
            complete_while_typing=False,
            output=self.output,
        )
        self._turn = anyio.Lock()
        self._questions = 0
        self._draft = Document()
        self._spinning = False
        self._asker: asyncio.Task[object] | None = None
        """The task that has the terminal for a question."""
        self._asked: list[str] = []
        """What this task wrote. `_asked_until` is the position where it ends."""
        self._asked_until = 0
        self._call_in_loop: Callable[[Callable[[], None]], None] | None = None

    # --- writing

    def write(self, text: str) -> None:
        """Put lines on the screen, above the line that is typed."""
        if self._asker is not None and asyncio.current_task() is self._asker:
            self._asked.append(text)
            self._write_question(text)
        else:
            self._write(text)

    def _write(self, text: str) -> None:
        self._clear_spinner()
        app = get_app_or_none()
        if app is None:
            self._screen.write(text)
            return
        # Not `run_in_terminal`: it switches the mode of the terminal, and keys that arrive meanwhile are lost.
        app.renderer.erase()
        self._screen.write(text)
        if not app.is_done:
            app.invalidate()

    def _write_question(self, text: str) -> None:
        self._write(text)
        self._asked_until = self._screen.position

    # --- a terminal that was stopped

    def _on_drained(self) -> None:
        if self._call_in_loop is not None:
            self._call_in_loop(self._go_on)

    def _go_on(self) -> None:
        """Draw everything again: the line and the question may not be on the screen, although they were written."""
        lost = self._screen.resume()
        if (app := get_app_or_none()) is not None:
            app.renderer.reset()
        self._screen.write(_CLEAN)
        if lost:  # otherwise only drawings of the line were dropped
            self.on_lost(lost)
        self._write_question("".join(self._asked))

    async def _is_question_seen(self) -> bool:
        """Whether the question is on the screen. It is, unless the terminal is stopped."""
        with anyio.move_on_after(1.0):
            while not self._screen.has_written(self._asked_until):  # noqa: ASYNC110 - a thread writes it
                await anyio.sleep(0.01)
            return True
        return False

    # --- reading

    async def line(self) -> str:
        """The next line that the person enters. Ctrl-D, or Ctrl-C on an empty line, raises `EOFError`.

        Ctrl-C on any other line drops what was typed.
        """
        while True:
            async with self._turn:
                app = self._session.app
                app.erase_when_done = False
                draft, self._draft = self._draft, Document()
                try:
                    return await self._session.prompt_async(default=draft, pre_run=self._give_way, handle_sigint=False)
                except _TakenAway:
                    self._draft = self._session.default_buffer.document
                except KeyboardInterrupt:
                    if not self._session.default_buffer.text:
                        raise EOFError from None

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """While inside, the caller has the terminal for one question. Others wait, and so does the line that is typed.

        If the question is cancelled, the keys that were typed for it are dropped: they must not become a command.
        """
        self._questions += 1
        try:
            self._give_way()
            async with self._turn:
                self._clear_spinner()
                self._asker = asyncio.current_task()
                try:
                    yield
                except anyio.get_cancelled_exc_class():
                    self._drop_unread_keys()
                    raise
                finally:
                    self._asker, self._asked = None, []
        finally:
            self._questions -= 1

    def _drop_unread_keys(self) -> None:
        with suppress(termios.error):  # the terminal is gone
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        clear_typeahead(self._session.input)

    def _give_way(self) -> None:
        app = self._session.app
        if self._questions and app.is_running and not app.is_done:
            app.erase_when_done = True
            app.exit(exception=_TakenAway())

    async def choose(self, question: str, choices: dict[str, str]) -> str:
        """The choice that the person's answer means. Asks again until it means one. Call it in a `turn`.

        Ctrl-C and Ctrl-D raise `KeyboardInterrupt` and `EOFError`.
        """
        # A new session: answers must not appear in a history. Enter is needed, so that a key that was meant for the
        # command line decides nothing.
        session: PromptSession[str] = PromptSession(output=self.output)
        while True:
            answer = await self._answer(session, question)
            if (choice := choices.get(answer.strip().lower())) is not None:
                return choice

    async def text(self, question: str, default: str = "") -> str:
        """What the person types; `default` is there to be changed. Call it in a `turn`. Raises as `choose`."""
        session: PromptSession[str] = PromptSession(output=self.output, input_processors=[ShowHiddenCharacters()])
        return await self._answer(session, question, default)

    async def _answer(self, session: PromptSession[str], question: str, default: str = "") -> str:
        """What the person enters. An answer counts only if its question was on the screen."""
        while True:
            answer = await session.prompt_async(printable(question), default=default, handle_sigint=False)
            if await self._is_question_seen():
                return answer

    # --- waiting

    @asynccontextmanager
    async def busy(self, what: Callable[[], str]) -> AsyncIterator[None]:
        """While inside, show the text that `what` returns, unless it is empty or a question is asked."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._spin, what)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()
                self._clear_spinner()

    async def _spin(self, what: Callable[[], str]) -> None:
        for frame in itertools.cycle(_FRAMES):
            if (text := what()) and not self._questions:
                width = shutil.get_terminal_size().columns
                self._screen.write(_CLEAR_LINE + _first_columns(f"{frame} {printable(text)}", width - 1))
                self._spinning = True
            await anyio.sleep(0.1)

    def _clear_spinner(self) -> None:
        if self._spinning:
            self._spinning = False
            self._screen.write(_CLEAR_LINE)

    # --- others

    @contextmanager
    def owned(self) -> Iterator[None]:
        """While inside, all other output is written above the line, too, and only prompts show what is typed.

        A stderr that is not a terminal stays as it is. Call it in the event loop.
        """
        stderr = sys.stderr
        try:
            # A session with our own output: `patch_stdout` would make one that waits for the terminal.
            with create_app_session(output=self.output), patch_stdout(raw=True), _unechoed():
                self._call_in_loop = _caller(asyncio.get_running_loop(), contextvars.copy_context())
                if stderr is not None and not stderr.isatty():
                    sys.stderr = stderr
                yield
        finally:
            self._screen.finish()


def _caller(loop: asyncio.AbstractEventLoop, context: contextvars.Context) -> Callable[[Callable[[], None]], None]:
    """A function that calls others in the loop from any thread, in the context where prompt_toolkit keeps its app."""

    def call(function: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(function, context=context)

    return call


@contextmanager
def _unechoed() -> Iterator[None]:
    """Do not echo keys: between prompts they would push what is written away from column 0."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    silent = list(before)
    silent[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(descriptor, termios.TCSANOW, silent)
    try:
        yield
    finally:
        with suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(descriptor, termios.TCSANOW, before)


def _first_columns(text: str, columns: int) -> str:
    """The beginning that fits on one line: a second line could not be cleared. Many characters take two columns."""
    taken = itertools.accumulate(map(get_cwidth, text))
    return "".join(character for character, end in zip(text, taken, strict=True) if end <= columns)


def _quiet_output(stream: BackgroundStream) -> Output:
    output = create_output(cast(TextIO, stream))
    if isinstance(output, Vt100_Output):
        # A program at the other end does not answer when it is asked for the position of the cursor.
        output.enable_cpr = False
    return output

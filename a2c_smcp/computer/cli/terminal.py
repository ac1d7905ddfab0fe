"""The one terminal that the prompt, the questions and the events share. Knows lines of text, nothing of commands.

A question takes the terminal from the line that is being typed and gives it back as it was. What happens meanwhile is
written above that line, which stays intact. A terminal that is stopped holds nobody up: what it does not take is
dropped, and it is told so when it goes on.
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
_FRAME_SECONDS: Final = 0.1
_CLEAR_LINE: Final = "\r\x1b[K"
#: Plain letters, long lines wrapped, and nothing from this line on.
_CLEAN: Final = "\x1b[0m\x1b[?7h\r\x1b[J"
#: An answer waits so long for its question to be on the screen. It is there already, unless the terminal is stopped.
_UNSEEN_SECONDS: Final = 1.0


class _TakenAway(Exception):  # noqa: N818 - not an error: a question needs the terminal
    pass


class Terminal:
    """`with terminal.owned():`, then `line` in a loop; `write` and `turn` at any time, from any task of the loop."""

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
        """Called when the terminal was stopped and goes on, with the number of lines that it was not shown."""
        self._session: PromptSession[str] = PromptSession(
            # prompt_toolkit leaves out blanks at the end of a line unless they are coloured, and the prompt has one.
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
        """Who has the terminal for a question."""
        self._asked: list[str] = []
        """What it wrote there, and where the last of it ends."""
        self._asked_until = 0
        self._call_in_loop: Callable[[Callable[[], None]], None] | None = None

    # --- writing

    def write(self, text: str) -> None:
        """Put lines on the screen, above whatever is being typed."""
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
        # Not `run_in_terminal`: that switches the terminal's mode, and a key that arrives meanwhile is lost.
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
        """Draw anew: what the renderer takes for drawn may not be on the screen. Nor may the question that is asked."""
        lost = self._screen.resume()
        if (app := get_app_or_none()) is not None:
            app.renderer.reset()
        self._screen.write(_CLEAN)
        if lost:  # otherwise it was only the line, drawn again and again
            self.on_lost(lost)
        self._write_question("".join(self._asked))

    async def _is_question_seen(self) -> bool:
        with anyio.move_on_after(_UNSEEN_SECONDS):
            while not self._screen.has_written(self._asked_until):  # noqa: ASYNC110 - a thread writes it
                await anyio.sleep(_FRAME_SECONDS / 10)
            return True
        return False

    # --- reading

    async def line(self) -> str:
        """The next line that the person enters; `EOFError` when they want to go: Ctrl-D, or Ctrl-C on an empty line.

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
        """The terminal for one question of the caller's; others wait, and so does the line that is being typed.

        Of a question that is cancelled nothing is left: the line must not show, or run, what was typed for it.
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
        """What the answer to a question stands for; asked again until it stands for something. In the caller's `turn`.

        Ctrl-C and Ctrl-D raise `KeyboardInterrupt` and `EOFError`.
        """
        # A session of its own: answers are not to come up as history. Enter is asked for, so that a key that was
        # meant for the line before decides nothing.
        session: PromptSession[str] = PromptSession(output=self.output)
        while True:
            answer = await self._answer(session, question)
            if (choice := choices.get(answer.strip().lower())) is not None:
                return choice

    async def text(self, question: str, default: str = "") -> str:
        """What the person types, `default` being there already. In the caller's `turn`; raises as `choose`."""
        session: PromptSession[str] = PromptSession(output=self.output, input_processors=[ShowHiddenCharacters()])
        return await self._answer(session, question, default)

    async def _answer(self, session: PromptSession[str], question: str, default: str = "") -> str:
        """What is entered. An answer to a question that is not on the screen is none: it is asked for again."""
        while True:
            answer = await session.prompt_async(printable(question), default=default, handle_sigint=False)
            if await self._is_question_seen():
                return answer

    # --- waiting

    @asynccontextmanager
    async def busy(self, what: Callable[[], str]) -> AsyncIterator[None]:
        """Show what is under way, while there is something and nothing is asked."""
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
            await anyio.sleep(_FRAME_SECONDS)

    def _clear_spinner(self) -> None:
        if self._spinning:
            self._spinning = False
            self._screen.write(_CLEAR_LINE)

    # --- others

    @contextmanager
    def owned(self) -> Iterator[None]:
        """While inside, all other output is written above the line too, and only prompts show what is typed.

        A stderr that is no terminal stays what it is: what goes there is not on this screen. In the loop.
        """
        stderr = sys.stderr
        try:
            # A session of prompt_toolkit's with our output: `patch_stdout` would make one that waits for the terminal.
            with create_app_session(output=self.output), patch_stdout(raw=True), _unechoed():
                self._call_in_loop = _caller(asyncio.get_running_loop(), contextvars.copy_context())
                if stderr is not None and not stderr.isatty():
                    sys.stderr = stderr
                yield
        finally:
            self._screen.finish()


def _caller(loop: asyncio.AbstractEventLoop, context: contextvars.Context) -> Callable[[Callable[[], None]], None]:
    """Calls functions in the loop from another thread; in a context, where prompt_toolkit keeps what runs."""

    def call(function: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(function, context=context)

    return call


@contextmanager
def _unechoed() -> Iterator[None]:
    """Between prompts keys wait for the next one: shown, they would push what is written from column 0."""
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
    """The beginning of a text that fits: on two lines it could not be taken back. Many characters take two columns."""
    taken = itertools.accumulate(map(get_cwidth, text))
    return "".join(character for character, end in zip(text, taken, strict=True) if end <= columns)


def _quiet_output(stream: BackgroundStream) -> Output:
    output = create_output(cast(TextIO, stream))
    if isinstance(output, Vt100_Output):
        # A program at the other end does not answer the question for the cursor's position.
        output.enable_cpr = False
    return output

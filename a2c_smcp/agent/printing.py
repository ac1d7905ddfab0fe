"""How `a2c agent` prints: tables and text for people, JSON for programs. Answers on stdout, the rest on stderr."""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, Final

import anyio
from rich.table import Table

from a2c_smcp.agent.types import ProgressCallback
from a2c_smcp.errors import SMCPError
from a2c_smcp.smcp import CallToolRet, GetPromptRet
from a2c_smcp.terminal.progress_line import progress_line
from a2c_smcp.terminal.screen import aligned, cells, console, say
from a2c_smcp.utils.saving import describe
from a2c_smcp.wire import codec

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["Printer"]

#: A call that takes longer than this shows a spinner, in seconds.
_LONG: Final = 0.3


class Printer:
    def __init__(self, as_json: bool, *, raw: bool = False) -> None:
        self._as_json = as_json
        self._raw = raw
        # The output of a tool may contain characters that this terminal cannot show.
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="replace")
        self._stdout = console()
        self._stderr = console(stderr=True)
        self._spinner: Progress | None = None
        self._is_quiet = False

    @property
    def at_terminal(self) -> bool:
        """Whether a person is there who can be asked."""
        return not self._as_json and self._stderr.is_terminal and sys.stdin.isatty()

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Draw no spinner inside the block: a person is asked."""
        self._is_quiet = True
        if self._spinner is not None:
            self._spinner.stop()
        try:
            yield
        finally:
            self._is_quiet = False
            self._start_spinner()

    def _start_spinner(self) -> None:
        if self._spinner is not None and not self._is_quiet:
            self._spinner.start()

    def json(self, value: Any) -> None:
        """Indented for people, on one line for programs."""
        self._say(codec.dumps(value) if self._as_json else json.dumps(value, ensure_ascii=False, indent=2))

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]], value: Any) -> None:
        if self._as_json:
            self.json(value)
            return
        if not sys.stdout.isatty():
            for line in aligned([header, *rows], raw=self._raw):
                self._say(line)
            return
        table = Table(box=None, pad_edge=False)
        for name in header:
            table.add_column(name, overflow="fold")
        for row in rows:
            table.add_row(*cells(row, self._stdout.file, raw=self._raw))
        self._stdout.print(table)

    def texts(self, texts: Sequence[str]) -> None:
        if self._as_json:
            self.json(texts)
            return
        self._say("\n\n".join(texts) if texts else "nothing")

    def contents(self, contents: Sequence[Mapping[str, Any]]) -> None:
        if self._as_json:
            self.json(contents)
            return
        for item in contents:
            self._say(item["text"] if "text" in item else _blob(item, "blob"))

    def messages(self, prompt: GetPromptRet) -> None:
        """The messages of a prompt, each with its role."""
        if self._as_json:
            self.json(prompt)
            return
        for message in prompt["messages"]:
            content = message.get("content")
            items = content if isinstance(content, list) else [content]
            for item in items:
                text = _item(item) if isinstance(item, dict) else str(item)
                self._say(f"{message.get('role')}: {text}")

    def result(self, result: CallToolRet) -> None:
        """A tool's answer; a failure goes to stderr."""
        if self._as_json:
            self.json(result)
            return
        content = result["content"]
        if not content and result.get("structuredContent") is not None:
            self.json(result["structuredContent"])
        for item in content:
            self._say(_item(item), err=result["isError"])

    def refused(self, error: SMCPError) -> None:
        """Print why the request failed."""
        if self._as_json:
            self.json(error.payload())
        else:
            # A lost connection has a class but no code of the protocol.
            self._say(f"a2c agent: {str(error).removeprefix('0 ')}", err=True, one_line=True)

    def unprinted(self, error: OSError) -> None:
        """Print why nothing more is printed. Output that waits is dropped: Python would fail to write it at its end."""
        with suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
            self._say(f"a2c agent: {error}", err=True)

    def words(self, text: str) -> None:
        """Lines for the person who is asked, on stderr. They cannot control the terminal."""
        say(text, err=True)

    def note(self, text: str) -> None:
        if not self._as_json:
            self._say(text, err=True, one_line=True)

    def line(self, event: str, computer: str, text: str, **details: Any) -> None:
        """Print one event of the office."""
        if self._as_json:
            self.json({"event": event, "computer": computer, **details} if computer else {"event": event, **details})
        else:
            self._say(f"{datetime.now():%H:%M:%S}  {computer + '  ' if computer else ''}{text}", one_line=True)

    def _say(self, text: str, *, err: bool = False, one_line: bool = False) -> None:
        say(text, err=err, raw=self._raw, one_line=one_line)

    @contextmanager
    def calling(self, text: str) -> Iterator[ProgressCallback | None]:
        """Show a call: a spinner, and its progress when reports come.

        Yields the callback for reports, or `None` if nothing would show them. For programs every report is a line. If a
        line cannot be printed, the call is cancelled and `OSError` is raised.
        """
        if self._as_json:
            unprinted: list[OSError] = []
            with anyio.CancelScope() as scope:

                async def report(progress: float, total: float | None, message: str | None) -> None:
                    try:
                        self.json({"progress": progress, "total": total, "message": message})
                    except OSError as error:  # the call would log the error and go on
                        unprinted.append(error)
                        scope.cancel()

                yield report
            if unprinted:
                raise unprinted[0]
        elif self._stderr.is_terminal:
            with self.spinner(text) as show:

                async def take(progress: float, total: float | None, message: str | None) -> None:
                    show(progress_line(progress, total, message))

                yield take
        else:
            yield None

    @contextmanager
    def spinner(self, text: str) -> Iterator[Callable[[str], None]]:
        """Show at a terminal that work goes on, and for how long. Yields a function that shows its progress."""
        if not self._stderr.is_terminal:
            yield _unheard
            return
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        description, said = (TextColumn(f"{{task.{part}}}", markup=False) for part in ("description", "fields[said]"))
        progress = Progress(
            SpinnerColumn(), description, TimeElapsedColumn(), said, console=self._stderr, transient=True
        )
        task = progress.add_task(text, total=None, said="")
        self._spinner = progress
        start = asyncio.get_running_loop().call_later(_LONG, self._start_spinner)
        try:
            yield lambda said: progress.update(task, said=said)
        finally:
            self._spinner = None
            start.cancel()
            progress.stop()


def _unheard(_: str) -> None:
    pass


def _item(item: Mapping[str, Any]) -> str:
    match item.get("type"):
        case "text":
            return str(item["text"])
        case "resource" if "text" in item["resource"]:
            return str(item["resource"]["text"])
        case "resource":
            return _blob(item["resource"], "blob")
        case "resource_link":
            return str(item["uri"])
        case _:
            return _blob(item, "data")


def _blob(item: Mapping[str, Any], key: str) -> str:
    """A description instead of the bytes. `--json` prints the bytes, and `--save` saves them."""
    return f"[{describe(item, key)}]"

"""What the line editor knows of the commands: what may come next, and which lines are kept between runs."""

import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History

from a2c_smcp.errors import BadRequestError
from a2c_smcp.utils.state_folder import state_folder

__all__ = ["CommandCompleter", "command_history"]

logger = logging.getLogger(__name__)


class CommandCompleter(Completer):
    """Completes with a function: from the line up to the cursor it says what may come, and what is there of it."""

    def __init__(self, complete: Callable[[str], tuple[list[str], str]]) -> None:
        self._complete = complete

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        found, word = self._complete(document.text_before_cursor)
        return [Completion(text, start_position=-len(word)) for text in found]


class _KeptHistory(FileHistory):
    """A file that turns out not to work, on a full disk for one, costs the lines of other runs and nothing else: an
    error that gets out of here would stop the prompt until somebody presses Enter."""

    def __init__(self, file: Path, is_kept: Callable[[str], bool]) -> None:
        super().__init__(str(file))
        self._is_kept = is_kept

    def append_string(self, string: str) -> None:
        if self._is_kept(string):
            super().append_string(string)

    def load_history_strings(self) -> Iterable[str]:
        try:
            return super().load_history_strings()
        except OSError as error:
            self._give_up(error)
            return ()

    def store_string(self, string: str) -> None:
        try:
            super().store_string(string)
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        logger.warning("the history is not kept any more: %s: %s", self.filename, error.strerror)
        self.filename = os.devnull


def command_history(is_kept: Callable[[str], bool]) -> History:
    """The lines of this run and of those before it, in the user's state directory; without one, of this run.

    A line that `is_kept` does not want is not remembered at all.
    """
    file = Path(os.devnull)
    try:
        file = state_folder() / "history"
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.touch(mode=0o600)
    except BadRequestError as error:
        logger.warning("the history is not kept: %s", error.message)
    except OSError as error:
        logger.warning("the history is not kept: %s cannot be written: %s", file, error.strerror)
        file = Path(os.devnull)
    return _KeptHistory(file, is_kept)

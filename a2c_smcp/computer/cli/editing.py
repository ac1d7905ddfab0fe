"""The line editor: completion, the history that is kept between runs, and how invisible characters are shown."""

import logging
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments

from a2c_smcp.errors import BadRequestError
from a2c_smcp.utils.state_folder import make_private_folder, state_folder
from a2c_smcp.utils.text import printable, visible

__all__ = ["CommandCompleter", "HideSecret", "ShowHiddenCharacters", "command_history"]

logger = logging.getLogger(__name__)


class CommandCompleter(Completer):
    """Completes with a function. It gets the line up to the cursor, and returns the words that fit and the part that is
    typed already."""

    def __init__(self, complete: Callable[[str], tuple[list[str], str]]) -> None:
        self._complete = complete

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        found, word = self._complete(document.text_before_cursor)
        return [Completion(text, start_position=-len(word), display=printable(text)) for text in found]


class HideSecret(Processor):
    """Shows stars instead of a secret in the line that is edited. `start` says where the secret begins."""

    def __init__(self, start: Callable[[str], int]) -> None:
        self._start = start

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        start = self._start(transformation_input.document.text)
        shown = explode_text_fragments(transformation_input.fragments)
        return Transformation([(style, "*" if at >= start else text) for at, (style, text, *_) in enumerate(shown)])


class ShowHiddenCharacters(Processor):
    """Shows invisible characters as escapes: the line may begin with a server's default. The text itself stays."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        shown: StyleAndTextTuples = []
        starts = [0]
        for style, character, *_ in explode_text_fragments(transformation_input.fragments):
            # prompt_toolkit shows controls in its own way, which people know: ^[ for Escape.
            text = character if character <= "\x9f" else visible(character)
            shown.append((style, text))
            starts.append(starts[-1] + len(text))

        def to_display(at: int) -> int:
            return starts[at] if at < len(starts) else starts[-1] + at - len(starts) + 1

        def to_source(at: int) -> int:
            return bisect_right(starts, at) - 1 if at <= starts[-1] else len(starts) - 1 + at - starts[-1]

        return Transformation(shown, to_display, to_source)


class _KeptHistory(FileHistory):
    """A history in a file. If the file fails, for example on a full disk, only the lines of this run are remembered.

    The error is not raised: it would stop the prompt until somebody presses Enter.
    """

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
        logger.warning("the history of commands is no longer kept: %s: %s", self.filename, error.strerror)
        self.filename = os.devnull


def command_history(is_kept: Callable[[str], bool]) -> History:
    """The lines of this run and of earlier runs, in the user's state folder. Without such a folder, of this run only.

    A line for which `is_kept` is false is not remembered at all.
    """
    file = Path(os.devnull)
    try:
        file = state_folder() / "history"
        make_private_folder(file.parent)
        file.touch(mode=0o600)
    except BadRequestError as error:
        logger.warning("the history of commands is not kept: %s", error.message)
    except OSError as error:
        logger.warning("the history of commands is not kept: %s cannot be written: %s", file, error.strerror)
        file = Path(os.devnull)
    return _KeptHistory(file, is_kept)

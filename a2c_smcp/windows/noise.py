"""Leaves out of a text what says nothing new, and puts errors first. Pure."""

import re
from collections.abc import Sequence
from typing import Final

__all__ = ["errors_of", "folded", "last_of_each_line", "without_colours"]

#: Folding starts after this many lines that differ in numbers only.
_ALIKE: Final = 3
_NUMBER: Final = re.compile(r"\d+")
_SEQUENCE: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[()][0-9A-Za-z]|[=>])")
_ERROR: Final = re.compile(
    r"\b(?:error|fatal|panic|critical|exception|traceback|failed|failure|segfault)\b", re.IGNORECASE
)


def without_colours(line: str) -> str:
    """The line without the sequences that a terminal would obey."""
    return _SEQUENCE.sub("", line) if "\x1b" in line else line


def last_of_each_line(text: str) -> str:
    """The text as a terminal would leave it: only the last state of a progress bar is there."""
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))


def folded(lines: Sequence[str]) -> list[str]:
    """The lines, where a run of lines that differ in numbers only is its first, a count, and its last line."""
    result: list[str] = []
    run: list[str] = []
    shape = None
    for line in lines:
        if run and line.strip() and _shape(line) == shape:
            run.append(line)
            continue
        result += _run(run)
        run, shape = [line], _shape(line)
    return result + _run(run)


def errors_of(lines: Sequence[str], most: int = 20) -> list[str]:
    """The last lines that speak of an error, each once."""
    found = dict.fromkeys(line for line in reversed(lines) if _ERROR.search(line))
    return list(found)[:most][::-1]


def _shape(line: str) -> str:
    return _NUMBER.sub("0", line)


def _run(lines: list[str]) -> list[str]:
    if len(lines) <= _ALIKE or not lines[0].strip():
        return lines
    same = len(set(lines)) == 1
    between = f"  … {len(lines) - (1 if same else 2)} more lines like this"
    return [lines[0], between] if same else [lines[0], between, lines[-1]]

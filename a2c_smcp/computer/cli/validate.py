"""`a2c computer validate`: lists everything that is wrong with config files. It starts nothing."""

from collections.abc import Sequence
from pathlib import Path

from a2c_smcp.computer.config.files import read_config_files
from a2c_smcp.terminal.screen import say
from a2c_smcp.utils.text import printable

__all__ = ["validate_files"]


def validate_files(paths: Sequence[Path], *, prefix_tools: bool = False) -> int:
    """Print a line for every problem and every warning, and return the exit status."""
    files = read_config_files(*paths, prefix_tools=prefix_tools)
    for problem in files.problems:
        say(f"error: {problem}")
    for warning in files.warnings:
        say(f"warning: {warning}")
    if files.problems:
        say(f"{_count(len(files.problems), 'error')}, {_count(len(files.warnings), 'warning')}")
        return 1
    for raw in files.servers:
        if prefix := raw.get("tool_prefix"):
            say(f"server {raw['name']!r}: the names of its tools begin with {printable(str(prefix))}")
    say(f"valid: {_count(len(files.servers), 'server')}, {_count(len(files.inputs), 'input')}")
    return 0


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

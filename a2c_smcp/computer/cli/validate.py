"""`a2c computer validate`: lists everything that is wrong with config files, and with rules files (`.toml`). It
starts nothing.
"""

import tomllib
from collections.abc import Sequence
from pathlib import Path

from a2c_smcp.computer.config.files import read_config_files
from a2c_smcp.computer.config.problems import InvalidConfigError
from a2c_smcp.computer.rules.cautions import cautions_of
from a2c_smcp.computer.rules.rules_file import read_rules_file
from a2c_smcp.terminal.screen import say
from a2c_smcp.utils.text import printable

__all__ = ["validate_files"]


def validate_files(paths: Sequence[Path], *, prefix_tools: bool = False) -> int:
    """Print a line for every problem and every warning, and return the exit status."""
    rule_files = [path for path in paths if path.suffix == ".toml" and not _has_servers(path)]
    files = read_config_files(*(path for path in paths if path not in rule_files), prefix_tools=prefix_tools)
    rules, problems = list(files.rules), list(files.problems)
    for path in rule_files:
        try:
            rules += read_rules_file(path, needed=True)
        except InvalidConfigError as error:
            problems += error.problems
    for problem in problems:
        say(f"error: {problem}")
    for warning in files.warnings:
        say(f"warning: {warning}")
    if problems:
        say(f"{_count(len(problems), 'error')}, {_count(len(files.warnings), 'warning')}")
        return 1
    for raw in files.servers:
        if prefix := raw.get("tool_prefix"):
            say(f"server {raw['name']!r}: the names of its tools begin with {printable(str(prefix))}")
    for caution in cautions_of(rules):
        say(f"warning: {printable(caution)}")
    counted = f", {_count(len(rules), 'rule')}" if rules else ""
    say(f"valid: {_count(len(files.servers), 'server')}, {_count(len(files.inputs), 'input')}{counted}")
    return 0


def _has_servers(path: Path) -> bool:
    """Whether a TOML file is a config of Codex, and not a file of rules."""
    try:
        return "mcp_servers" in tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return False


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

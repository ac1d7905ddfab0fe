"""`a2c computer import`: finds the MCP servers of the hosts on this machine, shows them, and copies them if told to."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from a2c_smcp.computer.cli.installing import known_host
from a2c_smcp.computer.config.files import ConfigFiles, read_config_files
from a2c_smcp.computer.config.known_hosts import HOSTS, config_paths
from a2c_smcp.computer.config.writer import ConfigWriter
from a2c_smcp.computer.mcp_clients.masking import masked_url
from a2c_smcp.terminal.screen import say
from a2c_smcp.utils.secret_shapes import MASK, follows_secret_option, starred
from a2c_smcp.utils.text import as_one_line, cut, printable

__all__ = ["import_servers"]


@dataclass(frozen=True, slots=True)
class _HostConfig:
    title: str
    path: Path
    files: ConfigFiles


def import_servers(names: Sequence[str], target: Path, *, yes: bool, home: Path | None = None) -> int:
    """Show what the hosts have, ask, write, and return the exit status. Raises `BadRequestError` and `OSError`."""
    found = list(_found(names, home or Path.home()))
    if not any(each.files.servers for each in found):
        where = "any known host" if not names else ", ".join(names)
        say(f"No MCP servers of {where} are found on this machine.")
        return 0 if not names else 1
    known = {raw["name"] for raw in read_config_files(target).servers} if target.exists() else set()
    entries: dict[str, dict[str, Any]] = {}
    for each in found:
        say(f"{each.title} ({each.path}):")
        for raw in each.files.servers:
            say(f"  {_shown(raw, known, entries)}", one_line=True)
            if raw["name"] not in known:
                entries.setdefault(raw["name"], raw)
        for problem in each.files.problems:
            say(f"  not taken: {replace(problem, file='')}", one_line=True)
        # What is said of no server is about a host's own settings.
        for warning in filter(attrgetter("subject"), each.files.warnings):
            say(f"  note: {replace(warning, file='')}", one_line=True)
    if not entries:
        say(f"{target} has them all.")
        return 0
    say("They are programs that will run on this computer as you. Keys in them are copied as they are.")
    if not yes and not _is_wanted(f"Write {len(entries)} of them into {target}? [y/N] "):
        say("Nothing is written. --yes writes without a question.")
        return 1
    inputs = {each.id: each for found_file in found for each in found_file.files.inputs}
    _write(target, entries, {id: each.model_dump(mode="json", exclude_none=True) for id, each in inputs.items()})
    say(f"Written. Start them: a2c computer run --config {target}")
    return 0


def _found(names: Sequence[str], home: Path) -> Iterator[_HostConfig]:
    for host in [known_host(name) for name in names] or HOSTS:
        for path in config_paths(host, sys.platform, home, os.environ):
            if Path(path).is_file():
                yield _HostConfig(host.title, Path(path), read_config_files(Path(path)))


def _shown(raw: dict[str, Any], known: set[str], taken: dict[str, dict[str, Any]]) -> str:
    parameters = raw["server_parameters"]
    if not isinstance(parameters, dict) or not isinstance(parameters.get("args") or [], list):
        return f"{printable(raw['name'])}: known only when it starts"  # a placeholder stands for it
    what = masked_url(parameters["url"]) if "url" in parameters else " ".join(_words(parameters))
    line = f"{printable(raw['name'])}: {printable(cut(as_one_line(what), 120))}"
    if raw["name"] in known:
        return f"{line} (not taken: the file has a server of this name)"
    if raw["name"] in taken:
        return line if taken[raw["name"]] == raw else f"{line} (not taken: another one has this name)"
    return f"{line} (disabled)" if raw.get("disabled") is True else line


def _words(parameters: dict[str, Any]) -> list[str]:
    # Arguments may hold keys. The command and the names of packages tell enough.
    args = parameters.get("args") or []
    shown = [MASK if follows_secret_option(args, at) else starred(word) for at, word in enumerate(args)]
    return [parameters["command"], *(word for word in shown if not any(mark in word for mark in "=:"))]


def _is_wanted(question: str) -> bool:
    if not sys.stdin.isatty():
        return False
    try:
        return input(question).strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _write(target: Path, entries: dict[str, dict[str, Any]], inputs: dict[str, dict[str, Any]]) -> None:
    defined = {each.id for each in read_config_files(target).inputs} if target.exists() else set()
    writer = ConfigWriter([target], target)
    texts = {name: json.dumps(_flat(raw), indent=2, ensure_ascii=False) for name, raw in entries.items()}
    new = {id: json.dumps(each, indent=2, ensure_ascii=False) for id, each in inputs.items() if id not in defined}
    change = writer.save(texts, new)
    target.parent.mkdir(parents=True, exist_ok=True)
    writer.write(change)


def _flat(raw: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(raw["server_parameters"], dict):
        return {key: value for key, value in raw.items() if key != "name"}
    own = {key: value for key, value in raw.items() if key not in ("name", "server_parameters")}
    if own.get("type") == "stdio":
        del own["type"]
    return {**own, **raw["server_parameters"]}

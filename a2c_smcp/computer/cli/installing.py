"""`a2c mcp --install HOST`: writes the entry of an office into the config file of an MCP host."""

import os
import re
import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from a2c_smcp.computer.config.host_entries import HostEntryError, entry_in_json, entry_in_toml
from a2c_smcp.computer.config.known_hosts import HOSTS, KnownHost, config_paths
from a2c_smcp.computer.config.languages import is_json
from a2c_smcp.terminal.screen import say
from a2c_smcp.terminal.suggestions import did_you_mean
from a2c_smcp.utils.replacing import replace_file

__all__ = ["install_entry", "known_host"]

#: Options of `a2c mcp` that do not go into the entry, with the number of their values.
_NOT_IN_ENTRIES: Final = {"--install": 1, "--api-key": 1}


def known_host(name: str) -> KnownHost:
    """The host of this name. Raises `HostEntryError`."""
    for host in HOSTS:
        if host.name == name:
            return host
    names = ", ".join(host.name for host in HOSTS)
    raise HostEntryError(f"no host is called {name!r}{did_you_mean(name, [host.name for host in HOSTS])}: {names}")


def install_entry(
    host: KnownHost, office: str, words: Sequence[str], key: str | None, home: Path | None = None
) -> None:
    """Write the entry for `a2c mcp` with these words of a command line. Raises `HostEntryError` and `OSError`."""
    paths = config_paths(host, sys.platform, home or Path.home(), os.environ)
    if not paths:
        raise HostEntryError(f"the folder of {host.title}'s config is not known: set APPDATA")
    path = Path(os.path.realpath(Path(paths[0])))  # people keep such files elsewhere, with a link to them
    name = "a2c-" + (re.sub(r"[^A-Za-z0-9_-]+", "-", office).strip("-") or "office")
    entry = _entry(host, words, key)
    try:
        text = path.read_text("utf-8") if path.exists() else ""
    except UnicodeDecodeError:
        raise HostEntryError(f"{path} is not UTF-8 text; add the entry with an editor") from None
    if path.suffix == ".toml":
        after = entry_in_toml(text, host.key, name, entry)
    elif is_json(str(path)):
        after = entry_in_json(text, host.key, name, entry)
    else:
        shown = shlex.join([entry["command"], *entry["args"]])
        raise HostEntryError(f"{host.title} has YAML, which is not written here. Add this server to {path}: {shown}")
    backup = _backed_up(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    replace_file(path, after.encode(), lambda descriptor: os.chmod(descriptor, mode) if os.name != "nt" else None)
    say(f"{path}: {host.key}.{name} is written." + (f" The file as it was: {backup}" if backup else ""))
    if key:
        say("The entry has your API key in clear text: everybody who may read the file may use the office.")
    say(f"Restart {host.title}: it reads its config when it starts.")


def _entry(host: KnownHost, words: Sequence[str], key: str | None) -> dict[str, Any]:
    command = shutil.which("a2c") or str(Path(sys.argv[0]).absolute())
    entry = {**dict(host.more), "command": command, "args": ["mcp", *_kept(words)]}
    return {**entry, "env": {"A2C_API_KEY": key}} if key else entry


def _kept(words: Sequence[str]) -> list[str]:
    kept: list[str] = []
    skipped = 0
    for word in words:
        option = word.partition("=")[0]
        if skipped:
            skipped -= 1
        elif option in _NOT_IN_ENTRIES:
            skipped = 0 if "=" in word else _NOT_IN_ENTRIES[option]
        else:
            kept.append(word)
    return kept


def _backed_up(path: Path) -> Path | None:
    if not path.exists():
        return None
    backup = path.with_name(f"{path.name}.{time.strftime('%Y%m%d-%H%M%S')}.bak")
    shutil.copy2(path, backup)
    return backup

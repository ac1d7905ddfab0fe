"""Where MCP hosts keep their config files. Pure: it looks at no disk."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

__all__ = ["HOSTS", "KnownHost", "config_paths"]


@dataclass(frozen=True, slots=True)
class KnownHost:
    """An MCP host. A path begins with `~`, or with a variable of Windows in percent signs."""

    name: str
    title: str
    linux: tuple[str, ...]
    mac: tuple[str, ...] = ()
    """The same as on Linux if empty; so is `windows`."""
    windows: tuple[str, ...] = ()
    key: str = "mcpServers"
    """The key whose value has the servers."""
    more: tuple[tuple[str, str], ...] = ()
    """What its entries have beside a command, arguments and an environment."""


HOSTS: Final = (
    KnownHost(
        "claude-desktop",
        "Claude Desktop",
        ("~/.config/Claude/claude_desktop_config.json",),
        ("~/Library/Application Support/Claude/claude_desktop_config.json",),
        ("%APPDATA%/Claude/claude_desktop_config.json",),
    ),
    KnownHost("claude-code", "Claude Code", ("~/.claude.json",)),
    KnownHost("cursor", "Cursor", ("~/.cursor/mcp.json",)),
    KnownHost("windsurf", "Windsurf", ("~/.codeium/windsurf/mcp_config.json",)),
    KnownHost(
        "vscode",
        "VS Code",
        ("~/.config/Code/User/mcp.json",),
        ("~/Library/Application Support/Code/User/mcp.json",),
        ("%APPDATA%/Code/User/mcp.json",),
        "servers",
        (("type", "stdio"),),
    ),
    KnownHost(
        "zed",
        "Zed",
        ("~/.config/zed/settings.json",),
        windows=("%APPDATA%/Zed/settings.json",),
        key="context_servers",
        more=(("source", "custom"),),
    ),
    KnownHost("gemini", "Gemini CLI", ("~/.gemini/settings.json",)),
    KnownHost("codex", "Codex", ("~/.codex/config.toml",), key="mcp_servers"),
    KnownHost(
        "goose",
        "Goose",
        ("~/.config/goose/config.yaml",),
        windows=("%APPDATA%/Block/goose/config/config.yaml",),
        key="extensions",
    ),
    KnownHost("continue", "Continue", ("~/.continue/config.yaml",)),
)


def config_paths(host: KnownHost, system: str, home: PurePath, variables: Mapping[str, str]) -> list[PurePath]:
    """The files in which a host may have its config. `system` is `sys.platform`."""
    of_system = {"darwin": host.mac, "win32": host.windows}.get(system, ()) or host.linux
    paths = []
    for written in of_system:
        first, *rest = written.split("/")
        start = home if first == "~" else variables.get(first.strip("%"))
        if start:
            paths.append(type(home)(start, *rest))
    return paths

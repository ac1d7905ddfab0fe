"""Collects the tools of MCP servers that others wrote: `python -m bench.tool_search.collect FOLDER`.

Installs the servers into FOLDER, starts each with made-up keys, and asks for its tools; nothing is called. `tools.json`
keeps what the measure needs: names, arguments, and the words of the descriptions in alphabetical order.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

__all__ = ["TOOLS", "collect"]

TOOLS: Final = Path(__file__).with_name("tools.json")
_SCOPE: Final = "@modelcontextprotocol/server"
#: Servers on npm, with what they need to start.
_NPM: Final[dict[str, list[str]]] = {
    f"{_SCOPE}-filesystem": ["."],
    **{f"{_SCOPE}-{name}": [] for name in ("memory", "sequential-thinking", "github", "slack", "google-maps")},
    **{f"{_SCOPE}-{name}": [] for name in ("brave-search", "puppeteer")},
    "@playwright/mcp": [],
    "@notionhq/notion-mcp-server": [],
    "mcp-server-kubernetes": [],
    "@upstash/context7-mcp": [],
    "tavily-mcp": [],
    "@antv/mcp-server-chart": [],
    "mcp-mermaid": [],
    "@amap/amap-maps-mcp-server": [],
    "@h1deya/mcp-server-weather": [],
}
#: Servers on PyPI: the package, and the command with what it needs to start.
_PYPI: Final[dict[str, list[str]]] = {
    "mcp-server-git": ["mcp-server-git"],
    "mcp-server-fetch": ["mcp-server-fetch"],
    "mcp-server-time": ["mcp-server-time", "--local-timezone", "UTC"],
    "excel-mcp-server": ["excel-mcp-server", "stdio"],
    "wikipedia-mcp": ["wikipedia-mcp"],
    "arxiv-mcp-server": ["arxiv-mcp-server"],
}
_KEYS: Final = (
    "GITHUB_PERSONAL_ACCESS_TOKEN SLACK_BOT_TOKEN SLACK_TEAM_ID GOOGLE_MAPS_API_KEY BRAVE_API_KEY NOTION_TOKEN "
    "TAVILY_API_KEY AMAP_MAPS_API_KEY"
)
_WORD: Final = re.compile(r"[^\W_]+(?:[_'-][^\W_]+)*")
_MOST_WORDS: Final = 80


def collect(folder: Path) -> list[list[Any]]:
    """Server, name, arguments and words of every tool; a line on stderr for a server that does not start."""
    found: list[list[Any]] = []
    for server, arguments in _NPM.items():
        found += _tools_of(server, _npm_command(folder, server) + arguments)
    for server, command in _PYPI.items():
        found += _tools_of(server, [str(_environment(folder, server) / command[0]), *command[1:]])
    return found


def _npm_command(folder: Path, package: str) -> list[str]:
    place = folder / "npm" / package.replace("/", "-")
    if not place.exists():
        options = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--omit=dev"]
        subprocess.run(["npm", "install", "--prefix", str(place), *options, package], check=True, timeout=300)
    root = place / "node_modules" / package
    programs = json.loads((root / "package.json").read_text("utf-8"))["bin"]
    return ["node", str(root / (programs if isinstance(programs, str) else next(iter(programs.values()))))]


def _environment(folder: Path, package: str) -> Path:
    place = folder / "pypi" / package
    if not place.exists():
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True, timeout=300)
        pip = [str(place / "bin" / "python"), "-m", "pip", "--quiet", "install"]
        subprocess.run([*pip, package], check=True, timeout=600)
    return place / "bin"


def _tools_of(server: str, command: list[str]) -> list[list[Any]]:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "collect", "version": "1"}}
    questions: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    env = {**os.environ, **dict.fromkeys(_KEYS.split(), "made-up")}
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            command,
            cwd=folder,
            env={**env, "HOME": folder},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            tools = []
            for question in questions:
                process.stdin.write(json.dumps({"jsonrpc": "2.0", **question}).encode() + b"\n")
                process.stdin.flush()
                while "id" in question:
                    line = process.stdout.readline()
                    if not line:
                        raise OSError("it ended")
                    answer = json.loads(line) if line.startswith(b"{") else {}
                    if answer.get("id") == question["id"]:
                        tools = answer["result"].get("tools", [])
                        break
        except (OSError, ValueError, KeyError) as error:
            print(f"{server} does not start: {error!r}", file=sys.stderr)
            return []
        finally:
            process.kill()
    return [_kept(server, tool) for tool in tools]


def _kept(server: str, tool: dict[str, Any]) -> list[Any]:
    words = sorted(_WORD.findall(tool.get("description") or "")[:_MOST_WORDS], key=str.lower)
    return [server, tool["name"], sorted(tool["inputSchema"].get("properties") or {}), " ".join(words)]


if __name__ == "__main__":
    lines = [json.dumps(tool, ensure_ascii=False) for tool in collect(Path(sys.argv[1]).absolute())]
    TOOLS.write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8")

"""The ids by which 0.4 peers know the MCP servers of a computer. Pure.

A config may give one. Otherwise the id is made from the server's name. If no character of the name can be in an id, it
is made from the server's parameters.
"""

import hashlib
import re
import struct
from collections.abc import Iterable, Mapping
from typing import Any, Final

__all__ = ["BundleIds", "bundle_id_of", "check_bundle_id"]

#: Between the id of a server and the name of a tool.
_SEPARATOR: Final = "__"
_BUNDLE_ID: Final = re.compile(r"(?!.*__)[A-Za-z0-9_-]+", re.ASCII)
_OTHERS: Final = re.compile(r"[^A-Za-z0-9_-]", re.ASCII)


def check_bundle_id(text: str) -> str:
    """Raise `ValueError` for an id that 0.4 peers would not accept."""
    if not _BUNDLE_ID.fullmatch(text):
        raise ValueError("must consist of A-Z, a-z, 0-9, '_' and '-', without '__'")
    return text


def bundle_id_of(config: Mapping[str, Any]) -> str:
    """The id of a server, from its config as written."""
    given = config.get("bundle_id")
    if isinstance(given, str) and _BUNDLE_ID.fullmatch(given):
        return given
    folded = re.sub("_+", "_", _OTHERS.sub("_", str(config.get("name", ""))))
    return folded.strip("_-") or _hashed(config)


def _hashed(config: Mapping[str, Any]) -> str:
    """An id from the type and the parameters. Placeholders count as they are written."""
    given = config.get("server_parameters")
    parameters: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    kind = str(config.get("type", ""))
    parts = [_text(kind)]
    if kind == "stdio":
        args = parameters.get("args") or []
        parts.append(_text(str(parameters.get("command", ""))))
        parts.append(_count(len(args)) + b"".join(_text(str(arg)) for arg in args))
        parts.append(_map(parameters.get("env")))
    else:
        parts += [_text(str(parameters.get("url", ""))), _map(parameters.get("headers"))]
    return f"bundle_{hashlib.sha256(b''.join(parts)).digest()[:8].hex()}"


def _count(number: int) -> bytes:
    return struct.pack(">I", number)


def _text(text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    return _count(len(data)) + data


def _map(value: object) -> bytes:
    pairs: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
    return _count(len(pairs)) + b"".join(_text(str(key)) + _text(str(pairs[key])) for key in sorted(pairs))


class BundleIds:
    """The ids of all servers of a computer, and the servers of all ids. If two servers have the same id, the later one
    gets a hashed id.
    """

    def __init__(self, configs: Iterable[Mapping[str, Any]]) -> None:
        self.by_server: dict[str, str] = {}
        self.servers: dict[str, str] = {}
        for config in configs:
            name, found = str(config.get("name", "")), bundle_id_of(config)
            if found in self.servers:
                found = f"bundle_{hashlib.sha256(_text(name)).digest()[:8].hex()}"
            self.by_server[name] = found
            self.servers[found] = name

    def shown_name(self, server: str, tool: str) -> str:
        """A tool's name for a 0.4 peer."""
        return f"{self.by_server.get(server, server)}{_SEPARATOR}{tool}"

    def own_name(self, name: str, tool_servers: Mapping[str, str]) -> str:
        """The name that this computer has for a tool which a 0.4 peer calls. `tool_servers` has the tools that can be
        called now. A tool that cannot be called loses its prefix too: the error then says why it cannot.

        A name without the id of a server stays as it is. So does a name with the id of a server that does not have the
        tool.
        """
        if name in tool_servers:
            return name
        # Ids may end in "_", so two of them can fit: "a___x" is the tool "x" of "a_", or "_x" of "a".
        found = [(each, name[len(each + _SEPARATOR) :]) for each in self.servers if name.startswith(each + _SEPARATOR)]
        fitting = [tool for each, tool in found if tool_servers.get(tool, self.servers[each]) == self.servers[each]]
        return min(fitting, key=lambda tool: (tool not in tool_servers, len(tool)), default=name)

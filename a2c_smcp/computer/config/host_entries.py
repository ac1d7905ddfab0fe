"""Puts one MCP server into the text of a host's config file; every other byte stays. Pure: text in, text out.

The new text is read back and compared: everything else must mean what it meant before.
"""

import json
import tomllib
from collections.abc import Mapping
from typing import Any

from a2c_smcp.computer.config.jsonc import JsoncError, NodeMember, scan, value_of
from a2c_smcp.computer.config.jsonc_edit import TextStyle, indented, line_indent, with_member
from a2c_smcp.errors import BadRequestError

__all__ = ["HostEntryError", "entry_in_json", "entry_in_toml"]


class HostEntryError(BadRequestError):
    """The file of a host is not changed. The message says why, and what to do."""

    title = "Host Not Changed"


def entry_in_json(text: str, key: str, name: str, entry: Mapping[str, Any]) -> str:
    """JSON, perhaps with comments, with this entry below `key`. An entry of the same name is replaced."""
    value = json.dumps(entry, indent=2, ensure_ascii=False)
    try:
        root = scan(text)
    except JsoncError as error:
        raise HostEntryError(f"the file has {error}; mend it first") from None
    if root is None:
        return f"{json.dumps({key: {name: entry}}, indent=2, ensure_ascii=False)}\n"
    before = value_of(root)
    servers = root.get(key) if root.is_object else None
    if not root.is_object or (servers is not None and not servers.is_object):
        raise HostEntryError(f"the file does not have {key} as an object; add the entry with an editor")
    if servers is None:
        after = with_member(text, root, key, f"{{\n{json.dumps(name)}: {value}\n}}")
    elif (old := next((member for member in servers.members if member.name == name), None)) is not None:
        after = _replaced(text, old, value)
    else:
        after = with_member(text, servers, name, value)
    meant = {**before, key: {**before.get(key, {}), name: dict(entry)}}
    found = scan(after)
    if found is None or value_of(found) != meant:
        raise HostEntryError("the file would not mean what was asked for; add the entry with an editor")
    return after


def _replaced(text: str, old: NodeMember, value: str) -> str:
    style = TextStyle.of(text)
    return text[: old.node.start] + indented(value, line_indent(text, old.start), style) + text[old.node.end :]


def entry_in_toml(text: str, key: str, name: str, entry: Mapping[str, Any]) -> str:
    """TOML with this entry at its end. An entry of the same name is not replaced."""
    try:
        before = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise HostEntryError(f"the file is not TOML: {error}; mend it first") from None
    if name in before.get(key, {}):
        raise HostEntryError(f"the file already has {key}.{name}; remove it first, or change it with an editor")
    head = f"{key}.{json.dumps(name)}"
    plain = {field: value for field, value in entry.items() if not isinstance(value, Mapping)}
    inner = {f"{head}.{field}": value for field, value in entry.items() if isinstance(value, Mapping)}
    tables: dict[str, Mapping[str, Any]] = {head: plain, **inner}
    written = "".join(_table(each, values) for each, values in tables.items())
    gap = "" if not text or text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
    after = f"{text}{gap}{written.rstrip()}\n"
    if tomllib.loads(after) != {**before, key: {**before.get(key, {}), name: dict(entry)}}:
        raise HostEntryError("the file would not mean what was asked for; add the entry with an editor")
    return after


def _table(head: str, values: Mapping[str, Any]) -> str:
    # A text in JSON is a basic string of TOML, and so is a list of texts.
    lines = [f"{json.dumps(key)} = {json.dumps(value)}" for key, value in values.items()]
    return "\n".join([f"[{head}]", *lines, "", ""])

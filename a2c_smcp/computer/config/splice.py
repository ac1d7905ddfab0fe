"""Adds, replaces or removes one entry in the text of a config file; every other byte stays. Pure: text in, text out.

Comments, layout, line ends and the order of keys are a person's work, so a file is never written anew. The new text is
read back with the reader of config files and compared: the other servers and inputs must be as before, and the entry
as it was meant. Otherwise an error says why, and there is no new text.
"""

import json
from collections.abc import Sequence
from typing import Any

from a2c_smcp.computer.config.files import SCHEMA_KEY, ConfigFiles, is_flat, read_config_text, shape_of, without_schema
from a2c_smcp.computer.config.jsonc import LINE_END, JsoncError, Node, NodeMember, scan, value_of
from a2c_smcp.computer.config.jsonc_edit import TextStyle, indented, line_indent, with_member, without_member
from a2c_smcp.computer.config.languages import is_json
from a2c_smcp.computer.config.problems import InvalidConfigError
from a2c_smcp.errors import BadRequestError

__all__ = ["ConfigSpliceError", "add_input", "add_server", "entry_text", "meaning", "remove_server", "replace_server"]


class ConfigSpliceError(BadRequestError):
    """The text cannot be changed. The message says why, and what to do."""

    title = "Config Not Changed"


def entry_text(text: str, name: str) -> str | None:
    """The entry of a server as it is written, without its indentation; `None` if the server is not there."""
    if (member := _ConfigDocument(text).server(name)) is None:
        return None
    written = text[member.node.start : member.node.end]
    indent = line_indent(text, member.start)
    return "\n".join(line.removeprefix(indent) for line in LINE_END.split(written))


def meaning(name: str, entry: str, file: str = "") -> dict[str, Any]:
    """The config in the text of an entry, in our own shape. Raises `InvalidConfigError` with all that is wrong.

    Names of files in it are relative to `file`.
    """
    _object(entry)
    text = f'{{"mcpServers": {{{json.dumps(name)}: {entry}\n}}}}'
    found = read_config_text(text, file if is_json(file) else "")
    if found.problems:
        raise InvalidConfigError(found.problems)
    return found.servers[0]


def add_server(text: str, name: str, entry: str, file: str = "") -> str:
    """The text with one more server, below the others and indented like them. An empty text gets `mcpServers`."""
    meant = meaning(name, entry, file)
    before = _read_before(text, file)
    document = _ConfigDocument(text)
    if document.server(name) is not None:
        raise ConfigSpliceError(f"{_named(file)} already has a server {name!r}; edit that one")
    if document.shape == "server":
        raise ConfigSpliceError(
            f"{_named(file)} holds a single server; put it into an object with the key mcpServers first"
        )
    if document.shape == "inputs":
        raise ConfigSpliceError(
            f"{_named(file)} holds only inputs; give the computer another file for servers, with --config"
        )
    value = document.as_written_there(name, entry, meant)
    if document.servers is not None:
        key = None if document.servers.is_list else name
        after = with_member(text, document.servers, key, value)
    elif document.root is not None:
        after = with_member(text, document.root, document.key, f"{{\n{json.dumps(name)}: {value}\n}}")
    else:
        style = TextStyle.of(text)
        whole = f'{{\n"mcpServers": {{\n{json.dumps(name)}: {value}\n}}\n}}'
        gap = style.newline if text.strip("\ufeff \t\r\n") else ""
        after = f"{text.rstrip()}{gap}{indented(whole, '', style)}{style.newline}"
    return _compared(before, after, file, name, meant)


def replace_server(text: str, name: str, entry: str, file: str = "") -> str:
    """The text with this entry in the place of a server's old one."""
    if entry == entry_text(text, name):
        return text
    meant = meaning(name, entry, file)
    before = _read_before(text, file)
    document = _ConfigDocument(text)
    member = document.server_or_refuse(name, file)
    value = document.as_written_there(name, entry, meant)
    lines, newline = LINE_END.split(value), TextStyle.of(text).newline
    indent = line_indent(text, member.start)
    shifted = newline.join([lines[0], *(indent + line if line.strip() else line for line in lines[1:])])
    after = text[: member.node.start] + shifted + text[member.node.end :]
    return _compared(before, after, file, name, meant)


def remove_server(text: str, name: str, file: str = "") -> str:
    """The text without a server. A comment that stands above its entry stays."""
    before = _read_before(text, file)
    document = _ConfigDocument(text)
    member = document.server_or_refuse(name, file)
    if document.is_nothing_else(member):
        raise ConfigSpliceError(
            f"{_named(file)} holds nothing but the server {name!r} and would be no config file without it; "
            'set "disabled": true there, or delete the file and start the computer without it'
        )
    assert document.servers is not None
    after = without_member(text, document.servers, member)
    return _compared(before, after, file, name, None)


def add_input(text: str, entry: str, file: str = "") -> str:
    """The text with one more input. Servers may refer to it already."""
    _object(entry)
    before = _read_before(text, file)
    definition = read_config_text(f'{{"mcpServers": {{}}, "inputs": [{entry}\n]}}', file)
    if definition.problems:
        raise InvalidConfigError(definition.problems)
    document = _ConfigDocument(text)
    if document.root is None or document.shape not in ("mcpServers", "servers"):
        raise ConfigSpliceError(
            f"{_named(file)} has no place for inputs; put its servers into an object with the key mcpServers"
        )
    inputs = document.root.get("inputs")
    if inputs is None:
        after = with_member(text, document.root, "inputs", f"[\n{entry}\n]")
    else:
        after = with_member(text, inputs, None, entry)
    found = _read_after(after, file)
    if _servers(found) != _servers(before) or found.inputs != (*before.inputs, *definition.inputs):
        raise _not_as_meant(file)
    return after


def _object(entry: str) -> Node:
    try:
        node = scan(entry)
    except JsoncError as error:
        raise ConfigSpliceError(f"the entry has {error}") from None
    if node is None or not node.is_object:
        raise ConfigSpliceError("the entry must be one JSON object, in braces")
    return node


# --- reading back


def _read_before(text: str, file: str) -> ConfigFiles:
    if not is_json(file):
        raise ConfigSpliceError(f"{_named(file)} is not JSON, and only JSON is changed here; change it with an editor")
    found = read_config_text(text, file)
    if not found.problems and _ConfigDocument(text).shape == "foreign":
        raise ConfigSpliceError(f"{_named(file)} is written as another program does it; change it there")
    if not found.problems:
        return found
    if _ConfigDocument(text).shape == "empty":
        return ConfigFiles()
    raise ConfigSpliceError(f"{found.problems[0]}; nothing was changed, mend the file first")


def _read_after(text: str, file: str) -> ConfigFiles:
    found = read_config_text(text, file)
    if found.problems:
        raise ConfigSpliceError(f"the change would break the file: {found.problems[0]}")
    return found


def _compared(before: ConfigFiles, after: str, file: str, name: str, meant: dict[str, Any] | None) -> str:
    found = _read_after(after, file)
    changed = [raw for raw in found.servers if raw["name"] == name]
    if (
        _servers(found, name) != _servers(before, name)
        or found.inputs != before.inputs
        or _as_json(changed) != _as_json([] if meant is None else [meant])
    ):
        raise _not_as_meant(file)
    return after


def _servers(found: ConfigFiles, without: str | None = None) -> list[str]:
    return [_as_json(raw) for raw in found.servers if raw["name"] != without]


def _as_json(value: Any) -> str:
    # For == the values 1, 1.0 and true are the same. The order of keys means nothing.
    return json.dumps(value, sort_keys=True)


def _not_as_meant(file: str) -> ConfigSpliceError:
    return ConfigSpliceError(f"{_named(file)} would not mean what was asked for; change it with an editor")


def _named(file: str) -> str:
    return file or "the config"


# --- where entries stand


class _ConfigDocument:
    """A config file as nodes, in one of the shapes of `shape_of`."""

    def __init__(self, text: str) -> None:
        try:
            self.root = scan(text)
        except JsoncError as error:
            raise ConfigSpliceError(f"the file has {error}; nothing was changed, mend it first") from None
        self.shape = shape_of({} if self.root is None else without_schema(value_of(self.root)))
        has_key = self.shape in ("mcpServers", "servers")
        self.key = self.shape if has_key else "mcpServers" if self.shape == "empty" else ""
        """The key whose value holds the servers, or would hold them."""
        found = self.root.get(self.key) if self.root is not None and has_key else self.root
        self.servers: Node | None = found if has_key or self.shape in ("names", "list") else None
        """The object or list that holds the entries; `None` if there is none yet."""

    def is_nothing_else(self, member: NodeMember) -> bool:
        """Whether the file would be no config file without this entry."""
        return self.shape == "server" or (self.shape == "names" and self._entries() == (member,))

    def server(self, name: str) -> NodeMember | None:
        if self.shape == "server" and self.root is not None:
            return NodeMember(self.root.start, self.root) if self.root.text_of("name") == name else None
        return next((member for member in self._entries() if self._name_of(member) == name), None)

    def server_or_refuse(self, name: str, file: str) -> NodeMember:
        if (member := self.server(name)) is None:
            raise ConfigSpliceError(f"{_named(file)} has no server {name!r} any more; look at the file again")
        return member

    def as_written_there(self, name: str, entry: str, meant: dict[str, Any]) -> str:
        """The text to put into this file: the entry as it is, or in our own shape.

        Our own shape is for a file whose other servers have it, and for a list, where an entry holds its name.
        """
        node = _object(entry)
        is_named = node.text_of("name") == name
        if self._takes_flat():
            return entry
        needs_name = self.shape == "server" or (self.servers is not None and self.servers.is_list)
        if not is_flat(value_of(node)) and (is_named or not needs_name):
            return entry
        if node.get("envFile") is not None:
            raise ConfigSpliceError("envFile is unknown in the shape that this file's servers have; use env")
        return json.dumps(meant, indent=2, ensure_ascii=False)

    def _takes_flat(self) -> bool:
        if self.shape == "server":
            return self.root is not None and is_flat(value_of(self.root))
        if self.servers is None or self.key == "mcpServers" or self.shape == "names":
            return True
        if self.servers.is_list:
            return False
        return not self.servers.members or any(is_flat(value_of(member.node)) for member in self._entries())

    def _entries(self) -> Sequence[NodeMember]:
        members = () if self.servers is None else self.servers.members
        return members if self.shape != "names" else tuple(each for each in members if each.name != SCHEMA_KEY)

    def _name_of(self, member: NodeMember) -> str | None:
        return member.node.text_of("name") if member.name is None else member.name

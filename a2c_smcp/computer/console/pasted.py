"""Reads what a person pasted to add servers: the JSON of any README, or a piece of it. Pure."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from a2c_smcp.computer.config.entry_secrets import unmasked_entry
from a2c_smcp.computer.config.files import read_config_texts
from a2c_smcp.computer.config.jsonc import JsoncError, Node, NodeMember, blank_until, scan
from a2c_smcp.computer.config.splice import entry_text
from a2c_smcp.computer.mcp_clients.model import MCPServerInput
from a2c_smcp.errors import BadRequestError

__all__ = ["Pasted", "read_paste"]

#: Around a block of code in Markdown.
_FENCE: Final = re.compile(r"\A`{3,}[^\n]*\n(.*?)(?<!`)`{3,}\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Pasted:
    """The servers and inputs of a paste, and all that is wrong with them."""

    entries: dict[str, str] = field(default_factory=dict, repr=False)
    """The text of each entry by the server's name."""
    inputs: dict[str, tuple[MCPServerInput, str]] = field(default_factory=dict)
    """Each definition by its id, and its text."""
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def read_paste(text: str, known_inputs: Iterable[str]) -> Pasted:
    """Read a paste. Its servers may use `known_inputs` without defining them."""
    text = _FENCE.sub(r"\1", text.strip().removeprefix("\ufeff")).strip().rstrip(",")
    try:
        text, root = _whole(text)
    except JsoncError as error:
        return Pasted(problems=(str(error),))
    if root is None:
        return Pasted(problems=("there is nothing in it yet",))
    found = read_config_texts([("", text)], inputs=known_inputs)
    problems = [str(problem) for problem in found.problems]
    if not found.servers and not problems:
        problems = ["there is no server in it"]
    # Each server is searched for in the whole text: the work is servers times characters.
    if len(found.servers) > 1 and len(found.servers) * len(text) > 200_000:
        return Pasted(problems=(f"it has {len(found.servers)} servers, which are too many; paste fewer at a time",))
    entries = {raw["name"]: _entry(text, raw["name"]) for raw in found.servers}
    return Pasted(
        entries,
        {each.id: (each, written) for each, written in zip(found.inputs, _inputs(text, root), strict=False)},
        (*problems, *(problem for name, entry in entries.items() for problem in _masks(name, entry))),
        tuple(map(str, found.warnings)),
    )


def _whole(text: str) -> tuple[str, Node | None]:
    """The text with what is missing around it: braces around `"name": {…}`, or the key `mcpServers`."""
    if text[blank_until(text, 0) :].startswith('"'):
        text = f"{{{text}\n}}"
    root = scan(text)
    if root is None or not root.members or not all(_is_named_object(member) for member in root.members):
        return text, root
    text = f'{{"mcpServers": {text}\n}}'
    return text, scan(text)


def _is_named_object(member: NodeMember) -> bool:
    return member.node.is_object and member.name not in (None, "mcpServers", "servers", "inputs")


def _entry(text: str, name: str) -> str:
    entry = entry_text(text, name)
    assert entry is not None
    node = scan(entry)
    assert node is not None
    if node.get("server_parameters") is None and node.get("name") is not None:
        # A flat entry with its name inside: the name will be its key.
        without = [
            f"{json.dumps(each.name)}: {_text(entry, each.node)}" for each in node.members if each.name != "name"
        ]
        return f"{{{', '.join(without)}}}"
    return entry


def _inputs(text: str, root: Node) -> list[str]:
    listed = root.get("inputs")
    return [] if listed is None else [_text(text, member.node) for member in listed.members]


def _text(text: str, node: Node) -> str:
    return text[node.start : node.end]


def _masks(name: str, entry: str) -> list[str]:
    try:
        unmasked_entry(entry, None)
    except BadRequestError as error:
        return [f"server {name!r}: {error.message}"]
    return []

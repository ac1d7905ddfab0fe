"""Placeholders in a config: which ones there are, and their replacement with values. Pure: asks and reads nothing.

`${input:id}` and `${env:NAME}` may stand in any text value, at any depth. A text that is exactly one placeholder
becomes the value, of any type. In a longer text the value is written as text. Values are not rendered again.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from a2c_smcp.computer.config.problems import InvalidConfigError, Problem, field_path
from a2c_smcp.computer.utils.placeholder import PLACEHOLDER, holds_placeholder

__all__ = ["MAX_DEPTH", "ConfigRender", "servers_referencing"]

#: How deep a config may nest; the deepest place that the protocol defines is at level 5.
MAX_DEPTH: Final = 32


class ConfigRender:
    """One config as written. `inputs` and `variables` say what it needs; `render` puts the values in.

    Building one raises `InvalidConfigError` for a placeholder in a key and for nesting deeper than `MAX_DEPTH`.
    """

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        #: The ids of the inputs that it refers to, in order, each with the first place where it stands.
        self.inputs: dict[str, str] = {}
        #: The same for environment variables.
        self.variables: dict[str, str] = {}
        problems: list[Problem] = []
        for place, text, is_key in _texts(raw, (), problems):
            if is_key and holds_placeholder(text):
                problems.append(Problem("a key must not hold a placeholder", field_path(place)))
            for kind, name in () if is_key else PLACEHOLDER.findall(text):
                found = self.inputs if kind == "input" else self.variables
                found.setdefault(name, field_path(place))
        if problems:
            raise InvalidConfigError(problems)

    def unset(self, variables: Mapping[str, str]) -> list[Problem]:
        """A problem for each environment variable that the config refers to and that is not set."""
        return [
            Problem(f"the environment variable {name!r} is not set", place)
            for name, place in self.variables.items()
            if name not in variables
        ]

    def render(self, inputs: Mapping[str, Any], variables: Mapping[str, str]) -> Any:
        """The config with every placeholder replaced; `InvalidConfigError` names those that have no value."""
        missing = [
            *(Problem(f"no value for input {name!r}", at) for name, at in self.inputs.items() if name not in inputs),
            *self.unset(variables),
        ]
        if missing:
            raise InvalidConfigError(missing)
        return _substitute(self._raw, {"input": inputs, "env": variables})


def servers_referencing(input_id: str, servers: Mapping[str, Any]) -> list[str]:
    """The names of the servers whose configs refer to this input. Invalid configs are searched, too."""

    def refers(raw: Any) -> bool:
        texts = (text for _, text, is_key in _texts(raw, (), []) if not is_key)
        return any(("input", input_id) in PLACEHOLDER.findall(text) for text in texts)

    return [name for name, raw in servers.items() if refers(raw)]


def _texts(
    node: Any, place: tuple[str | int, ...], problems: list[Problem]
) -> Iterator[tuple[tuple[str | int, ...], str, bool]]:
    """Every text with its place, and whether it is a key."""
    if isinstance(node, str):
        yield place, node, False
    elif isinstance(node, dict | list):
        if len(place) >= MAX_DEPTH:
            problems.append(Problem(f"nested deeper than {MAX_DEPTH} levels", field_path(place[:5]) + "…"))
            return
        for key, child in node.items() if isinstance(node, dict) else enumerate(node):
            if isinstance(key, str):
                yield (*place, key), key, True
            yield from _texts(child, (*place, key), problems)


def _substitute(node: Any, values: Mapping[str, Mapping[str, Any]]) -> Any:
    if isinstance(node, dict):
        return {key: _substitute(child, values) for key, child in node.items()}
    if isinstance(node, list):
        return [_substitute(child, values) for child in node]
    if not isinstance(node, str):
        return node
    if whole := PLACEHOLDER.fullmatch(node):
        return values[whole[1]][whole[2]]

    def written_out(match: re.Match[str]) -> str:
        return _text(values[match[1]][match[2]])

    return PLACEHOLDER.sub(written_out, node)


def _text(value: Any) -> str:
    """A value as text: as JSON, like the config around it, so `true` and not `True`."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)

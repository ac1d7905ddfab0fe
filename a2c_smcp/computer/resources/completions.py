"""Completions of arguments for an agent that may not read everything: they name documents and resources. Pure."""

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from a2c_smcp.computer.resources.read_guard import AgentSight
from a2c_smcp.computer.rules.reads import ReadKind, kind_of
from a2c_smcp.types import SERVER_NAME

__all__ = ["completed_of", "shown_completion"]

_EXPRESSION: Final = re.compile(r"\{[+#./;?&]?([^{}]*)\}")


def completed_of(asked: Mapping[str, Any]) -> tuple[ReadKind, str]:
    """What a completion reads: a prompt, or the resources of a template, by its text."""
    ref = asked.get("ref")
    named = ref if isinstance(ref, Mapping) else {}
    if named.get("type") == "ref/resource":
        uri = str(named.get("uri", ""))
        return kind_of(uri), uri
    return ReadKind.PROMPT, str(named.get("name", ""))


def shown_completion(
    completion: dict[str, Any], asked: Mapping[str, Any], server: SERVER_NAME, sight: AgentSight, *, known: bool = True
) -> dict[str, Any]:
    """The completion without values that lead to what the agent may not know of. If there may be such values, it does
    not say how many there are in all. `known` is whether the server lists this template: of another one, nobody knows
    what its values name.
    """
    kind, template = completed_of(asked)
    if kind is ReadKind.PROMPT or sight.may_read_below(server, template.partition("{")[0] if known else ""):
        return completion
    if not known:
        return {"values": []}
    argument, context = _mapping(asked.get("argument")), _mapping(_mapping(asked.get("context")).get("arguments"))
    name = str(argument.get("name", ""))
    values = [
        value
        for value in completion.get("values") or []
        if isinstance(value, str)
        and all(sight.shows(kind, server, uri) for uri in _uris(template, {**context, name: value}, kind))
    ]
    return {"values": values} | ({"hasMore": True} if completion.get("hasMore") else {})


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _uris(template: str, values: Mapping[str, Any], kind: ReadKind) -> set[str]:
    """The URIs that the template has with these values, up to the first variable that has none."""

    def filled(safe: str) -> str:
        def one(found: re.Match[str]) -> str:
            value = values.get(found[1].partition(":")[0].rstrip("*"))
            return quote(value, safe=safe) if isinstance(value, str) else "{"

        return _EXPRESSION.sub(one, template).partition("{")[0]

    uris = {filled(""), filled("/:?#[]@!$&'()*+,;=%")}
    if kind is ReadKind.DOCUMENT:  # perhaps without the number of its page
        uris |= {"/".join(uri.split("/")[:4]) for uri in uris}
    return uris

"""Hides the secrets in the text of a server's entry when it is shown, and puts them back when it is saved. Pure.

Only the values change, so comments and layout stay. The secrets are those that `client:get_config` masks: values of
`env` and `headers` and the secrets of `oauth` without a placeholder, and the user and the query of a `url`.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from a2c_smcp.computer.config.jsonc import JsoncError, Node, scan
from a2c_smcp.computer.mcp_clients.masking import OAUTH_SECRETS, masked_url
from a2c_smcp.computer.utils.placeholder import holds_placeholder
from a2c_smcp.errors import BadRequestError
from a2c_smcp.utils.secret_shapes import MASK

__all__ = ["masked_entry", "unmasked_entry"]


@dataclass(frozen=True, slots=True)
class _SecretPlace:
    """A place in an entry that may hold a secret."""

    path: tuple[str, ...]
    node: Node
    is_url: bool = False

    @property
    def shown(self) -> str | None:
        """What is shown instead, as JSON; `None` if there is no secret."""
        if self.is_url:
            masked = masked_url(self.node.value) if isinstance(self.node.value, str) else MASK
            return None if masked == self.node.value else json.dumps(masked, ensure_ascii=False)
        return None if holds_placeholder(self.node.value) else json.dumps(MASK)

    @property
    def has_mask(self) -> bool:
        value = self.node.value
        return isinstance(value, str) and (MASK in value if self.is_url else value == MASK)


def masked_entry(entry: str) -> str:
    """The text of an entry with `"***"` for every secret."""
    return _replaced(entry, ((place.node, shown) for place in _places(entry) if (shown := place.shown) is not None))


def unmasked_entry(entry: str, before: str | None) -> str:
    """The text of an entry, with the secrets of the entry `before` in the place of their masks.

    Raises `BadRequestError` for a mask at a place that had no secret.
    """
    kept = {} if before is None else {place.path: place for place in _places(before)}
    back: list[tuple[Node, str]] = []
    for place in _places(entry):
        if place.has_mask:
            old = kept.get(place.path)
            if before is None or old is None or old.shown != entry[place.node.start : place.node.end]:
                field = ".".join(place.path)
                raise BadRequestError(
                    f"{field}: {MASK} stands for a value that is unknown here; type the value", {"field": field}
                )
            back.append((place.node, before[old.node.start : old.node.end]))
    return _replaced(entry, back)


def _replaced(text: str, pieces: Iterable[tuple[Node, str]]) -> str:
    for node, piece in sorted(pieces, key=lambda each: each[0].start, reverse=True):
        text = text[: node.start] + piece + text[node.end :]
    return text


def _places(entry: str) -> Iterator[_SecretPlace]:
    """The places of secrets in an entry of our own shape, or in a flat entry."""
    try:
        root = scan(entry)
    except JsoncError as error:
        raise BadRequestError(f"the entry has {error}") from None
    parameters = None if root is None else root.get("server_parameters")
    for above, node in (((), root), (("server_parameters",), parameters)):
        for member in () if node is None else node.members:
            if member.name == "url":
                yield _SecretPlace((*above, "url"), member.node, is_url=True)
            elif member.name in ("env", "headers", "oauth"):
                yield from (
                    _SecretPlace((*above, member.name, inner.name or ""), inner.node)
                    for inner in member.node.members
                    if member.name != "oauth" or inner.name in OAUTH_SECRETS
                )

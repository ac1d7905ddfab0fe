"""Items of a server's list as it sent them: resources, templates or prompts, checked one by one and within bounds.

Agents get them unchanged, also with fields that our version of MCP does not know. An item is kept as its JSON text: a
hundred thousand objects would keep the garbage collector busy.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from mcp_types import Prompt, Resource, ResourceTemplate
from pydantic import BaseModel, ValidationError

from a2c_smcp.computer.utils.pool import slices
from a2c_smcp.utils.json_sizes import is_deeper, json_or_none

__all__ = ["ItemKind", "ItemList"]

ItemKind: TypeAlias = Literal["resources", "templates", "prompts"]

#: For each kind: its model, the field that names an item, and how many items of one server are kept.
_KINDS: Final[Mapping[str, tuple[type[BaseModel], str, int]]] = {
    "resources": (Resource, "uri", 100_000),
    "templates": (ResourceTemplate, "uri_template", 1000),
    "prompts": (Prompt, "name", 1000),
}
#: How many bytes the items of one kind may have together, and what one of them may have.
_HEAVIEST: Final = 32 * 1024 * 1024
_ITEM_BYTES: Final = 64 * 1024
_ITEM_VALUES: Final = 900
_ITEM_LEVELS: Final = 50


class ItemList:
    """`add` pages to it. Items over the bounds and invalid items are only counted."""

    def __init__(self, kind: ItemKind) -> None:
        self.kind = kind
        self.items: list[bytes] = []
        self.names: list[str] = []
        """The name of each item: a URI, a template or a prompt's name."""
        self._model, self._field, self.most = _KINDS[kind]
        self._size = 0
        self._over = 0
        self._invalid = 0

    async def add(self, page: Sequence[Any]) -> None:
        async for items in slices(page):
            for item in items:
                self.put(item)

    def put(self, item: Any) -> None:
        """Add one item, or count it."""
        if self.is_full:
            self._over += 1
            return
        checked = self._checked(item)
        if checked is None:
            self._invalid += 1
            return
        name, text = checked
        self.items.append(text)
        self.names.append(name)
        self._size += len(text)

    def _checked(self, item: Any) -> tuple[str, bytes] | None:
        if not isinstance(item, dict) or is_deeper(item, _ITEM_LEVELS):
            return None
        try:
            name = getattr(self._model.model_validate(item, by_name=False), self._field)
        except ValidationError:
            return None
        text = (json_or_none(item) or "").encode()
        if not text or len(text) > _ITEM_BYTES or sum(map(text.count, (b",", b"[", b"{"))) > _ITEM_VALUES:
            return None
        return name, text

    @property
    def is_full(self) -> bool:
        """Whether more items would only be counted."""
        return len(self.items) >= self.most or self._size >= _HEAVIEST

    @property
    def ignored(self) -> str | None:
        """What is ignored, in words."""
        over = [f"{self._over} {self.kind} over the first {len(self.items)}"] if self._over else []
        invalid = [f"{self._invalid} {self.kind} that are too large or not valid in MCP"] if self._invalid else []
        return " and ".join([*over, *invalid]) or None

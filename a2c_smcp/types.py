"""The type aliases of the protocol's data structures. It knows no structure itself."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

__all__ = [
    "SERVER_NAME",
    "TOOL_NAME",
    "AttributeValue",
    "Attributes",
    "Desktop",
    "Role",
]

SERVER_NAME: TypeAlias = str
TOOL_NAME: TypeAlias = str

#: Plain values, and lists of one plain type. Any other value travels as a JSON string.
AttributeValue: TypeAlias = (
    str | bool | int | float | Sequence[str] | Sequence[bool] | Sequence[int] | Sequence[float] | None
)
Attributes: TypeAlias = Mapping[str, AttributeValue]

#: One rendered window: its URI, a blank line, its text.
Desktop: TypeAlias = str

Role: TypeAlias = Literal["computer", "agent"]

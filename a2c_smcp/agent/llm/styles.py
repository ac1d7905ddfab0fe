"""The APIs of models, and a tool in the shape that each takes. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, get_args

import mcp_types as types

from a2c_smcp.utils.text import cut

__all__ = ["STYLES", "Style", "StyleRules", "ToolRequest", "checked_style", "rules_of", "tool_in_style"]

#: The API that is spoken: OpenAI's chat completions, OpenAI's responses, Anthropic's messages, Gemini's contents.
Style: TypeAlias = Literal["openai", "openai-responses", "anthropic", "gemini"]
STYLES: Final[tuple[Style, ...]] = get_args(Style)

_IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_PDF: Final = frozenset({"application/pdf"})


@dataclass(frozen=True, slots=True)
class StyleRules:
    """What an API takes, where the APIs differ."""

    description: int
    """The longest description of a tool, in characters."""
    images: frozenset[str] = _IMAGES
    """The types of images that it takes."""
    documents: frozenset[str] = _PDF
    """The types of documents that it takes."""
    media: int = 5_000_000
    """The largest image or document, in characters of base64."""
    all_media: int = 10_000_000
    """All images and documents of one turn, in characters of base64: a request has a limit, too."""
    media_blocks: int = 20
    """How many images and documents of one turn are shown."""


_RULES: Final[Mapping[Style, StyleRules]] = MappingProxyType(
    {
        "openai": StyleRules(description=1024),
        "openai-responses": StyleRules(description=1024),
        "anthropic": StyleRules(description=10_000),
        "gemini": StyleRules(description=10_000, images=frozenset({"image/png", "image/jpeg", "image/webp"})),
    }
)


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A tool call that a model asked for. `computer` and `tool` are known once the name has been looked up."""

    id: str
    """Tells the calls of one message apart."""
    name: str
    arguments: Mapping[str, Any] | None
    """`None` if the model wrote something that is not a JSON object."""
    computer: str | None = None
    """The computer that runs it; `None` for a tool of the office itself, or of the program."""
    tool: str | None = None
    """The tool's own name on that computer."""
    has_own_id: bool = True
    """False if the service gave no id (Gemini gives none by default): then `id` is made here, and is not sent."""


def rules_of(style: Style) -> StyleRules:
    return _RULES[style]


def checked_style(style: str) -> Style:
    """The style of this name. Raises `ValueError`, which lists the names."""
    for each in STYLES:
        if each == style:
            return each
    raise ValueError(f"no style is called {style!r}; the styles are {', '.join(STYLES)}")


def tool_in_style(tool: types.Tool, style: Style) -> dict[str, Any]:
    """A tool in the shape that the SDK takes. For Gemini it is a function declaration."""
    about = cut(tool.description or tool.name, rules_of(style).description - 1)
    schema = dict(tool.input_schema)
    match style:
        case "openai":
            return {"type": "function", "function": {"name": tool.name, "description": about, "parameters": schema}}
        case "openai-responses":
            # Strict schemas would have to list every argument as required.
            function = {"name": tool.name, "description": about, "parameters": schema, "strict": False}
            return {"type": "function", **function}
        case "anthropic":
            return {"name": tool.name, "description": about, "input_schema": schema}
        case "gemini":
            return {"name": tool.name, "description": about, "parameters_json_schema": schema}

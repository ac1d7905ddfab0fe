"""The words of strangers in texts for models and for the programs that run them. Pure.

MCP servers, computers, windows and documents choose these words. A model reads them beside ours, and beside those of
other strangers. So nobody's line may look like a heading of somebody else, no character may be hidden, and what looks
like a secret is not told on.
"""

from typing import Any, Final

from a2c_smcp.utils.secret_shapes import hidden
from a2c_smcp.utils.text import MAX_QUOTED, cut, harmless, printable

__all__ = ["quoted_as_seen", "quoted_lines", "quoted_words", "told", "told_in_schema", "told_on_line"]

_DEEPEST: Final = 100


def told(text: str, most: int = MAX_QUOTED) -> str:
    """What a stranger says, in a field of its own: several lines, without secrets and hidden characters, and cut."""
    # Secrets are looked for in more than is shown: of half a secret nothing would be found.
    return harmless(cut(hidden(text[: 2 * most + 500]), most))


def told_on_line(text: str, most: int = MAX_QUOTED) -> str:
    """What a stranger says, on one line of a text of ours."""
    return printable(cut(hidden(text[: 2 * most + 500]), most))


def quoted_words(text: str, most: int = MAX_QUOTED) -> str:
    """What a stranger says, inside of a text of ours: `told`, and each line begins with `>`."""
    return quoted_lines(told(text, most))


def quoted_as_seen(text: str) -> str:
    """A stranger's content inside of a text of ours: content is not masked, and each line of it begins with `>`."""
    return quoted_lines(harmless(text))


def quoted_lines(text: str) -> str:
    """A text that others wrote, with `> ` before each line, so that no line of it can look like one of ours. Whatever
    a reader may take for a line break begins a quoted line, too.
    """
    return "\n".join(f"> {line}" if line else ">" for line in text.splitlines())


def told_in_schema(schema: Any, deepest: int = _DEEPEST) -> Any:
    """A JSON Schema whose titles and descriptions are `told`, uncut. Names and values stay: they are sent back as they
    are.
    """
    if isinstance(schema, list) and deepest:
        return [told_in_schema(each, deepest - 1) for each in schema]
    if not isinstance(schema, dict) or not deepest:
        return schema
    return {
        key: told(value, len(value))
        if key in ("title", "description") and isinstance(value, str)
        else told_in_schema(value, deepest - 1)
        for key, value in schema.items()
    }

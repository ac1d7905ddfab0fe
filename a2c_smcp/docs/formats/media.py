"""Images that are parts of an archive, as Office files and books have them: they can be looked at."""

import io
from collections.abc import Callable
from typing import Any

from a2c_smcp.mcp_server.elements import Element, Image

__all__ = ["part_facts", "part_picture"]


def part_facts(part: str | None) -> dict[str, Any]:
    """The metadata of an image that is this part of its file."""
    return {"part": part} if part else {}


def part_picture(read: Callable[[str], bytes | None], element: Element | None, longest: int) -> bytes | None:
    """A PNG of an image, whose part `read` unpacks. `None` for another element, and for a format without pixels."""
    part = element.metadata.get("part") if isinstance(element, Image) else None
    data = read(part) if isinstance(part, str) else None
    if data is None:
        return None
    # Imported here: most documents are read without their images being looked at.
    from a2c_smcp.docs.formats.pictures import png_of

    return png_of(io.BytesIO(data), longest)

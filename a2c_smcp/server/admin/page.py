"""The files of the operators' page, read once."""

from functools import lru_cache
from importlib.resources import files
from typing import Final

__all__ = ["page_file"]

_FILES: Final = {
    "/admin": ("index.html", "text/html; charset=utf-8"),
    "/admin/": ("index.html", "text/html; charset=utf-8"),
    "/admin/admin.css": ("admin.css", "text/css; charset=utf-8"),
    "/admin/admin.js": ("admin.js", "text/javascript; charset=utf-8"),
}


@lru_cache(maxsize=len(_FILES))
def page_file(path: str) -> tuple[bytes, str] | None:
    """The content and the type of the file at a path of the URL; `None` if there is none."""
    if (found := _FILES.get(path)) is None:
        return None
    name, kind = found
    return (files("a2c_smcp.server.admin") / "static" / name).read_bytes(), kind

"""The files of the page, read once, and the policy that allows only them."""

import base64
import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from a2c_smcp.web.page_gate import policy

__all__ = ["PageFiles", "page_files"]

_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_IMPORT_MAP: Final = re.compile(rb'<script type="importmap">(.*?)</script>', re.DOTALL)


@dataclass(frozen=True, slots=True)
class PageFiles:
    """Content and type of each file by its path in the URL, and the Content-Security-Policy of them all."""

    by_path: dict[str, tuple[bytes, str]]
    policy: str


@cache
def page_files() -> PageFiles:
    """The page as it is installed."""
    found = dict(_below(files("a2c_smcp.computer.console") / "static", ""))
    index, _ = found["/index.html"]
    match = _IMPORT_MAP.search(index)
    assert match, "the page has an import map"
    digest = base64.b64encode(hashlib.sha256(match[1]).digest()).decode()
    return PageFiles({**found, "/": found["/index.html"]}, policy(digest))


def _below(folder: Traversable, path: str) -> list[tuple[str, tuple[bytes, str]]]:
    found = []
    for item in folder.iterdir():
        place = f"{path}/{item.name}"
        if item.is_dir():
            found += _below(item, place)
        elif (kind := _TYPES.get(item.name[item.name.rfind(".") :])) is not None:
            found.append((place, (item.read_bytes(), kind)))
    return found

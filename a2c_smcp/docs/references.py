"""`doc_ref`: a short name for a path, for URLs and for people. Pure."""

import base64
import hashlib
import os
import re
from collections.abc import Iterable

__all__ = ["doc_ref", "doc_refs"]

_SHORT, _LONG = 6, 20
_NOT_IN_NAME = re.compile(r"[^a-z0-9]+")


def doc_ref(label: str, path: str, length: int = _SHORT) -> str:
    """The reference of a path in the folder called `label`: the readable part of its name, and a short digest.

    doc_ref("papers", "2024/Annual report.pdf") == "annual-report-pdf-…"
    """
    folder, _, name = path.rpartition("/")
    stem, dot, suffix = name.rpartition(".")
    words = [_slug(stem if dot else name), _slug(suffix if dot else "")]
    if not words[0]:
        words.insert(0, _slug(folder.rpartition("/")[2]))
    readable = "-".join(filter(None, (words[0][:40].strip("-"), *words[1:]))) or "file"
    digest = hashlib.sha256(os.fsencode(f"{label}/{path}")).digest()
    return f"{readable}-{base64.b32encode(digest).decode().lower()[:length]}"


def doc_refs(label: str, paths: Iterable[str]) -> dict[str, str]:
    """The path of each reference. If two paths have the same reference, the second one gets a longer digest."""
    found: dict[str, str] = {}
    for path in sorted(paths):
        reference = doc_ref(label, path)
        found[reference if reference not in found else doc_ref(label, path, _LONG)] = path
    return found


def _slug(text: str) -> str:
    return _NOT_IN_NAME.sub("-", text.lower()).strip("-")

"""A folder of skills on disk: which skills there are, and what is in their files. Never reads outside of the folder.

A skill is a folder with a `SKILL.md`, whose head has a description. No link is followed, at any level, so a skill that
somebody copied here cannot point at a key elsewhere. The methods read files: call them in a thread.
"""

import errno
import hashlib
import logging
import mimetypes
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from a2c_smcp.computer.skills.front_matter import LONGEST_HEAD, split_front_matter
from a2c_smcp.dialects.skill_errors import invalid_skill_name, skill_not_accessible, skill_not_found
from a2c_smcp.errors import SMCPError
from a2c_smcp.smcp import SkillInfo
from a2c_smcp.utils.text import cut

__all__ = ["SkillBody", "SkillFolder"]

logger = logging.getLogger(__name__)

_SKILL_FILE: Final = "SKILL.md"
#: A skill's name, which is also that of its folder.
_NAME: Final = re.compile(r"(?=.{1,64}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")
#: How the names of files begin that are never given to an agent: they hold the secrets of a skill.
_FORBIDDEN: Final = (".skillenv", ".env")
_MOST_SKILLS: Final = 500
#: In bytes.
_LARGEST_FILE: Final = 16 * 1024 * 1024
#: In characters.
_LONGEST_DESCRIPTION: Final = 4096
#: Types that are text, beside `text/…`.
_TEXT_TYPES: Final = ("application/json", "application/xml", "application/yaml", "application/javascript")
#: Unix has the first two, Windows the last.
_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True)
class SkillBody:
    """The content of a file of a skill. For `SKILL.md` it is the text after the head."""

    rel_path: str
    mime_type: str
    data: bytes
    sha256: str
    is_text: bool


class SkillFolder:
    """The skills in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._unreadable = ""
        """Why the folder could not be read; empty if it could."""
        self._left_out: dict[str, str] = {}
        """Why folders are left out, by name. Only what is new is logged, because agents ask often."""

    def list(self) -> list[SkillInfo]:
        """The skills, sorted by name. A folder that is not a skill is left out, with a line in the log."""
        found, left_out = list[SkillInfo](), dict[str, str]()
        for name in self._names():
            try:
                head = self._read(name, (_SKILL_FILE,), LONGEST_HEAD)
            except SMCPError as error:
                left_out[name] = error.message
                continue
            fields, _ = split_front_matter(head.decode("utf-8", "replace"))
            description = fields.get("description")
            if not isinstance(description, str) or not description:
                left_out[name] = f"its {_SKILL_FILE} has no description"
                continue
            found.append(_info(name, cut(description, _LONGEST_DESCRIPTION), fields))
        for name, why in left_out.items():
            if self._left_out.get(name) != why:
                logger.warning("skill %r is left out: %s", name, why)
        self._left_out = left_out
        return found

    def read(self, name: str, rel_path: str | None = None) -> SkillBody:
        """A file of a skill, by default its `SKILL.md`. Raises 4016 for a name that no skill can have, 4014 for an
        unknown skill, and 4017 for a file that is missing, forbidden, too large, or outside of the skill.
        """
        if not _NAME.fullmatch(name):
            raise invalid_skill_name(name)
        path = _SKILL_FILE if rel_path is None else rel_path
        parts = _parts(path)
        if name not in self._names():
            raise skill_not_found(name)
        data = self._read(name, parts)
        kind, text = _mime_type(parts[-1]), _as_text(data)
        is_text = text is not None and (kind.startswith("text/") or kind in _TEXT_TYPES)
        if path == _SKILL_FILE and text is not None:
            data = split_front_matter(text)[1].encode()
        return SkillBody(path, kind, data, hashlib.sha256(data).hexdigest(), is_text)

    def signature(self) -> str:
        """A text that changes when a `SKILL.md` does, or when a skill comes or goes."""
        marks = []
        for name in self._names():
            try:
                seen = os.lstat(self.folder / name / _SKILL_FILE)
            except OSError:
                continue
            marks.append((name, seen.st_mtime_ns, seen.st_size))
        return hashlib.sha256(repr(marks).encode()).hexdigest()

    def _names(self) -> Sequence[str]:
        try:
            with os.scandir(self.folder) as entries:
                names = (each.name for each in entries if each.is_dir(follow_symlinks=False))
                found = sorted(name for name in names if _NAME.fullmatch(name))[:_MOST_SKILLS]
            unreadable = ""
        except OSError as error:
            found, unreadable = [], error.strerror or str(error)
        if unreadable and unreadable != self._unreadable:
            logger.warning("the folder of skills cannot be read: %s", unreadable)
        self._unreadable = unreadable
        return found

    def _read(self, name: str, parts: Sequence[str], most: int | None = None) -> bytes:
        """A file, or its first `most` bytes."""
        shown = "/".join(parts)
        try:
            descriptor = _open_inside(self.folder, (name, *parts))
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.close(descriptor)
                raise skill_not_accessible("not_found", shown)
            with os.fdopen(descriptor, "rb") as file:
                data = file.read(_LARGEST_FILE + 1 if most is None else most)
        except UnicodeEncodeError:  # half a character: no file has such a name
            raise skill_not_accessible("not_found", shown) from None
        except OSError as error:
            is_link = error.errno in (errno.ELOOP, errno.EMLINK)
            reason = "forbidden" if is_link or error.errno == errno.EACCES else "not_found"
            raise skill_not_accessible(reason, shown) from None
        if len(data) > _LARGEST_FILE:
            raise skill_not_accessible("too_large", shown)
        return data


def _parts(rel_path: str) -> tuple[str, ...]:
    """The steps of a path inside a skill. Raises 4017 for a path that leads out of it, or to a secret."""
    parts = tuple(rel_path.split("/"))
    if "\0" in rel_path or "\\" in rel_path or ":" in rel_path or any(part in ("", ".", "..") for part in parts):
        raise skill_not_accessible("traversal", rel_path)
    if any(part.casefold().startswith(_FORBIDDEN) or part.casefold().endswith(".env") for part in parts):
        raise skill_not_accessible("forbidden", rel_path)
    return parts


def _open_inside(folder: Path, parts: Sequence[str]) -> int:
    """Open a file below the folder without following a link. Raises `OSError`, with `ELOOP` for a link."""
    if os.open not in os.supports_dir_fd:
        return _open_checked(folder, parts)
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts[:-1]:
            try:
                below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | _NOFOLLOW, dir_fd=here)
            except NotADirectoryError:
                if stat.S_ISLNK(os.stat(part, dir_fd=here, follow_symlinks=False).st_mode):
                    raise OSError(errno.ELOOP, "a link") from None
                raise
            os.close(here)
            here = below
        return os.open(parts[-1], os.O_RDONLY | _NOFOLLOW, dir_fd=here)
    finally:
        os.close(here)


def _open_checked(folder: Path, parts: Sequence[str]) -> int:
    """As `_open_inside`, for systems that cannot open a file relative to a folder: each step is checked before."""
    path = folder
    for part in parts:
        path = path / part
        if path.is_symlink() or os.path.realpath(path) != os.path.join(os.path.realpath(path.parent), part):
            raise OSError(errno.ELOOP, "a link")
    return os.open(path, os.O_RDONLY | _NOFOLLOW)


def _mime_type(name: str) -> str:
    if name.lower().endswith((".md", ".markdown")):
        return "text/markdown"
    return mimetypes.guess_type(name)[0] or ("text/plain" if "." not in name else "application/octet-stream")


def _as_text(data: bytes) -> str | None:
    try:
        return None if b"\0" in data else data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _info(name: str, description: str, fields: dict[str, Any]) -> SkillInfo:
    info: SkillInfo = {
        "name": name,
        "source": "user",
        "path": name,  # 0.4 requires one; where the folder is on the computer is nobody's business
        "description": description,
    }
    for key in ("license", "compatibility", "version"):
        if isinstance(value := fields.get(key), str) and value:
            info[key] = value
    if tools := list(_texts(fields.get("allowed-tools"))):
        info["allowed_tools"] = tools
    if tags := list(_texts(fields.get("tags"))):
        info["tags"] = tags
    if isinstance(metadata := fields.get("metadata"), dict):
        info["skill_metadata"] = metadata
    return info


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value:
        yield value
    elif isinstance(value, list):
        yield from (item for item in value if isinstance(item, str))

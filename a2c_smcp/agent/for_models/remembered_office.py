"""The last list of an office's tools, kept in a file for a start while the office cannot be reached.

Hosts load tools once, and some give up after five seconds. If the file cannot be read or written, nothing else fails.
"""

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from a2c_smcp.errors import BadRequestError, SMCPError
from a2c_smcp.link.server_urls import normal_url
from a2c_smcp.smcp import GET_TOOLS_EVENT, SMCPTool
from a2c_smcp.utils.replacing import replace_file
from a2c_smcp.utils.state_folder import make_private_folder, state_folder
from a2c_smcp.wire import codec, parse_response

__all__ = ["RememberedOffice", "ToolsByComputer", "remembered_office"]

logger = logging.getLogger(__name__)

ToolsByComputer: TypeAlias = Mapping[str, Sequence[SMCPTool]]


@dataclass(frozen=True, slots=True)
class _MemoryBounds:
    file_bytes: int = 4 * 1024 * 1024
    files: int = 64


_MOST: Final = _MemoryBounds()


class RememberedOffice:
    """The tools of one office in a file of its own, by computer. Its methods block for some milliseconds."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def load(self) -> ToolsByComputer:
        """The tools that were saved last; none if there is no usable file."""
        try:
            with self._file.open("rb") as file:
                content = file.read(_MOST.file_bytes + 1)
            return _decoded(content) if len(content) <= _MOST.file_bytes else {}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError, SMCPError) as error:
            logger.warning("the last list of the office's tools cannot be read from %s: %s", self._file, error)
            return {}

    def save(self, tools: ToolsByComputer) -> None:
        """Keep these tools for the next start, as far as they fit."""
        try:
            make_private_folder(self._file.parent)
            replace_file(self._file, _encoded(tools, _MOST.file_bytes))
            self._forget_old_offices()
        except OSError as error:
            logger.warning("the list of the office's tools is not kept for the next start: %s", error)

    def _forget_old_offices(self) -> None:
        files = {file: file.stat().st_mtime for file in self._file.parent.glob("*.json")}
        for file in sorted(files, key=files.__getitem__)[: -_MOST.files]:
            file.unlink(missing_ok=True)


def remembered_office(url: str, office: str, computer: str | None) -> RememberedOffice | None:
    """The memory of this office at this server; `None` if this user has no home folder. With `computer` it is the
    memory of that computer alone.
    """
    about = json.dumps([normal_url(url), office, computer]).encode("utf-8", "surrogatepass")
    with suppress(BadRequestError):
        return RememberedOffice(state_folder() / "offices" / f"{hashlib.sha256(about).hexdigest()[:24]}.json")
    return None


def _encoded(tools: ToolsByComputer, room: int) -> bytes:
    """As many computers as fit, those with short lists first: no computer can take the place of all others."""
    parts = {computer: codec.dumps({computer: found}).encode()[1:-1] for computer, found in tools.items()}
    kept, room = set[str](), room - 2
    for computer in sorted(parts, key=lambda computer: len(parts[computer])):
        room -= len(parts[computer]) + 1
        if room < 0:
            break
        kept.add(computer)
    return b"{%b}" % b",".join(part for computer, part in parts.items() if computer in kept)


def _decoded(content: bytes) -> ToolsByComputer:
    """The tools, checked as a computer's answer is. Raises `ValueError` or `BadRequestError`."""
    found = codec.loads_well_formed(content)
    if not isinstance(found, dict):
        raise ValueError("it is not a JSON object")
    return {
        computer: parse_response(GET_TOOLS_EVENT, {"tools": tools, "req_id": ""})["tools"]
        for computer, tools in found.items()
    }

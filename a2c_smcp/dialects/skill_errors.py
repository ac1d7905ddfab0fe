"""The errors about skills and uploads. Their codes are those of protocol 0.4. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from a2c_smcp.errors import SMCPError
from a2c_smcp.utils.text import cut

__all__ = ["invalid_skill_name", "skill_not_accessible", "skill_not_found", "upload_error"]

#: Characters of an agent's text that an error quotes.
_LONGEST: Final = 200


def skill_not_found(name: str) -> SMCPError:
    return SMCPError(4014, "Skill not found", {"name": cut(name, _LONGEST)})


def invalid_skill_name(name: str) -> SMCPError:
    return SMCPError(4016, "Invalid skill name", {"name": cut(name, _LONGEST)})


def skill_not_accessible(reason: str, rel_path: str) -> SMCPError:
    """Why a file is not given: `reason` is `traversal`, `forbidden`, `not_found` or `too_large`."""
    details = {"reason": reason, "rel_path": cut(rel_path, _LONGEST)}
    return SMCPError(4017, f"Skill resource not accessible: {reason}", details)


_UPLOADS: Final[Mapping[str, str]] = {
    "range": "the chunk does not begin where the last one ended",
    "integrity": "the bytes have another digest than the first chunk said; the upload is discarded",
    "invalid_declaration": "the first chunk must say total_size and sha256, every chunk must be base64, and all "
    "together must have total_size bytes",
    "invalid_upload": "no such upload, or it has ended",
    "too_large": "the file is too large",
    "busy": "too many uploads at once; try again later",
    "forbidden": "this computer takes no files: its config names no folder for them (uploads)",
    "io_error": "the file could not be written; the computer's log says why",
}


def upload_error(reason: str, upload_id: str | None = None) -> SMCPError:
    """Why a chunk of a file is not taken: a key of `_UPLOADS`."""
    details: dict[str, Any] = {"reason": reason}
    if upload_id is not None:
        details["upload_id"] = cut(upload_id, _LONGEST)
    return SMCPError(4019, _UPLOADS[reason], details)

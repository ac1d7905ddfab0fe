"""Binary content that is not in a result itself, but behind a handle. Pure: the caller keeps the bytes.

Results for 0.4 agents have such handles, because their messages are small. So have the results of 0.4 computers. Our
own peers send results whole.
"""

import base64
import binascii
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from a2c_smcp.errors import SMCPError
from a2c_smcp.smcp import CallToolRet, GetBlobReq, GetBlobRet

__all__ = [
    "BLOB_GONE",
    "CHUNK_BYTES",
    "INLINE_BYTES",
    "LARGEST_BLOB",
    "BlobHandle",
    "KeptBlob",
    "blob_error",
    "chunk_of",
    "handle_in",
    "with_handles",
    "without_handle",
]

#: How many decoded bytes of one content stay in a result, and how many may be behind one handle.
INLINE_BYTES: Final = 32_768
LARGEST_BLOB: Final = 100 * 1024 * 1024
#: Raw bytes of one chunk, at most.
CHUNK_BYTES: Final = 262_144
_HANDLE_KEY: Final = "a2c_blob_handle"
_SIZE_KEY: Final = "a2c_total_size"
_DIGEST_KEY: Final = "a2c_sha256"
_KEYS: Final = (_HANDLE_KEY, _SIZE_KEY, _DIGEST_KEY)
#: The code of 0.4 for bytes that are not given.
_NOT_ACCESSIBLE: Final = 4018
#: The reason for a handle that is unknown or has expired.
BLOB_GONE: Final = "gone"


@dataclass(frozen=True, slots=True)
class KeptBlob:
    """The bytes behind a handle."""

    data: bytes
    mime_type: str
    sha256: str


@dataclass(frozen=True, slots=True)
class BlobHandle:
    """What a result says of bytes that are not in it."""

    handle: str
    total_size: int
    sha256: str


def blob_error(reason: str) -> SMCPError:
    """The error for bytes that are not given: `invalid_handle`, `gone`, `forbidden` or `range`."""
    return SMCPError(_NOT_ACCESSIBLE, f"Blob not accessible: {reason}", {"reason": reason})


# --- a computer of ours, for an agent of 0.4


def with_handles(result: CallToolRet, keep: Callable[[KeptBlob], str | None]) -> CallToolRet:
    """The result with handles for its large binary contents. `keep` returns a handle, or `None` to leave it inline."""
    return {**result, "content": [_with_handle(item, keep) for item in result["content"]]}


def _with_handle(item: dict[str, Any], keep: Callable[[KeptBlob], str | None]) -> dict[str, Any]:
    inner: Any = item.get("resource") if item.get("type") == "resource" else item
    field = "blob" if item.get("type") == "resource" else "data"
    text = inner.get(field) if isinstance(inner, Mapping) else None
    if not isinstance(text, str) or len(text) * 3 // 4 <= INLINE_BYTES:
        return item
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return item
    if not INLINE_BYTES < len(data) <= LARGEST_BLOB:
        return item
    digest = hashlib.sha256(data).hexdigest()
    handle = keep(KeptBlob(data, str(inner.get("mimeType") or "application/octet-stream"), digest))
    if handle is None:
        return item
    said = {**(item.get("_meta") or {}), _HANDLE_KEY: handle, _SIZE_KEY: len(data), _DIGEST_KEY: digest}
    emptied = {**inner, field: ""}
    return {**(emptied if inner is item else {**item, "resource": emptied}), "_meta": said}


def chunk_of(request: GetBlobReq, blob: KeptBlob) -> GetBlobRet:
    """The answer to a request for a chunk. Raises 4018 for an offset outside the blob."""
    offset = request.get("chunk_offset") or 0
    wish = request.get("max_chunk_bytes") or CHUNK_BYTES
    if not 0 <= offset <= len(blob.data) or wish < 1:
        raise blob_error("range")
    chunk = blob.data[offset : offset + min(wish, CHUNK_BYTES)]
    return {
        "blob_handle": request["blob_handle"],
        "mime_type": blob.mime_type,
        "total_size": len(blob.data),
        "sha256": blob.sha256,
        "chunk_offset": offset,
        "eof": offset + len(chunk) == len(blob.data),
        "blob": base64.b64encode(chunk).decode(),
        "req_id": request["req_id"],
    }


# --- an agent of ours, for a computer of 0.4


def handle_in(meta: Mapping[str, Any] | None) -> BlobHandle | None:
    """The handle in the `_meta` of a content, if there is one that can be fetched."""
    found = [(meta or {}).get(key) for key in _KEYS]
    match found:
        case [str() as handle, int() as size, str() as digest] if handle and 0 <= size <= LARGEST_BLOB:
            return BlobHandle(handle, size, digest)
    return None


def without_handle(meta: Mapping[str, Any]) -> dict[str, Any] | None:
    """The `_meta` of a content whose bytes are in it again."""
    return {key: value for key, value in meta.items() if key not in _KEYS} or None

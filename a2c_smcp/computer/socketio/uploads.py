"""Files that an agent puts on this computer, chunk by chunk, into the one folder that the config names for it.

A file gets its final name only after its digest was checked. The bytes are on the disk, not in memory.
"""

import asyncio
import base64
import binascii
import hashlib
import logging
import os
import re
import secrets
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import anyio.to_thread

from a2c_smcp.dialects.blobs import CHUNK_BYTES, LARGEST_BLOB
from a2c_smcp.dialects.skill_errors import upload_error
from a2c_smcp.smcp import PutBlobReq, PutBlobRet

__all__ = ["Uploads"]

logger = logging.getLogger(__name__)

_MOST_UPLOADS: Final = 4
#: Seconds without a chunk after which an upload ends.
_IDLE: Final = 120.0
_UPLOAD_ID: Final = re.compile("[0-9a-f]{32}")
_PART: Final = re.compile(r"\.[0-9a-f]{32}\.part")
_SHA256: Final = re.compile("[0-9a-fA-F]{64}")
_OTHERS: Final = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME: Final = 80
#: The longest base64 of a chunk: four characters for three bytes, and some for the padding.
_CHUNK_CHARACTERS: Final = CHUNK_BYTES * 4 // 3 + 8


@dataclass(eq=False)
class _Upload:
    """A file of which some chunks have come."""

    id: str
    path: Path
    total_size: int
    sha256: str
    name: str
    size: int = 0
    digest: Any = field(default_factory=hashlib.sha256)
    timer: asyncio.TimerHandle | None = None
    busy: bool = False
    created: bool = False
    """Whether its file is there. The first chunk may be empty, so the size does not say it."""


class Uploads:
    """Takes chunks. Without a folder every file is refused."""

    def __init__(self, folder: Path | None, idle: float = _IDLE) -> None:
        self._folder = folder
        self._idle = idle
        self._uploads: dict[str, _Upload] = {}

    async def sweep(self) -> None:
        """Remove the unfinished files of processes that were killed. A running process ends an upload after the idle
        time, so a file that has not changed for twice as long belongs to no process.
        """
        if self._folder is not None:
            await anyio.to_thread.run_sync(_remove_parts, self._folder, time.time() - 2 * self._idle)

    async def answer(self, request: PutBlobReq) -> PutBlobRet:
        """Take a chunk. Raises 4019 if it is refused; the details have the reason."""
        if self._folder is None:
            raise upload_error("forbidden")
        data = _decoded(request)
        if request.get("upload_id") is None:
            await self.sweep()
            upload = self._begin(request, self._folder)
        else:
            upload = self._known(request)
        if upload.busy or request["chunk_offset"] != upload.size:
            raise upload_error("range", upload.id)
        if upload.size + len(data) > upload.total_size:
            self._end(upload)
            raise upload_error("invalid_declaration", upload.id)
        await self._write(upload, data)
        answer: PutBlobRet = {
            "upload_id": upload.id,
            "chunk_offset": request["chunk_offset"],
            "req_id": request["req_id"],
        }
        if not request["eof"]:
            self._touch(upload)
            return answer
        landed = await self._finish(upload)
        return {**answer, "landing_path": str(landed), "total_size": upload.total_size, "sha256": upload.sha256}

    def clear(self) -> None:
        """Remove all unfinished files: the agent has left."""
        for upload in list(self._uploads.values()):
            self._end(upload)

    def _begin(self, request: PutBlobReq, folder: Path) -> _Upload:
        size, digest = request.get("total_size"), request.get("sha256")
        if size is None or size < 1 or digest is None or not _SHA256.fullmatch(digest):
            raise upload_error("invalid_declaration")
        if size > LARGEST_BLOB:
            raise upload_error("too_large")
        if len(self._uploads) >= _MOST_UPLOADS:
            raise upload_error("busy")
        if request["chunk_offset"] != 0:
            raise upload_error("range")
        upload_id = secrets.token_hex(16)
        hint = _OTHERS.sub("_", Path(request.get("name_hint") or "").name).strip("._")[-_LONGEST_NAME:]
        name = f"{upload_id}_{hint}" if hint else upload_id
        upload = _Upload(upload_id, folder / f".{upload_id}.part", size, digest.lower(), name)
        self._uploads[upload_id] = upload
        self._touch(upload)
        return upload

    def _known(self, request: PutBlobReq) -> _Upload:
        upload_id = request.get("upload_id") or ""
        upload = self._uploads.get(upload_id) if _UPLOAD_ID.fullmatch(upload_id) else None
        if upload is None:
            raise upload_error("invalid_upload", upload_id)
        return upload

    async def _write(self, upload: _Upload, data: bytes) -> None:
        upload.busy = True
        try:
            await anyio.to_thread.run_sync(_append, upload.path, data, not upload.created)
            upload.created = True
        except OSError as error:
            logger.warning("a file that the agent puts cannot be written: %s", error)
            self._end(upload)
            raise upload_error("io_error", upload.id) from None
        finally:
            upload.busy = False
        upload.digest.update(data)
        upload.size += len(data)

    async def _finish(self, upload: _Upload) -> Path:
        if upload.size != upload.total_size:
            self._end(upload)
            raise upload_error("invalid_declaration", upload.id)
        if upload.digest.hexdigest() != upload.sha256:
            self._end(upload)
            raise upload_error("integrity", upload.id)
        landed = upload.path.with_name(upload.name)
        try:
            await anyio.to_thread.run_sync(os.replace, upload.path, landed)
        except OSError as error:
            logger.warning("a file that the agent put cannot be kept: %s", error)
            self._end(upload)
            raise upload_error("io_error", upload.id) from None
        self._end(upload)
        logger.info("the agent put a file of %d bytes: %s", upload.total_size, landed)
        return landed.absolute()

    def _touch(self, upload: _Upload) -> None:
        if upload.timer is not None:
            upload.timer.cancel()
        upload.timer = asyncio.get_running_loop().call_later(self._idle, self._end, upload)

    def _end(self, upload: _Upload) -> None:
        self._uploads.pop(upload.id, None)
        if upload.timer is not None:
            upload.timer.cancel()
        try:
            upload.path.unlink(missing_ok=True)
        except OSError as error:
            logger.warning("what is left of an upload cannot be removed: %s", error)


def _decoded(request: PutBlobReq) -> bytes:
    if len(request["blob"]) > _CHUNK_CHARACTERS:
        raise upload_error("too_large", request.get("upload_id"))
    try:
        return base64.b64decode(request["blob"], validate=True)
    except (binascii.Error, ValueError):
        raise upload_error("invalid_declaration", request.get("upload_id")) from None


def _remove_parts(folder: Path, before: float) -> None:
    try:
        with os.scandir(folder) as entries:
            parts = [each for each in entries if _PART.fullmatch(each.name) and each.is_file(follow_symlinks=False)]
        for each in parts:
            if each.stat(follow_symlinks=False).st_mtime < before:
                os.unlink(each.path)
    except OSError as error:
        # Another process may remove them at this moment. If the folder is not there, the upload says so.
        logger.debug("what is left of uploads cannot be removed: %s", error)


def _append(path: Path, data: bytes, begins: bool) -> None:
    flags = os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags | (os.O_CREAT | os.O_EXCL if begins else 0), 0o600)
    with os.fdopen(descriptor, "ab") as file:
        file.write(data)

"""Keeps binary content for a while, until the agent has fetched it in chunks. Knows handles and bytes."""

import asyncio
import secrets
from collections.abc import Callable
from typing import Final

from a2c_smcp.dialects.blobs import BLOB_GONE, KeptBlob, blob_error, chunk_of
from a2c_smcp.smcp import GetBlobReq, GetBlobRet
from a2c_smcp.utils.bounded import BoundedDict

__all__ = ["KeptBlobs"]

#: How long a handle can be used, and how many bytes are kept behind all handles. If there are more, the oldest go.
_BLOB_SECONDS: Final = 600.0
_KEPT_BYTES: Final = 128 * 1024 * 1024
_MOST_BLOBS: Final = 1024
_HANDLE_BYTES: Final = 18


class KeptBlobs:
    """The bytes behind the handles that were given to the agent of an office."""

    def __init__(self, heaviest: int = _KEPT_BYTES, seconds: float = _BLOB_SECONDS) -> None:
        self._heaviest = heaviest
        self._seconds = seconds
        self._blobs: BoundedDict[str, KeptBlob] = BoundedDict(
            _MOST_BLOBS, heaviest=heaviest, weigh=lambda blob: len(blob.data)
        )
        self._timer: asyncio.TimerHandle | None = None
        self._skills: BoundedDict[str, str] = BoundedDict(_MOST_BLOBS)
        """The skill whose content a handle stands for, if it is one."""

    def keep(self, blob: KeptBlob, skill: str | None = None) -> str | None:
        """A new handle for these bytes; `None` if they are too many to be kept."""
        if len(blob.data) > self._heaviest:
            return None
        loop, handle = asyncio.get_running_loop(), secrets.token_urlsafe(_HANDLE_BYTES)
        self._blobs.put(handle, blob, loop.time())
        if skill is not None:
            self._skills.put(handle, skill)
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, self._forget)
        return handle

    def for_one_result(self) -> Callable[[KeptBlob], str | None]:
        """A function that keeps the contents of one result. It returns `None` for a content that would push out another
        content of the same result.
        """
        left = self._heaviest

        def keep(blob: KeptBlob) -> str | None:
            nonlocal left
            if len(blob.data) > left:
                return None
            left -= len(blob.data)
            return self.keep(blob)

        return keep

    def skill_of(self, handle: str) -> str | None:
        """The name of the skill whose content this handle stands for."""
        return self._skills.get(handle)

    def answer(self, request: GetBlobReq) -> GetBlobRet:
        """A chunk. Raises 4018 for a handle that is unknown or has expired, and for an offset beyond the end."""
        self._blobs.forget_before(asyncio.get_running_loop().time() - self._seconds)
        blob = self._blobs.get(request["blob_handle"])
        if blob is None:
            raise blob_error(BLOB_GONE)
        return chunk_of(request, blob)

    def clear(self) -> None:
        """Forget all bytes: the computer has left the office."""
        self._blobs.clear()
        self._skills.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _forget(self) -> None:
        loop = asyncio.get_running_loop()
        self._blobs.forget_before(loop.time() - self._seconds + 0.5)
        self._timer = loop.call_later(self._seconds / 2, self._forget) if len(self._blobs) else None

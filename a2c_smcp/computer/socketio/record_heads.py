"""Tells the server how far the computer's record goes, so that somebody else holds the head of its chain."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import anyio.to_thread

from a2c_smcp.errors import ConnectionLostError, SMCPError, error_from_payload
from a2c_smcp.record.reading import reading
from a2c_smcp.record.schema import RecordFileError
from a2c_smcp.smcp import RECORD_HEAD_EVENT, RecordHeadReq

__all__ = ["RecordHeads"]

logger = logging.getLogger(__name__)

#: Seconds between two heads, unless the computer joins an office.
EVERY: Final = 300.0
_SOON: Final = 1.0


class RecordHeads:
    """`run` tells the head now and then; `joined` says that there is an office again; `tell` tells it once more."""

    def __init__(
        self, file: Path, request: Callable[[str, Any, float], Awaitable[tuple[Any, ...]]], every: float = EVERY
    ) -> None:
        self._file = file
        self._request = request
        self._every = every
        self._wake = asyncio.Event()
        self._told = ""
        self._is_warned = False

    def joined(self) -> None:
        """The computer is in an office, perhaps at another server."""
        self._told = ""
        self._wake.set()

    async def run(self) -> None:
        """Tell the head whenever the computer joins, and every few minutes, until cancelled."""
        await self._wake.wait()
        while True:
            self._wake.clear()
            was_answered = await self.tell()
            try:
                async with asyncio.timeout(self._every if was_answered else _SOON):
                    await self._wake.wait()
            except TimeoutError:
                pass

    async def tell(self) -> bool:
        """Tell the head, unless it is the one that was told last. Returns whether the server has answered."""
        try:
            head = await anyio.to_thread.run_sync(_head, self._file)
            if head == self._told:
                return True
            body: RecordHeadReq = {"head": head}
            (answer,) = await self._request(RECORD_HEAD_EVENT, body, 5.0)
            if (refusal := error_from_payload(answer)) is not None:
                self._warn(str(refusal))
            elif not answer["kept"]:
                self._warn("it keeps no record itself")
            else:
                self._told = head
        except (RecordFileError, ConnectionLostError):
            return False  # there is no row yet, or no server
        except (SMCPError, ValueError, TypeError, KeyError) as error:  # an answer of another shape
            self._warn(repr(error))
        return True

    def _warn(self, why: str) -> None:
        if not self._is_warned:
            self._is_warned = True
            logger.warning("the server does not keep the head of this computer's record: %s", why)


def _head(file: Path) -> str:
    with reading(file) as reader:
        return str(reader.head)

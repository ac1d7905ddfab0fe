"""The methods of the asyncio agent that are about skills and blobs. They ask; the client connects."""

import asyncio
import base64
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from a2c_smcp.agent import skill_requests
from a2c_smcp.agent.bounds import AnswerLimits
from a2c_smcp.agent.requests import Deadlines, Request
from a2c_smcp.agent.resource_requests import is_unknown_to_peer
from a2c_smcp.agent.skill_requests import GatheredBlob, SkillFile, body_in
from a2c_smcp.dialects.blobs import CHUNK_BYTES, LARGEST_BLOB, BlobHandle, handle_in, without_handle
from a2c_smcp.errors import BadRequestError, PayloadTooLargeError, RequestTimeoutError, SMCPError
from a2c_smcp.smcp import AgentCallData, GetBlobRet, SkillInfo

if TYPE_CHECKING:
    from mcp_types import CallToolResult

__all__ = ["SkillMethods"]

logger = logging.getLogger(__name__)

_T = TypeVar("_T")


class SkillMethods(ABC):
    """To be inherited by the client, which sends the requests."""

    _deadlines: Deadlines
    _limits: AnswerLimits

    @abstractmethod
    def _call(self, req_id: str | None = None) -> AgentCallData: ...

    @abstractmethod
    async def _ask(self, request: Request, read: Callable[[Request, tuple[Any, ...]], _T]) -> _T: ...

    async def get_skills(self, computer: str) -> list[SkillInfo]:
        """The skills of a computer: folders with instructions for a model. A computer that does not know this request
        has none.
        """
        try:
            request = skill_requests.get_skills(self._call(), self._deadlines, computer)
            return await self._ask(request, skill_requests.read_skills)
        except SMCPError as error:
            if is_unknown_to_peer(error):
                return []
            raise

    async def read_skill(self, computer: str, name: str, rel_path: str | None = None) -> SkillFile:
        """A file of a skill, by default its `SKILL.md` without the front matter.

        Raises `SMCPError` with the code 4014 for an unknown skill, 4016 for a name that no skill can have, and 4017
        for a file that is not there or not given.
        """
        request = skill_requests.get_skill(self._call(), self._deadlines, computer, name, rel_path)
        answer = await self._ask(request, skill_requests.read_skill_answer)
        if handle := answer.get("blob_handle"):
            blob = BlobHandle(handle, answer["total_size"], answer["sha256"])
            data = await self._fetching().bytes_of(computer, blob)
        else:
            data = body_in(answer)
        return SkillFile(answer["name"], answer["rel_path"], answer["mime_type"], data)

    async def put_blob(self, computer: str, data: bytes, name_hint: str | None = None) -> str:
        """Put a file on a computer whose config names a folder for it (`uploads`), and return its path there.

        Raises `SMCPError` with the code 4019. Its `details` have the reason: `forbidden` if there is no such folder,
        `too_large`, `busy`, `io_error`, and others.
        """
        if not 1 <= len(data) <= LARGEST_BLOB:
            too_large = PayloadTooLargeError(f"a file may have at most {LARGEST_BLOB} bytes")
            raise too_large if data else BadRequestError("an empty file cannot be put")
        offset, upload_id = 0, None
        while True:
            call, deadlines = self._call(), self._deadlines
            request = skill_requests.put_blob(call, deadlines, computer, data, offset, upload_id, name_hint)
            answer = await self._ask(request, skill_requests.read_put)
            upload_id, offset = answer["upload_id"], offset + CHUNK_BYTES
            if offset >= len(data):
                if not (path := answer.get("landing_path")):
                    raise BadRequestError("the computer does not say where it has put the file")
                return path

    def _fetching(self) -> "_Fetching":
        return _Fetching(self._chunk, self._limits.blob_bytes, self._deadlines.blobs)

    async def _chunk(self, computer: str, handle: str, offset: int) -> GetBlobRet:
        request = skill_requests.get_blob(self._call(), self._deadlines, computer, handle, offset)
        return await self._ask(request, skill_requests.read_chunk)

    async def _filled(self, computer: str, result: "CallToolResult") -> "CallToolResult":
        """The result with the bytes behind its handles. Computers of 0.4 send these bytes separately.

        If bytes cannot be fetched, the call does not fail, because the tool has run: a text says what is missing.
        """
        handles = [_handle_of(item) for item in result.content]
        if not any(handles):
            return result
        content, fetching = list[Any](), self._fetching()
        for item, handle in zip(result.content, handles, strict=True):
            if handle is None:
                content.append(item)
                continue
            try:
                content.append(_with_bytes(item, await fetching.bytes_of(computer, handle)))
            except SMCPError as error:
                logger.warning("the bytes of a result of %r cannot be fetched: %s", computer, error)
                content.append(_missing(item, handle, error))
        return result.model_copy(update={"content": content})


class _Fetching:
    """Fetches the bytes behind the handles of one answer. All of them share one limit of bytes and one deadline."""

    def __init__(self, chunk: Callable[[str, str, int], Awaitable[GetBlobRet]], most: int, seconds: float) -> None:
        self._chunk = chunk
        self._most = self._left = most
        self._seconds = seconds
        self._until = asyncio.get_running_loop().time() + seconds

    async def bytes_of(self, computer: str, handle: BlobHandle) -> bytes:
        """The bytes behind a handle, chunk by chunk, with their digest checked."""
        if handle.total_size > self._left:
            raise PayloadTooLargeError(f"the blobs of an answer may have at most {self._most} bytes")
        self._left -= handle.total_size
        blob, is_last = GatheredBlob(handle), False
        try:
            async with asyncio.timeout_at(self._until):
                while not is_last:
                    is_last = blob.add(await self._chunk(computer, handle.handle, blob.size))
        except TimeoutError:
            raise RequestTimeoutError(f"the blobs of an answer did not arrive within {self._seconds:g} s") from None
        return blob.finish()


def _handle_of(item: Any) -> BlobHandle | None:
    """The handle for the bytes of a content; `None` if it has bytes, or is of a kind that has none. Its `_meta` then
    belongs to the MCP server, whatever its keys are.
    """
    holder, field = (item.resource, "blob") if item.type == "resource" else (item, "data")
    return handle_in(item.meta) if getattr(holder, field, None) == "" else None


def _with_bytes(item: Any, data: bytes) -> Any:
    meta, text = without_handle(item.meta), base64.b64encode(data).decode()
    if item.type == "resource":
        return item.model_copy(update={"resource": item.resource.model_copy(update={"blob": text}), "meta": meta})
    return item.model_copy(update={"data": text, "meta": meta})


def _missing(item: Any, handle: BlobHandle, error: SMCPError) -> Any:
    from mcp_types import TextContent

    return TextContent(text=f"[{item.type} of {handle.total_size} bytes, which could not be fetched: {error.message}]")

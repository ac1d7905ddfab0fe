"""What an agent asks about skills and blobs, and how it reads the answers. Pure, like `requests`."""

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass
from typing import Any, Final, cast

from a2c_smcp.agent.requests import Deadlines, Request, read_reply, to_computer
from a2c_smcp.dialects.blobs import CHUNK_BYTES, BlobHandle
from a2c_smcp.errors import BadRequestError
from a2c_smcp.smcp import (
    GET_BLOB_EVENT,
    GET_SKILL_EVENT,
    GET_SKILLS_EVENT,
    PUT_BLOB_EVENT,
    AgentCallData,
    GetBlobRet,
    GetSkillRet,
    PutBlobRet,
    SkillInfo,
)

__all__ = [
    "GatheredBlob",
    "SkillFile",
    "body_in",
    "get_blob",
    "get_skill",
    "get_skills",
    "put_blob",
    "read_chunk",
    "read_put",
    "read_skill_answer",
    "read_skills",
]

#: Bytes of a chunk that is not the last one. A blob in single bytes would keep its caller waiting for days.
_SMALLEST_CHUNK: Final = 16 * 1024


@dataclass(frozen=True, slots=True)
class SkillFile:
    """A file of a skill."""

    name: str
    rel_path: str
    mime_type: str
    data: bytes

    @property
    def text(self) -> str:
        """The file as text. Bytes that are not UTF-8 become U+FFFD."""
        return self.data.decode("utf-8", "replace")


class GatheredBlob:
    """Collects the bytes behind a handle, chunk by chunk. Every chunk must belong to the same blob."""

    def __init__(self, handle: BlobHandle) -> None:
        self.handle = handle
        self._digest = hashlib.sha256()
        self._chunks: list[bytes] = []
        self.size = 0

    def add(self, chunk: GetBlobRet) -> bool:
        """Take the next chunk. Returns whether it was the last one. Raises `BadRequestError` if it does not fit."""
        try:
            data = base64.b64decode(chunk["blob"], validate=True)
        except (binascii.Error, ValueError):
            raise BadRequestError("a chunk of a blob is not base64") from None
        expected = self.handle
        if (chunk["total_size"], chunk["sha256"].lower()) != (expected.total_size, expected.sha256.lower()):
            raise BadRequestError("the computer sent chunks of another blob")
        if chunk["chunk_offset"] != self.size or self.size + len(data) > expected.total_size:
            raise BadRequestError("the computer sent another chunk of the blob than the one that was asked for")
        if len(data) < _SMALLEST_CHUNK and self.size + len(data) < expected.total_size:
            raise BadRequestError("the computer sent a very small chunk of a blob; the rest would take too long")
        self._digest.update(data)
        self._chunks.append(data)
        self.size += len(data)
        return self.size == expected.total_size

    def finish(self) -> bytes:
        """All bytes. Raises `BadRequestError` if they do not have the digest that the handle says."""
        if self._digest.hexdigest() != self.handle.sha256.lower():
            raise BadRequestError("the digest of a blob does not fit its bytes")
        return b"".join(self._chunks)


def body_in(answer: GetSkillRet) -> bytes:
    """The bytes of a file whose text is in the answer itself. Raises `BadRequestError` if the answer has no text, or
    another size or digest than that of its text.
    """
    text = answer.get("body")
    if text is None:
        raise BadRequestError("the computer sent neither the text of the file nor a handle")
    data = text.encode("utf-8", "surrogatepass")
    if (len(data), hashlib.sha256(data).hexdigest()) != (answer["total_size"], answer["sha256"].lower()):
        raise BadRequestError("the size or the digest of a file does not fit its text")
    return data


# --- building


def get_skills(call: AgentCallData, deadlines: Deadlines, computer: str) -> Request:
    return to_computer(GET_SKILLS_EVENT, call, deadlines.reply, computer)


def get_skill(call: AgentCallData, deadlines: Deadlines, computer: str, name: str, rel_path: str | None) -> Request:
    fields = {"name": name} if rel_path is None else {"name": name, "rel_path": rel_path}
    return to_computer(GET_SKILL_EVENT, call, deadlines.reply, computer, fields)


def get_blob(call: AgentCallData, deadlines: Deadlines, computer: str, handle: str, offset: int) -> Request:
    fields = {"blob_handle": handle, "chunk_offset": offset, "max_chunk_bytes": CHUNK_BYTES}
    return to_computer(GET_BLOB_EVENT, call, deadlines.reply, computer, fields)


def put_blob(
    call: AgentCallData,
    deadlines: Deadlines,
    computer: str,
    data: bytes,
    offset: int,
    upload_id: str | None,
    name_hint: str | None,
) -> Request:
    """The chunk of `data` that begins at this offset. The first one declares the whole."""
    chunk = data[offset : offset + CHUNK_BYTES]
    fields: dict[str, Any] = {
        "chunk_offset": offset,
        "eof": offset + len(chunk) == len(data),
        "blob": base64.b64encode(chunk).decode(),
    }
    if upload_id is not None:
        fields["upload_id"] = upload_id
    else:
        fields |= {"total_size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        if name_hint is not None:
            fields["name_hint"] = name_hint
    return to_computer(PUT_BLOB_EVENT, call, deadlines.reply, computer, fields)


# --- reading


def read_skills(request: Request, args: tuple[Any, ...]) -> list[SkillInfo]:
    """The skills. A computer of 0.4 says where each is on its machine: the agent sees the last part of that path."""
    skills = cast("list[SkillInfo]", read_reply(request, args)["skills"])
    return [{**skill, "path": re.split(r"[/\\]", skill["path"].rstrip("/\\"))[-1]} for skill in skills]


def read_skill_answer(request: Request, args: tuple[Any, ...]) -> GetSkillRet:
    return cast("GetSkillRet", read_reply(request, args))


def read_chunk(request: Request, args: tuple[Any, ...]) -> GetBlobRet:
    return cast("GetBlobRet", read_reply(request, args))


def read_put(request: Request, args: tuple[Any, ...]) -> PutBlobRet:
    return cast("PutBlobRet", read_reply(request, args))

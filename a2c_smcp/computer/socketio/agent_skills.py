"""Answers the requests of an office's agent for skills, blobs and uploads. What is on the disk is known elsewhere."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from a2c_smcp.computer.resources.read_guard import ReadGuard
from a2c_smcp.computer.rules.reads import ReadKind
from a2c_smcp.computer.skills.folder import SkillFolder
from a2c_smcp.computer.socketio.kept_blobs import KeptBlobs
from a2c_smcp.computer.socketio.uploads import Uploads
from a2c_smcp.dialects.blobs import INLINE_BYTES, KeptBlob
from a2c_smcp.dialects.skill_errors import skill_not_accessible, skill_not_found
from a2c_smcp.smcp import (
    GetBlobReq,
    GetBlobRet,
    GetSkillReq,
    GetSkillRet,
    GetSkillsReq,
    GetSkillsRet,
    PutBlobReq,
    PutBlobRet,
    SkillInfo,
)

__all__ = ["AgentSkills"]

logger = logging.getLogger(__name__)

#: Seconds between two looks at the folder of skills.
_LOOK: Final = 2.0


class AgentSkills:
    """Answers requests, as far as the `guard` lets the agent read. Without a folder of skills there are none, and
    without one for uploads no file is taken.
    """

    def __init__(self, skills: Path | None, uploads: Path | None, blobs: KeptBlobs, guard: ReadGuard) -> None:
        self._guard = guard
        self._skills = None if skills is None else SkillFolder(skills)
        self._uploads = Uploads(uploads)
        self._blobs = blobs

    def forget_agent(self) -> None:
        """End the agent's uploads: it has gone. Blobs stay until they expire, because the agent may come back and
        repeat a call. The result that is remembered for it has the same handles.
        """
        self._uploads.clear()

    def forget_all(self) -> None:
        """End uploads, and forget blobs: the Computer has left the office."""
        self._uploads.clear()
        self._blobs.clear()

    async def get_skills(self, request: GetSkillsReq) -> GetSkillsRet:
        if (sight := self._guard.sight()) is None:
            found = await self._listed()
        else:
            async with sight.listing("skills"):
                found = await self._listed() if sight.shows(ReadKind.SKILL, "") else []
        return {"skills": found, "req_id": request["req_id"]}

    async def _listed(self) -> list[SkillInfo]:
        return [] if self._skills is None else await anyio.to_thread.run_sync(self._skills.list)

    async def get_skill(self, request: GetSkillReq) -> GetSkillRet:
        if (sight := self._guard.sight()) is not None:
            async with sight.reading(ReadKind.SKILL, "", request["name"]):
                return await self._get_skill(request)
        return await self._get_skill(request)

    async def _get_skill(self, request: GetSkillReq) -> GetSkillRet:
        name = request["name"]
        if self._skills is None:
            raise skill_not_found(name)
        body = await anyio.to_thread.run_sync(self._skills.read, name, request.get("rel_path"))
        answer: GetSkillRet = {
            "name": name,
            "rel_path": body.rel_path,
            "mime_type": body.mime_type,
            "total_size": len(body.data),
            "sha256": body.sha256,
            "req_id": request["req_id"],
        }
        if body.is_text and len(body.data) <= INLINE_BYTES:
            return {**answer, "body": body.data.decode()}
        handle = self._blobs.keep(KeptBlob(body.data, body.mime_type, body.sha256), name)
        if handle is None:
            raise skill_not_accessible("too_large", body.rel_path)
        return {**answer, "blob_handle": handle}

    async def get_blob(self, request: GetBlobReq) -> GetBlobRet:
        if (sight := self._guard.sight()) is None:
            return self._blobs.answer(request)
        if (skill := self._blobs.skill_of(request["blob_handle"])) is not None:
            await sight.check(ReadKind.SKILL, "", skill)
        async with sight.reading(ReadKind.BLOB, ""):
            return self._blobs.answer(request)

    async def put_blob(self, request: PutBlobReq) -> PutBlobRet:
        if (sight := self._guard.sight()) is None:
            return await self._uploads.answer(request)
        async with sight.reading(ReadKind.BLOB, ""):
            return await self._uploads.answer(request)

    async def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed` whenever the skills have changed, until cancelled. First it cleans the folder of uploads."""
        await self._uploads.sweep()
        if self._skills is None:
            return
        seen = await anyio.to_thread.run_sync(self._skills.signature)
        while True:
            await anyio.sleep(_LOOK)
            now = await anyio.to_thread.run_sync(self._skills.signature)
            if now != seen:
                seen = now
                changed()

"""The bytes behind a handle, from computers that lie about them. No sockets: the agent here asks one fixed answer."""

import base64
import hashlib
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from mcp_types import CallToolResult, EmbeddedResource, ImageContent, TextContent, TextResourceContents

from a2c_smcp.agent.bounds import AnswerLimits
from a2c_smcp.agent.requests import Deadlines, Request
from a2c_smcp.agent.skill_methods import SkillMethods
from a2c_smcp.agent.skill_requests import GatheredBlob
from a2c_smcp.dialects.blobs import BlobHandle
from a2c_smcp.errors import BadRequestError
from a2c_smcp.smcp import AgentCallData

DATA = bytes(range(256)) * 400
DIGEST = hashlib.sha256(DATA).hexdigest()
HANDLE = BlobHandle("h", len(DATA), DIGEST)


def chunk(offset: int, data: bytes, **other: Any) -> Any:
    told = {"blob_handle": "h", "mime_type": "a/b", "total_size": len(DATA), "sha256": DIGEST, "eof": False}
    return {**told, "chunk_offset": offset, "blob": base64.b64encode(data).decode(), "req_id": "1", **other}


def test_chunks_become_the_bytes() -> None:
    blob = GatheredBlob(HANDLE)
    assert blob.add(chunk(0, DATA[:50_000])) is False
    assert blob.add(chunk(50_000, DATA[50_000:])) is True
    assert blob.finish() == DATA


@pytest.mark.parametrize(
    "lie",
    [
        chunk(0, DATA[:50_000], total_size=1),
        chunk(0, DATA[:50_000], sha256="0" * 64),
        chunk(1, DATA[:50_000]),
        chunk(0, DATA + b"more"),
        chunk(0, b""),
        chunk(0, b"x"),
        chunk(0, DATA, blob="not base64!"),
    ],
)
def test_a_chunk_that_does_not_fit_ends_it(lie: Any) -> None:
    with pytest.raises(BadRequestError):
        GatheredBlob(HANDLE).add(lie)


def test_other_bytes_than_promised_are_refused() -> None:
    blob = GatheredBlob(HANDLE)
    assert blob.add(chunk(0, bytes(len(DATA)))) is True
    with pytest.raises(BadRequestError, match="digest"):
        blob.finish()


class _Agent(SkillMethods):
    """Asks a computer that answers every request for a chunk with the same one."""

    def __init__(self, said: Any, limits: AnswerLimits | None = None, seconds: float = 60.0, pause: float = 0) -> None:
        self._deadlines = Deadlines(blobs=seconds)
        self._limits = limits or AnswerLimits()
        self._pause = pause
        self._said = said
        self.asked = 0

    def _call(self, req_id: str | None = None) -> AgentCallData:
        return {"agent": "a", "req_id": req_id or "1"}

    async def _ask(self, request: Request, read: Callable[[Request, tuple[Any, ...]], Any]) -> Any:
        self.asked += 1
        await anyio.sleep(self._pause)
        return read(request, (self._said,))


def _result(size: int = len(DATA)) -> CallToolResult:
    meta = {"a2c_blob_handle": "h", "a2c_total_size": size, "a2c_sha256": DIGEST}
    image = ImageContent(data="", mime_type="image/png", _meta=meta)
    return CallToolResult(content=[TextContent(text="before"), image])


async def test_a_result_is_filled_and_one_that_cannot_be_says_what_is_missing() -> None:
    filled = await _Agent(chunk(0, DATA))._filled("pc", _result())
    image = filled.content[1]
    assert isinstance(image, ImageContent)
    assert (base64.b64decode(image.data), image.meta) == (DATA, None)
    for said in (chunk(0, DATA[:50_000]), {"code": 4018, "message": "Blob not accessible", "details": {}}):
        lost = (await _Agent(said)._filled("pc", _result())).content
        assert isinstance(lost[1], TextContent)
        assert f"image of {len(DATA)} bytes, which could not be fetched" in lost[1].text


async def test_a_handle_for_more_than_anybody_can_take_is_not_asked_for() -> None:
    agent = _Agent(chunk(0, DATA))
    assert (await agent._filled("pc", _result(2**40))).content[1].type == "image"
    assert agent.asked == 0


async def test_all_blobs_of_a_result_share_one_limit() -> None:
    result, limits = _result(), AnswerLimits(blob_bytes=len(DATA) * 3 // 2)
    both = result.model_copy(update={"content": [*result.content, result.content[1]]})
    filled = (await _Agent(chunk(0, DATA), limits)._filled("pc", both)).content
    assert [item.type for item in filled] == ["text", "image", "text"]
    assert isinstance(filled[2], TextContent)
    assert f"at most {limits.blob_bytes} bytes" in filled[2].text


async def test_a_computer_that_sends_its_chunks_slowly_holds_a_call_up_no_longer_than_the_deadline() -> None:
    with anyio.fail_after(20):
        late = (await _Agent(chunk(0, DATA), seconds=0.05, pause=30)._filled("pc", _result())).content[1]
    assert isinstance(late, TextContent)
    assert "did not arrive within 0.05 s" in late.text


async def test_only_a_content_that_lacks_its_bytes_has_a_handle() -> None:
    meta = {"a2c_blob_handle": "h", "a2c_total_size": len(DATA), "a2c_sha256": DIGEST}
    items = [
        TextContent(text="the text", _meta=meta),
        ImageContent(data="AAAA", mime_type="image/png", _meta=meta),
        EmbeddedResource(resource=TextResourceContents(uri="a://b", text=""), _meta=meta),
    ]
    agent, result = _Agent(chunk(0, DATA)), CallToolResult(content=list(items))
    assert await agent._filled("pc", result) is result
    assert agent.asked == 0


def _skill(**fields: Any) -> dict[str, Any]:
    told = {"name": "x", "rel_path": "SKILL.md", "mime_type": "t", "total_size": 3, "req_id": "1"}
    return {**told, "sha256": hashlib.sha256(b"yes").hexdigest(), **fields}


async def test_a_file_of_a_skill_must_be_what_the_computer_says() -> None:
    assert (await _Agent(_skill(body="yes")).read_skill("pc", "x")).text == "yes"
    for lie in (_skill(body="lie"), _skill(body="yes", total_size=4), _skill(), _skill(body="\ud800")):
        with pytest.raises(BadRequestError):
            await _Agent(lie).read_skill("pc", "x")


async def test_a_file_that_was_put_nowhere_is_an_error() -> None:
    with pytest.raises(BadRequestError, match="where"):
        await _Agent({"upload_id": "u", "chunk_offset": 0, "req_id": "1"}).put_blob("pc", b"x")

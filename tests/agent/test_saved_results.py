"""Results as files: what is large is in the folder, and strangers do not choose where."""

import base64
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp_types import AudioContent, CallToolResult, ImageContent, ResourceLink, TextContent

from a2c_smcp.agent import text_of
from a2c_smcp.agent.saved_results import LONG_TEXT, SaveBounds, _file_name, _FileBody, folder_for, saved_result
from a2c_smcp.errors import BadRequestError, NotFoundError
from a2c_smcp.mcp_server import ContextServer, Window
from a2c_smcp.testing import in_process, office

BOUNDS = SaveBounds(60)
PNG = base64.b64encode(b"\x89PNG picture").decode()


def image() -> Any:
    return [ImageContent(data=PNG, mime_type="image/png"), TextContent(text="short"), TextContent(text="x" * 30_000)]


def link() -> Any:
    return [
        ResourceLink(name="../../door", uri="window://com.example.kit/door", mime_type="text/plain"),
        ResourceLink(name="gone", uri="file:///gone"),
    ]


async def test_what_is_large_becomes_a_file_and_links_are_followed(tmp_path: Path) -> None:
    kit = ContextServer("kit", host="com.example.kit", windows={"door": Window("The door is open.")})
    kit.tool(image)
    kit.tool(link)
    async with office([in_process(kit, share="all")]) as lab:
        folder = tmp_path / "new" / "folder"
        result = await lab.agent.call_tool("pc", "image", save_to=folder)
        picture, short, long = result.content
        assert picture.type == long.type == "resource_link"
        assert picture.uri == (folder / "image.png").as_uri()
        assert (folder / "image.png").read_bytes() == b"\x89PNG picture"
        assert (folder / "text.txt").read_text() == "x" * 30_000
        assert (long.size, short.type, text_of(result)) == (30_000, "text", "short")
        again = (await lab.agent.call_tool("pc", "image", save_to=folder)).content[0]
        assert again.type == "resource_link" and again.uri.endswith("/image-2.png"), "nothing is written over"
        door, gone = (await lab.agent.call_tool("pc", "link", save_to=folder)).content
        assert door.type == gone.type == "resource_link"
        assert door.uri == (folder / "door.txt").as_uri()
        assert (folder / "door.txt").read_text() == "The door is open."
        assert gone.uri == "file:///gone", "what cannot be read stays a link"


@pytest.mark.parametrize(
    ("name", "saved"),
    [
        ("../../etc/passwd", "passwd.txt"),
        ("file:///srv/r%C3%A9sum%C3%A9 1.pdf", "r-sum-1.pdf"),
        ("..", "result.txt"),
        ("C:\\a\\b.exe", "b.exe"),
        ("\x1b[2J\n", "2J.txt"),
        (".bashrc", "bashrc.txt"),
        ("x" * 500, "x" * 80 + ".txt"),
        ("", "result.txt"),
    ],
)
def test_a_name_of_strangers_becomes_harmless(name: str, saved: str) -> None:
    assert _file_name(_FileBody(b"", name, "text/plain; charset=utf-8")) == saved


async def test_what_is_broken_stays_in_the_result(tmp_path: Path) -> None:
    async def read(uri: str) -> Any:
        raise NotFoundError(uri)

    broken = AudioContent(data="not base64!", mime_type="audio/wav")
    short = TextContent(text="x" * LONG_TEXT)
    result = CallToolResult(content=[broken, short, ResourceLink(name="n", uri="u:1")])
    assert (await saved_result(result, tmp_path, read, BOUNDS)).content == result.content
    assert not any(tmp_path.glob("*"))  # noqa: ASYNC240


LINKS = CallToolResult(content=[ResourceLink(name="n", uri=f"u:{n}") for n in range(10_000)])


def how_many_files(folder: Path) -> int:
    return len(list(folder.iterdir()))


async def test_no_more_than_so_many_links_are_read(tmp_path: Path) -> None:
    reads: list[str] = []

    async def read(uri: str) -> Any:
        reads.append(uri)
        return [{"text": "x" * 100}]

    saved = await saved_result(LINKS, tmp_path, read, SaveBounds(60, files=5))
    assert (len(reads), how_many_files(tmp_path)) == (5, 5)
    assert saved.content[5:] == LINKS.content[5:]
    saved = await saved_result(LINKS, tmp_path, read, SaveBounds(60, bytes=250))
    assert how_many_files(tmp_path) == 7 and saved.content[2:] == LINKS.content[2:]


async def test_reading_links_ends_in_time(tmp_path: Path) -> None:
    async def read(uri: str) -> Any:
        await anyio.sleep_forever()

    image = ImageContent(data=PNG, mime_type="image/png")
    result = CallToolResult(content=[*LINKS.content[:100], image])
    with anyio.fail_after(20):
        saved = await saved_result(result, tmp_path, read, SaveBounds(0.1))
    assert saved.content[:-1] == result.content[:-1]
    assert how_many_files(tmp_path) == 1, "what is here already is saved"


@pytest.mark.parametrize(
    "contents",
    [{"text": "x", "mimeType": 5}, {"blob": PNG, "mimeType": ["a"]}, {"text": ["x"]}, {"blob": 5}, {"mimeType": {}}],
)
async def test_contents_of_strangers_lose_no_result(tmp_path: Path, contents: dict[str, Any]) -> None:
    async def read(uri: str) -> Any:
        return [contents]

    result = CallToolResult(content=[TextContent(text="it ran"), LINKS.content[0]])
    saved = await saved_result(result, tmp_path, read, BOUNDS)
    assert text_of(saved) == "it ran"
    assert [item.type for item in saved.content] == ["text", "resource_link"]


async def test_contents_that_are_no_contents_lose_no_result(tmp_path: Path) -> None:
    async def read(uri: str) -> Any:
        return [None]

    result = CallToolResult(content=[LINKS.content[0]])
    assert (await saved_result(result, tmp_path, read, BOUNDS)).content == result.content


def test_a_folder_that_cannot_be_used_is_said_before_the_call(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadRequestError, match="cannot be used for results"):
        folder_for(tmp_path / "file")


def test_a_text_within_a_budget() -> None:
    result = CallToolResult(content=[TextContent(text="a" * 600), TextContent(text="b" * 600)])
    assert text_of(result, 2000) == text_of(result)
    cut = text_of(result, 100)
    assert len(cut) == 100 and cut.startswith("aaa") and cut.endswith("[cut: 1,201 characters in all]")
    assert (text_of(result, 5), text_of(result, 0)) == ("\n[cut", "")

"""A folder of skills, and files that an agent puts, on a real disk."""

import asyncio
import base64
import hashlib
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from a2c_smcp.computer.config.files import read_config_text
from a2c_smcp.computer.skills.folder import SkillFolder
from a2c_smcp.computer.skills.front_matter import split_front_matter
from a2c_smcp.computer.socketio.kept_blobs import KeptBlobs
from a2c_smcp.computer.socketio.uploads import Uploads
from a2c_smcp.dialects.blobs import KeptBlob
from a2c_smcp.errors import SMCPError
from tests.server.harness import eventually

HEAD = "---\nname: draw\ndescription: >\n  Draws\n  things.\nallowed-tools: a b\ntags: [x, 'y']\n---\n"


@pytest.fixture
def folder(tmp_path: Path) -> SkillFolder:
    skill = tmp_path / "skills" / "draw"
    (skill / "notes").mkdir(parents=True)
    (skill / "SKILL.md").write_text(HEAD + "Body.\n")
    (skill / "notes" / "more.txt").write_text("more")
    (skill / "picture.png").write_bytes(b"\x89PNG\0")
    (skill / ".skillenv").write_text("KEY=secret")
    (tmp_path / "secret.txt").write_text("secret")
    (skill / "link.txt").symlink_to(tmp_path / "secret.txt")
    (skill / "outside").symlink_to(tmp_path)
    (tmp_path / "skills" / "linked").symlink_to(tmp_path / "skills" / "draw")
    (tmp_path / "skills" / "No-Kebab").mkdir()
    (tmp_path / "skills" / "empty").mkdir()
    return SkillFolder(tmp_path / "skills")


def test_a_skill_is_listed_with_what_its_head_says(folder: SkillFolder) -> None:
    assert folder.list() == [
        {
            "name": "draw",
            "source": "user",
            "path": "draw",
            "description": "Draws things.",
            "allowed_tools": ["a b"],
            "tags": ["x", "y"],
        }
    ]


def test_its_files_are_read_and_the_head_is_left_out(folder: SkillFolder) -> None:
    body = folder.read("draw")
    assert (body.rel_path, body.mime_type, body.data, body.is_text) == ("SKILL.md", "text/markdown", b"Body.\n", True)
    assert body.sha256 == hashlib.sha256(b"Body.\n").hexdigest()
    assert folder.read("draw", "notes/more.txt").data == b"more"
    assert folder.read("draw", "picture.png").is_text is False


@pytest.mark.parametrize(
    ("name", "rel_path", "code", "reason"),
    [
        ("../draw", None, 4016, None),
        ("Draw", None, 4016, None),
        ("x" * 65, None, 4016, None),
        ("unknown", None, 4014, None),
        ("linked", None, 4014, None),
        ("draw", "../../secret.txt", 4017, "traversal"),
        ("draw", "/etc/passwd", 4017, "traversal"),
        ("draw", "notes/../../x", 4017, "traversal"),
        ("draw", "notes\\..\\x", 4017, "traversal"),
        ("draw", "C:x", 4017, "traversal"),
        ("draw", "a\0b", 4017, "traversal"),
        ("draw", "", 4017, "traversal"),
        ("draw", ".skillenv", 4017, "forbidden"),
        ("draw", ".skillenv.local", 4017, "forbidden"),
        ("draw", ".env.production", 4017, "forbidden"),
        ("draw", "notes/.ENV", 4017, "forbidden"),
        ("draw", ".envrc", 4017, "forbidden"),
        ("draw", "prod.env", 4017, "forbidden"),
        ("draw", "link.txt", 4017, "forbidden"),
        ("draw", "outside/secret.txt", 4017, "forbidden"),
        ("draw", "nothing.txt", 4017, "not_found"),
        ("draw", "notes", 4017, "not_found"),
        ("draw", "\ud800.txt", 4017, "not_found"),
        ("draw", ".\u017fKILLENV", 4017, "forbidden"),
    ],
)
def test_nothing_from_outside_is_given(
    folder: SkillFolder, name: str, rel_path: str | None, code: int, reason: str | None
) -> None:
    with pytest.raises(SMCPError) as caught:
        folder.read(name, rel_path)
    assert (caught.value.code, caught.value.details.get("reason")) == (code, reason)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_holds_nobody_up(folder: SkillFolder) -> None:
    os.mkfifo(folder.folder / "draw" / "pipe")
    with pytest.raises(SMCPError):
        folder.read("draw", "pipe")


def test_a_file_that_fails_while_it_is_read_is_not_found(tmp_path: Path) -> None:
    if not Path("/proc/self/mem").exists():
        pytest.skip("needs a file that opens and cannot be read")
    # Reading its first bytes is an OSError. The folder of the process stands for that of a skill.
    with pytest.raises(SMCPError) as caught:
        SkillFolder(Path("/proc"))._read(str(os.getpid()), ("mem",))
    assert caught.value.code == 4017


def test_the_log_has_only_what_is_new(folder: SkillFolder, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        folder.list()
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["skill 'empty' is left out"]
    caplog.clear()
    folder.folder.rename(folder.folder.with_name("away"))
    for _ in range(3):
        folder.signature()
    assert len(caplog.records) == 1
    folder.folder.with_name("away").rename(folder.folder)
    assert [skill["name"] for skill in folder.list()] == ["draw"]


def test_a_long_skill_is_listed_by_its_head_alone(folder: SkillFolder) -> None:
    (folder.folder / "draw" / "SKILL.md").write_bytes(HEAD.encode() + b"x" * (17 * 1024 * 1024))
    assert [skill["name"] for skill in folder.list()] == ["draw"]


def test_a_change_is_seen(folder: SkillFolder) -> None:
    before = folder.signature()
    assert folder.signature() == before
    (folder.folder / "draw" / "SKILL.md").write_text(HEAD + "Other.\n")
    assert folder.signature() != before


def test_the_head_of_a_file() -> None:
    text = "---\na: 1 # one\nb:\n  - x\n  - y\nmetadata:\n  k: v\nc: |\n  l1\n  l2\n---\nbody"
    assert split_front_matter(text) == (
        {"a": "1", "b": ["x", "y"], "metadata": {"k": "v"}, "c": "l1\nl2"},
        "body",
    )
    quoted = '---\n\'a\': "Draws" # c\n"b": \'it\'\'s\'\nc: "a \\"b\\""\nd: "x" y\n---\n'
    assert split_front_matter(quoted)[0] == {"a": "Draws", "b": "it's", "c": 'a "b"', "d": '"x" y'}
    assert split_front_matter("\ufeff---\na: 1\n---\nbody") == ({"a": "1"}, "body")
    assert split_front_matter("no head") == ({}, "no head")
    assert split_front_matter("---\nnever closed") == ({}, "---\nnever closed")


def test_a_config_names_the_folders_relative_to_itself(tmp_path: Path) -> None:
    (tmp_path / "skills").mkdir()
    file = str(tmp_path / "a2c.json")
    files = read_config_text('{"servers": [], "skills": "skills"}', file)
    assert (files.skills, files.uploads, files.problems) == (tmp_path / "skills", None, ())
    for wrong in ('"nothing"', "7", '""'):
        [problem] = read_config_text(f'{{"servers": [], "uploads": {wrong}}}', file).problems
        assert problem.field == "uploads"


# --- files that an agent puts


def names_in(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir()]


DATA = bytes(range(256)) * 2000
DIGEST = hashlib.sha256(DATA).hexdigest()


def put(offset: int, chunk: bytes, *, eof: bool, **more: Any) -> Any:
    asked = {"agent": "a", "req_id": "r", "computer": "c"}
    return {**asked, "chunk_offset": offset, "eof": eof, "blob": base64.b64encode(chunk).decode(), **more}


async def refused(uploads: Uploads, request: Any) -> str:
    with pytest.raises(SMCPError) as caught:
        await uploads.answer(request)
    assert caught.value.code == 4019
    return str(caught.value.details["reason"])


async def test_a_file_lands_whole_and_only_in_its_folder(tmp_path: Path) -> None:
    uploads, half = Uploads(tmp_path), 260_000
    declared = {"total_size": len(DATA), "sha256": DIGEST, "name_hint": "../a b.txt"}
    first = await uploads.answer(put(0, DATA[:half], eof=False, **declared))
    upload_id = first["upload_id"]
    assert await refused(uploads, put(half + 1, DATA[half:], eof=True, upload_id=upload_id)) == "range"
    last = await uploads.answer(put(half, DATA[half:], eof=True, upload_id=upload_id))
    landed = Path(str(last["landing_path"]))
    assert (landed.parent, landed.name) == (tmp_path, f"{upload_id}_a_b.txt")
    assert (await anyio.Path(landed).read_bytes(), last["sha256"]) == (DATA, DIGEST)
    assert names_in(tmp_path) == [landed.name]


async def test_what_is_wrong_with_a_file_is_said_and_nothing_stays(tmp_path: Path) -> None:
    whole = {"total_size": len(DATA), "sha256": DIGEST}
    assert await refused(Uploads(None), put(0, b"x", eof=True, **whole)) == "forbidden"
    uploads = Uploads(tmp_path)
    assert await refused(uploads, put(0, b"x", eof=True)) == "invalid_declaration"
    assert await refused(uploads, put(0, b"x", eof=True, **whole)) == "invalid_declaration"
    assert await refused(uploads, put(0, b"x", eof=True, total_size=1, sha256=DIGEST)) == "integrity"
    assert await refused(uploads, put(0, b"xy", eof=True, total_size=1, sha256=DIGEST)) == "invalid_declaration"
    assert await refused(uploads, put(0, b"x", eof=True, total_size=2**40, sha256=DIGEST)) == "too_large"
    assert await refused(uploads, put(0, b"x", eof=True, upload_id="../../x")) == "invalid_upload"
    for _ in range(4):
        await uploads.answer(put(0, b"x", eof=False, **whole))
    assert await refused(uploads, put(0, b"x", eof=False, **whole)) == "busy"
    uploads.clear()
    assert names_in(tmp_path) == []
    gone = Uploads(tmp_path / "nothing")
    assert await refused(gone, put(0, b"x", eof=False, **whole)) == "io_error"


async def test_the_first_chunk_may_be_empty(tmp_path: Path) -> None:
    uploads, declared = Uploads(tmp_path), {"total_size": len(DATA[:9]), "sha256": hashlib.sha256(DATA[:9]).hexdigest()}
    first = await uploads.answer(put(0, b"", eof=False, **declared))
    last = await uploads.answer(put(0, DATA[:9], eof=True, upload_id=first["upload_id"]))
    assert await anyio.Path(str(last["landing_path"])).read_bytes() == DATA[:9]


async def test_what_a_killed_computer_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    dead, alive, other = (f".{'a' * 32}.part", f".{'b' * 32}.part", ".mine.part")
    for name in (dead, alive, other):
        (tmp_path / name).write_bytes(b"x")
    for name in (dead, other):
        os.utime(tmp_path / name, (0, 0))
    await Uploads(tmp_path).sweep()
    assert sorted(names_in(tmp_path)) == sorted([alive, other])


async def test_an_upload_that_nobody_goes_on_with_ends(tmp_path: Path) -> None:
    uploads = Uploads(tmp_path, idle=0.05)
    first = await uploads.answer(put(0, b"x", eof=False, total_size=2, sha256=DIGEST))
    await eventually(lambda: not names_in(tmp_path))
    assert await refused(uploads, put(1, b"x", eof=True, upload_id=first["upload_id"])) == "invalid_upload"


async def test_handles_expire_and_their_bytes_are_bounded() -> None:
    blobs = KeptBlobs(heaviest=100, seconds=0.05)

    def asked(handle: str) -> Any:
        return {"agent": "a", "req_id": "r", "computer": "c", "blob_handle": handle}

    old, new = (str(blobs.keep(KeptBlob(bytes(60), "a/b", "d"))) for _ in range(2))
    assert blobs.keep(KeptBlob(bytes(101), "a/b", "d")) is None
    assert blobs.answer(asked(new))["total_size"] == 60
    with pytest.raises(SMCPError):
        blobs.answer(asked(old))
    [first, second] = [blobs.for_one_result(), blobs.for_one_result()]
    assert first(KeptBlob(bytes(60), "a/b", "d")) is not None
    assert first(KeptBlob(bytes(60), "a/b", "d")) is None, "it would push the other one of this result out"
    assert second(KeptBlob(bytes(60), "a/b", "d")) is not None
    await eventually(lambda: not len(blobs._blobs))
    with pytest.raises(SMCPError) as caught:
        blobs.answer(asked(new))
    assert (caught.value.code, caught.value.details) == (4018, {"reason": "gone"})
    blobs.clear()


async def test_a_handle_ends_on_time_also_if_the_timer_is_late() -> None:
    blobs, loop = KeptBlobs(seconds=600), asyncio.get_running_loop()
    handle = str(blobs.keep(KeptBlob(b"x", "a/b", "d")))
    blobs._blobs._kept[handle] = (*blobs._blobs._kept[handle][:2], loop.time() - 601)
    with pytest.raises(SMCPError):
        blobs.answer({"agent": "a", "req_id": "r", "computer": "c", "blob_handle": handle})
    blobs.clear()

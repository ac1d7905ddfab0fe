"""Bytes that came in an answer, kept in files."""

import base64
from pathlib import Path
from typing import Any

import pytest

from a2c_smcp.errors import BadRequestError
from a2c_smcp.utils.saving import describe, save


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


IMAGE: dict[str, Any] = {"type": "image", "data": encoded(b"picture"), "mimeType": "image/png"}
TEXT: dict[str, Any] = {"type": "text", "text": "hello"}
EMBEDDED: dict[str, Any] = {"type": "resource", "resource": {"uri": "x://y", "blob": encoded(b"embedded")}}
BLOB: dict[str, Any] = {"uri": "dpe://h/d", "blob": encoded(b"read"), "mimeType": "application/pdf"}


def test_an_image_is_saved_and_said_to_be_one(tmp_path: Path) -> None:
    file = tmp_path / "shot.png"
    assert save([TEXT, IMAGE], file) == [(file, "image/png, 7 bytes")]
    assert file.read_bytes() == b"picture"


def test_several_are_numbered(tmp_path: Path) -> None:
    saved = save([IMAGE, EMBEDDED, BLOB], tmp_path / "it.bin")
    assert [path.name for path, _ in saved] == ["it.bin", "it-2.bin", "it-3.bin"]
    assert [path.read_bytes() for path, _ in saved] == [b"picture", b"embedded", b"read"]


@pytest.mark.parametrize("items", [[], [TEXT], [{"type": "image", "data": "###"}], [{"type": "image", "data": "é"}]])
def test_nothing_to_save_is_said(tmp_path: Path, items: list[dict[str, Any]]) -> None:
    with pytest.raises(BadRequestError, match="nothing is saved"):
        save(items, tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadRequestError, match="cannot be written"):
        save([IMAGE], tmp_path / "no" / "folder")
    with pytest.raises(BadRequestError, match="home folder is unknown"):
        save([IMAGE], "~nosuchuser/x")


@pytest.mark.parametrize("data", ["###", "é##"])
def test_what_is_not_base64_is_described_all_the_same(data: str) -> None:
    assert describe({"type": "image", "data": data}, "data") == "image, 3 bytes"

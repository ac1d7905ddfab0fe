"""Pages, elements and image files to look at."""

import base64
import io
import random
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from PIL import Image

from a2c_smcp.docs.formats import open_document
from a2c_smcp.docs.formats.pictures import png_within
from a2c_smcp.docs.library import Library
from a2c_smcp.docs.limits import DocumentLimits, Unreadable
from a2c_smcp.docs.server import docs_server
from a2c_smcp.mcp_server.elements import Table
from a2c_smcp.utils.dpe_uri import element_uri, page_uri, with_image
from tests.docs.libraries import by_uri
from tests.docs.pdfs import drawn_pdf, opened, say

HOST = "com.example.garden"
IMAGE = "q 100 0 0 50 200 300 cm BI /W 1 /H 1 /BPC 8 /CS /G ID \x80 EI Q"


def size_of(png: bytes | None) -> tuple[int, int]:
    assert png is not None
    with Image.open(io.BytesIO(png)) as picture:
        assert picture.format == "PNG"
        return picture.size


def noise(width: int, height: int) -> Image.Image:
    return Image.frombytes("RGB", (width, height), random.Random(1).randbytes(width * height * 3))


def test_a_page_and_a_part_of_it_are_as_large_as_asked_for() -> None:
    document = opened(drawn_pdf("\n".join([say(72, 700, "Words"), IMAGE])))
    assert size_of(document.picture(0, None, 842)) == pytest.approx((595, 842), abs=1)
    image = next(element for element in document.page(0).elements if element.category == "image")
    assert size_of(document.picture(0, image, 400)) == pytest.approx((400, 208), abs=3)


def test_an_element_without_a_place_has_no_picture() -> None:
    assert opened(drawn_pdf(say(72, 700, "Words"))).picture(0, Table(["a"]), 400) is None


def test_a_picture_is_made_smaller_until_it_fits() -> None:
    picture = noise(400, 200)
    assert size_of(png_within(picture, 4096)) == (400, 200)
    small = png_within(picture, 4096, most_bytes=50_000)
    assert len(small) <= 50_000
    width, height = size_of(small)
    assert width == pytest.approx(2 * height, abs=2)


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGBA", "CMYK", "I;16"])
def test_an_image_of_any_kind_can_be_looked_at(mode: str) -> None:
    data = io.BytesIO()
    kind = "TIFF" if mode in ("CMYK", "I;16") else "PNG"
    Image.new(mode, (300, 100)).save(data, kind)
    document: Any = open_document(io.BytesIO(data.getvalue()), f"a.{kind.lower()}", DocumentLimits())
    assert "300 × 100 pixels" in document.page(0).elements[0].description
    assert size_of(document.picture(0, None, 150)) == (150, 50)


def test_an_image_that_would_fill_the_memory_is_refused() -> None:
    header = b"IHDR" + struct.pack(">IIBBBBB", 20_000, 20_000, 1, 0, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    document: Any = open_document(io.BytesIO(png + b"\0\0\0\0IDAT" + bytes(8)), "a.png", DocumentLimits())
    with pytest.raises(Unreadable, match="20000 × 20000"):
        document.picture(0, None, 1200)


async def test_the_server_answers_with_the_text_and_the_picture(tmp_path: Path) -> None:
    (tmp_path / "page.pdf").write_bytes(drawn_pdf("\n".join([say(72, 700, "Words"), IMAGE])))
    (tmp_path / "note.md").write_text("# A note")
    noise(64, 32).save(tmp_path / "photo.png")
    library = Library([tmp_path])
    async with Client(docs_server(library, HOST).mcp, cache=None) as client:
        await library.folders[0].first_pass.wait()
        documents = {name: f"dpe://{HOST}/{found.doc_ref}" for name, found in (await by_uri(library)).items()}

        async def pictures(uri: str) -> list[bytes]:
            text, *blobs = (await client.read_resource(uri)).contents
            assert text.mime_type == "application/json"
            assert all(blob.mime_type == "image/png" for blob in blobs)
            return [base64.b64decode(blob.blob) for blob in blobs]  # type: ignore[union-attr]

        page = page_uri(documents["page.pdf"], 0)
        [picture] = await pictures(with_image(page, 421))
        assert size_of(picture) == pytest.approx((298, 421), abs=1)
        [picture] = await pictures(with_image(element_uri(documents["page.pdf"], "p0-1"), 200))
        assert size_of(picture)[0] == 200
        [picture] = await pictures(with_image(page_uri(documents["photo.png"], 0), 4096))
        assert size_of(picture) == (64, 32)
        assert await pictures(page) == []
        assert await pictures(with_image(page_uri(documents["note.md"], 0), 200)) == []

"""Pages, elements and image files to look at."""

import base64
import io
import random
import struct
import zipfile
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
from tests.docs.foreign_files import book
from tests.docs.libraries import by_uri
from tests.docs.office_files import odf_file, slides_file, word_file
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
    start = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    huge = start + b"\0\0\0\0IDAT" + bytes(8)
    for name, data in (("a.png", huge), illustrated("pptx", huge)):
        document: Any = open_document(io.BytesIO(data), name, DocumentLimits())
        with pytest.raises(Unreadable, match="20000 × 20000"):
            document.picture(0, document.page(0).elements[0], 1200)


def png(picture: Image.Image) -> bytes:
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def with_part(data: bytes, name: str, part: bytes) -> bytes:
    """An archive with one more part."""
    out = io.BytesIO(data)
    with zipfile.ZipFile(out, "a") as made:
        made.writestr(name, part)
    return out.getvalue()


def illustrated(kind: str, part: bytes) -> tuple[str, bytes]:
    """The name and the bytes of a document with one image, whose part has these bytes."""
    linked = {"image": ("image", "../media/a.png" if kind == "pptx" else "media/a.png")}
    blip = '<a:blip r:embed="image"/>'
    frame = "<draw:frame><draw:image xlink:href='a.svg'/><draw:image xlink:href='./media/a.png'/></draw:frame>"
    vml = '<w:pict><v:shape><v:imagedata r:id="image"/></v:shape></w:pict>'
    made: tuple[bytes, str] = {
        "docx": (word_file(f"<w:p><w:r><w:drawing>{blip}</w:drawing></w:r></w:p>", links=linked), "word/"),
        "docm": (word_file(f"<w:p><w:r>{vml}</w:r></w:p>", links=linked), "word/"),
        "pptx": (slides_file([f"<p:pic><p:blipFill>{blip}</p:blipFill></p:pic>"], links=linked), "ppt/"),
        "odt": (odf_file("text", f"<text:p>{frame}</text:p>"), ""),
        "odp": (odf_file("presentation", f"<draw:page>{frame}</draw:page>"), ""),
        "epub": (book({"text/one.html": "<img alt='A' src='../media/a.png'>"}), "in/"),
    }[kind]
    return f"a.{kind}", with_part(made[0], f"{made[1]}media/a.png", part)


ARCHIVES = ["docx", "docm", "pptx", "odt", "odp", "epub"]


@pytest.mark.parametrize("kind", ARCHIVES)
def test_an_image_in_a_document_can_be_looked_at(kind: str) -> None:
    name, data = illustrated(kind, png(noise(300, 100)))
    document: Any = open_document(io.BytesIO(data), name, DocumentLimits())
    [image] = (each for each in document.page(0).elements if each.category == "image")
    assert image.metadata["part"].endswith("media/a.png")
    assert size_of(document.picture(0, image, 150)) == (150, 50)
    assert document.picture(0, None, 150) is None


@pytest.mark.parametrize(
    "part", [b"<svg/>", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", b"\xd7\xcd\xc6\x9a", b""]
)
def test_an_image_in_a_format_without_pixels_has_no_picture(part: bytes) -> None:
    name, data = illustrated("docx", part)
    document: Any = open_document(io.BytesIO(data), name, DocumentLimits())
    assert document.picture(0, document.page(0).elements[0], 150) is None


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

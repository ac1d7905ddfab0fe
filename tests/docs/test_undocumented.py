"""What is used of libraries beyond their documentation. A new version that changes it fails here first, by name."""

import io
from pathlib import Path

import docx
import pptx
import pypdfium2
import pypdfium2.raw as raw
from docx.oxml.ns import qn
from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError


def test_watchfiles_backend_watches_folders_without_those_below(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    notify = RustNotify([str(tmp_path)], False, False, 300, recursive=False, ignore_permission_denied=True)
    with notify:
        (tmp_path / "below" / "unheard.txt").write_text("x")
        (tmp_path / "heard.txt").write_text("x")
        found = notify.watch(100, 20, 20_000, None)
    assert isinstance(found, set)
    assert {Path(path).name for _, path in found} == {"heard.txt"}
    assert issubclass(WatchfilesRustInternalError, Exception)


def test_python_docx_paragraphs_show_their_xml() -> None:
    paragraph = docx.Document().add_paragraph("x", style="List Bullet")
    assert paragraph._p.pPr is not None
    assert list(paragraph._p.iter(qn("wp:docPr"))) == []


def test_python_pptx_pictures_show_their_xml(samples: Path) -> None:
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    picture = slide.shapes.add_picture(str(samples / "plan.png"), 0, 0)
    picture._element.nvPicPr.cNvPr.set("descr", "a plan")
    assert picture._element.xpath("./p:nvPicPr/p:cNvPr/@descr") == ["a plan"]


def test_pypdfium2_gives_text_objects_their_size_and_place(samples: Path) -> None:
    document = pypdfium2.PdfDocument(io.BytesIO((samples / "short.pdf").read_bytes()))
    page = document[0]
    [first, *_] = page.get_objects(filter=[raw.FPDF_PAGEOBJ_TEXT], textpage=page.get_textpage())
    assert len(first.get_bounds()) == 4
    assert first.get_matrix().f == 780
    document.close()

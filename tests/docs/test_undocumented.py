"""What is used of libraries beyond their documentation. A new version that changes it fails here first, by name."""

import io
from pathlib import Path

import pypdfium2
import pypdfium2.raw as raw
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


def test_pypdfium2_gives_text_objects_their_size_and_place(samples: Path) -> None:
    document = pypdfium2.PdfDocument(io.BytesIO((samples / "short.pdf").read_bytes()))
    page = document[0]
    [first, *_] = page.get_objects(filter=[raw.FPDF_PAGEOBJ_TEXT], textpage=page.get_textpage())
    assert len(first.get_bounds()) == 4
    assert first.get_matrix().f == 780
    document.close()

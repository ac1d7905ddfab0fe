"""Files that are broken, locked, lying or far too large: each is listed, says what is wrong, and harms no other."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from a2c_smcp.docs.limits import DocumentLimits
from a2c_smcp.mcp_server.elements import Table
from a2c_smcp.mcp_server.rendering import elements_text
from tests.docs.corrupt import corrupt_files
from tests.docs.hostile_files import hostile_files
from tests.docs.libraries import by_uri, running
from tests.docs.office_files import odf_file


async def test_every_broken_file_is_listed_with_what_is_wrong_and_the_others_are_served(
    tmp_path: Path, samples: Path
) -> None:
    codes: dict[str, int | None] = {}
    for name, data, code in corrupt_files(samples):
        (tmp_path / name).write_bytes(data)
        os.utime(tmp_path / name, (1, 1))  # a young file that is broken would be waited for
        codes[name] = code
    (tmp_path / "good.md").write_text("# Good")
    async with running(tmp_path) as (library, _):
        documents = await by_uri(library)
        assert set(documents) == {*codes, "good.md"}
        said: dict[str, int | None] = {}
        for name in codes:
            page = await library.page(documents[name].doc_ref, 0)
            said[name] = page.elements[0].metadata.get("error_code") if page.elements else None
            if said[name] is not None:
                assert documents[name].summary.startswith("This file cannot be read: ")
                assert (documents[name].page_count, documents[name].title) == (1, name)
        assert said == codes
        for name, word in {"locked.pdf": "encrypted", "locked.xlsx": "encrypted", "bomb.docx": "bomb"}.items():
            assert word in documents[name].summary
        assert (await library.page(documents["good.md"].doc_ref, 0)).title == "Good"
        wide = (await library.page(documents["wide.csv"].doc_ref, 0)).elements
        headers = [header for each in wide if isinstance(each, Table) for header in each.headers]
        assert headers == [f"c{number}" for number in range(10_000)]
        text = elements_text((await library.page(documents["charset.txt"].doc_ref, 0)).elements)
        assert "caf" in text
        assert documents["one-line.json"].page_count == 7


async def test_an_honest_document_is_read_at_once_beside_hostile_ones(tmp_path: Path) -> None:
    names = {"honest.odt"}
    for name, data in hostile_files():
        (tmp_path / name).write_bytes(data)
        os.utime(tmp_path / name, (1, 1))
        names.add(name)
    (tmp_path / "honest.odt").write_bytes(odf_file("text", "<text:h>Harvest</text:h><text:p>Nine tons</text:p>"))
    limits = DocumentLimits()
    async with running(tmp_path) as (library, _):
        documents = await by_uri(library)
        async with asyncio.timeout(limits.seconds / 2):  # well before a worker that hangs would be killed
            assert (await library.page(documents["honest.odt"].doc_ref, 0)).title == "Harvest"
        assert set(documents) == names
        # No file took a worker with it, neither by its time nor by its memory.
        problems = {file.found.path: file.problem for file in library.folders[0].files if file.problem is not None}
        assert [name for name, problem in problems.items() if problem.costly] == []


def test_a_format_whose_library_is_missing_is_a_page_that_names_the_extra(samples: Path) -> None:
    code = f"""
import sys
for name in ("pypdfium2", "python_calamine", "olefile", "selectolax", "PIL", "charset_normalizer"):
    sys.modules[name] = None
from a2c_smcp.docs.formats import open_document
from a2c_smcp.docs.limits import DocumentLimits, Unreadable
for name in ("short.pdf", "pump.html", "plan.png"):
    try:
        open_document(open({str(samples)!r} + "/" + name, "rb"), name, DocumentLimits())
    except Unreadable as problem:
        assert "pip install '.[docs]'" in problem.reason and not problem.lasting, problem.reason
    else:
        raise AssertionError(name)
for name in ("budget.xlsx", "handbook.md", "harvest.csv", "notes.txt", "src/count.py", "合同.docx", "talk.pptx"):
    assert open_document(open({str(samples)!r} + "/" + name, "rb"), name, DocumentLimits()).page_count
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr

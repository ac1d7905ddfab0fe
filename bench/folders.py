"""A folder of files: until a first page is there, beside markitdown on the whole file; the catalogue; memory."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from openpyxl import Workbook

from bench.process import BENCH, ROOT
from tests.docs.samples import long_pdf

MARKITDOWN: Final = ROOT / ".venv-markitdown" / "bin" / "python"
_SECONDS: Final = 1200


def first_pages(pages: int, rows: int, mebibytes: int, *, beside: bool) -> dict[str, dict[str, Any]]:
    """Until the first page is there, ours; the whole file, markitdown."""
    if beside and not MARKITDOWN.exists():
        raise SystemExit("markitdown is missing: run `make bench`, which sets up .venv-markitdown")
    results: dict[str, dict[str, Any]] = {"ours": {}}
    if beside:
        results["markitdown"] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for title, small, large in _files(folder, pages, rows, mebibytes):
            results["ours"][title] = _run(sys.executable, "folders.py", "first", small, large)["seconds"] * 1000
            if beside:
                results["markitdown"][title] = _run(str(MARKITDOWN), "whole_files.py", small, large)["seconds"] * 1000
    return results


def catalogue(files: int, read: int) -> dict[str, dict[str, Any]]:
    """The catalogue of so many files, first and second time, and what is in memory after so many were read."""
    with tempfile.TemporaryDirectory() as name:
        folder, cache = Path(name) / "files", Path(name) / "cache"
        for number in range(files):
            path = folder / str(number // 100) / f"note-{number}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"# Note {number}\n\nIt speaks of seeds and rain.\n\n## More\n\nWord {number % 97}.\n")
        first = _run(sys.executable, "folders.py", "catalogue", folder, cache)
        second = _run(sys.executable, "folders.py", "catalogue", folder, cache)
        assert first["documents"] == second["documents"] == files
        memory = _run(sys.executable, "folders.py", "memory", folder, read)
    figures = {
        f"{files:,} files, first time, s": first["seconds"],
        f"{files:,} files, second time, s": second["seconds"],
        f"RSS of the server after {read:,} documents, MiB": memory["server_mib"],
        f"RSS of its workers after {read:,} documents, MiB": memory["workers_mib"],
    }
    return {"ours": figures}


def _files(folder: Path, pages: int, rows: int, mebibytes: int) -> list[tuple[str, Path, Path]]:
    """What is measured, with a small file of the format and a large one."""
    for name, count in (("small", 2), ("large", pages)):
        (folder / f"{name}.pdf").write_bytes(long_pdf(count))
    for name, count in (("small", 2), ("large", rows)):
        _workbook(folder / f"{name}.xlsx", count)
    line = "Seeds, roots and rain, and whatever else a gardener writes down in the evening.\n"
    for name, size in (("small", 1000), ("large", mebibytes * 2**20)):
        (folder / f"{name}.txt").write_text(line * (size // len(line)))
    titles = {
        "pdf": f"PDF of {pages:,} pages, ms",
        "xlsx": f"sheet of {rows:,} rows, ms",
        "txt": f"text of {mebibytes} MiB, ms",
    }
    return [(title, folder / f"small.{suffix}", folder / f"large.{suffix}") for suffix, title in titles.items()]


def _workbook(path: Path, rows: int) -> None:
    book = Workbook(write_only=True)
    sheet = book.create_sheet("Figures")
    sheet.append([f"column {number}" for number in range(10)])
    for row in range(rows):
        sheet.append([row, f"bed {row % 17}", *(row * number / 7 for number in range(8))])
    book.save(path)


def _run(python: str, script: str, *arguments: object) -> dict[str, Any]:
    command = [python, str(BENCH / "drivers" / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if done.returncode:
        raise SystemExit(f"{script} failed:\n{done.stderr[-2000:]}")
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures

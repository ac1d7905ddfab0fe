"""Runs readers in processes of their own, each with a time limit, and keeps what they answer by the file's digest."""

import gzip
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from bench.process import BENCH, ROOT

__all__ = ["OURS", "READERS_PYTHON", "Reader", "readers_of", "readings"]

READERS_PYTHON: Final = ROOT / ".venv-readers" / "bin" / "python"
OURS: Final = "ours"
_SECONDS: Final = 60.0
"""How long one file may take. Our own limits are those of a server."""
_OUR_SECONDS: Final = 600.0

#: The other readers of each format.
_READERS: Final[dict[str, tuple[str, ...]]] = {
    "pdf": ("pdfplumber", "pymupdf", "pypdf", "markitdown"),
    "docx": ("docx2python", "mammoth", "docx2txt", "pymupdf", "markitdown"),
    "pptx": ("python-pptx", "pymupdf", "markitdown"),
    "xlsx": ("openpyxl", "calamine", "markitdown"),
    "xls": ("xlrd", "calamine", "markitdown"),
    "xlsb": ("pyxlsb", "calamine"),
    "html": ("lxml", "html2text", "markitdown"),
    "odt": ("odfpy", "odf_text"),
    "odp": ("odfpy", "odf_text"),
}


def readers_of(kind: str) -> tuple[str, ...]:
    """The other readers of a format; none for a format that no two others read."""
    return _READERS.get(kind, ())


class Reader:
    """One reader as a process that is asked for one file after another."""

    def __init__(self, name: str, command: Sequence[str], seconds: float, code: Path = ROOT) -> None:
        """`code` is the checkout that the process imports."""
        self.name = name
        self._command = list(command)
        self._seconds = seconds
        self._code = code
        self._process: subprocess.Popen[str] | None = None

    def read(self, path: Path) -> dict[str, Any]:
        """What the reader answers; `error` if it fails, dies or takes too long."""
        if self._process is None:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                cwd=self._code,
                env={**os.environ, "PYTHONPATH": str(self._code)},
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        late = threading.Timer(self._seconds, process.kill)
        late.start()
        try:
            process.stdin.write(json.dumps({"reader": self.name, "path": str(path)}) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
            answer: dict[str, Any] = json.loads(line)
        except (OSError, ValueError):
            self.close()
            return {"error": f"it ended, or took longer than {self._seconds:g} s"}
        finally:
            late.cancel()
        return answer

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def readings(
    name: str, files: Sequence[Path], cache: Path, *, code: Path = ROOT, told: Callable[[str], None] = lambda line: None
) -> dict[Path, dict[str, Any]]:
    """What a reader says of each file. `code` is the checkout whose reader is ours."""
    place = cache / (f"{OURS}-{_code_digest(code)}" if name == OURS else name)
    place.mkdir(parents=True, exist_ok=True)
    found: dict[Path, dict[str, Any]] = {}
    reader = _reader(name, code)
    try:
        for number, path in enumerate(files, 1):
            kept = place / f"{_digest(path)}.json.gz"
            if kept.exists():
                found[path] = json.loads(gzip.decompress(kept.read_bytes()))
                continue
            found[path] = reader.read(path)
            kept.write_bytes(gzip.compress(json.dumps(found[path]).encode(), 1))
            if number % 50 == 0:
                told(f"{name}: {number} of {len(files)}")
    finally:
        reader.close()
    return found


def all_readings(
    names: Sequence[str], files: Sequence[Path], cache: Path, *, code: Path = ROOT, jobs: int = 2
) -> dict[str, dict[Path, dict[str, Any]]]:
    with ThreadPoolExecutor(jobs) as pool:
        told = [pool.submit(readings, name, files, cache, code=code) for name in names]
        return {name: each.result() for name, each in zip(names, told, strict=True)}


def _reader(name: str, code: Path) -> Reader:
    if name == OURS:
        return Reader(name, [sys.executable, str(BENCH / "drivers" / "our_reader.py")], _OUR_SECONDS, code)
    return Reader(name, [str(READERS_PYTHON), str(BENCH / "drivers" / "readers.py")], _SECONDS)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes() + path.suffix.encode()).hexdigest()[:32]


def _code_digest(code: Path) -> str:
    """Of everything that decides what we read."""
    digest = hashlib.sha256()
    for part in ("docs", "mcp_server"):
        for path in sorted((code / "a2c_smcp" / part).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]

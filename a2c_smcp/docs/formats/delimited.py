"""CSV and TSV: 200 rows a page, fewer where they are long, under the headers of the first line if there are any."""

import csv
import io
from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO

from a2c_smcp.docs.formats import Properties, suffix_of
from a2c_smcp.docs.formats.text import as_utf8
from a2c_smcp.docs.limits import FORMATS, DocumentLimits, Unreadable
from a2c_smcp.docs.paging import PAGE, bounded_tables, row_size
from a2c_smcp.mcp_server.documents import Page

__all__ = ["DelimitedDocument", "looks_like_headers", "open_document"]


def looks_like_headers(row: list[str]) -> bool:
    """Whether a first row names the columns: every cell is a short text of its own, and none is a number."""
    names = [cell.strip() for cell in row]
    if any(len(name) > FORMATS.heading for name in names):
        return False
    return bool(names) and all(names) and len(set(names)) == len(names) and not any(map(_is_number, names))


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True


class DelimitedDocument:
    """Knows where each page starts, so that a page in the middle is read without the rows before it."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self._encoding = as_utf8(file)
        sample = self._file.read(FORMATS.csv_sample).decode(self._encoding, "replace")
        self._delimiter = "\t" if suffix_of(name) == "tsv" else _delimiter(sample)
        self._headers: list[str] = []
        self._starts: list[tuple[int, int]] = []
        """Where each page starts, and the number of its first row."""
        self._rows = 0
        self._scan()

    @property
    def page_count(self) -> int:
        return max(1, len(self._starts))

    @property
    def properties(self) -> Properties:
        columns = f": {', '.join(self._headers)}" if self._headers else ""
        return Properties(summary=f"{self._rows} rows{columns}")

    def page(self, index: int) -> Page:
        rows: list[list[str]] = []
        first = 1
        if self._starts:
            at, first = self._starts[index]
            end = self._starts[index + 1][1] if index + 1 < len(self._starts) else self._rows + 1
            self._file.seek(at)
            rows = [row for row, _ in islice(self._read(), end - first)]
        title = f"Rows {first} to {first + len(rows) - 1}" if rows else "No rows"
        return Page(title, list(bounded_tables(self._headers, rows, first_row=first)))

    def _scan(self) -> None:
        self._file.seek(0)
        at = rows = size = 0
        for number, (row, end) in enumerate(self._read()):
            if number == 0 and looks_like_headers(row):
                self._headers = [cell.strip() for cell in row]
            else:
                self._rows += 1
                more = row_size(row)
                if not self._starts or rows == PAGE.rows or size + more > PAGE.characters:
                    self._starts.append((at, self._rows))
                    rows = size = 0
                rows += 1
                size += more
            at = end

    def _read(self) -> Iterator[tuple[list[str], int]]:
        """Rows from where the file stands, each with where it ends."""
        csv.field_size_limit(FORMATS.csv_field)
        end = self._file.tell()

        def lines() -> Iterator[str]:
            nonlocal end
            for line in iter(lambda: self._file.readline(FORMATS.csv_field), b""):
                end += len(line)
                yield line.decode(self._encoding, "replace").replace("\0", "").removeprefix("\ufeff")

        try:
            for row in csv.reader(lines(), delimiter=self._delimiter):
                yield row, end
        except csv.Error as error:
            raise Unreadable(f"it is not a table: {error}") from None


def _delimiter(sample: str) -> str:
    """The one that the first line has most of."""
    first = next(io.StringIO(sample), "")
    return max((",", ";", "\t", "|"), key=lambda each: (first.count(each), each == ","))


def open_document(file: BinaryIO, name: str, limits: DocumentLimits) -> DelimitedDocument:
    return DelimitedDocument(file, name)

"""Notebooks of Jupyter: their words, their code, and what the code printed. Pictures are named."""

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from a2c_smcp.docs.formats import Properties
from a2c_smcp.docs.formats.html import html_elements
from a2c_smcp.docs.formats.markdown import SectionedDocument, elements_of
from a2c_smcp.docs.limits import FORMATS, DocumentLimits, Unreadable
from a2c_smcp.mcp_server.elements import Code, Element, Formula, Heading, Image, Text

__all__ = ["open_document"]

_ESCAPES: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def open_document(file: BinaryIO, name: str, limits: DocumentLimits) -> SectionedDocument:
    data = file.read(FORMATS.notebook_bytes + 1)
    if len(data) > FORMATS.notebook_bytes:
        raise Unreadable(f"a notebook has at most {FORMATS.notebook_bytes // 2**20} MiB here", 413, lasting=False)
    try:
        book = json.loads(data)
    except ValueError as error:
        raise Unreadable(f"it is not a notebook: {error}") from None
    if not isinstance(book, dict):
        raise Unreadable("it is not a notebook")
    about = _dict(book.get("metadata"))
    language = (
        _dict(about.get("kernelspec")).get("language") or _dict(about.get("language_info")).get("name") or "python"
    )
    cells = book.get("cells")
    if not isinstance(cells, list):  # before version 4
        sheets = book.get("worksheets")
        cells = [
            cell for sheet in (sheets if isinstance(sheets, list) else ()) for cell in _dict(sheet).get("cells") or ()
        ]
    found = [element for cell in cells for element in _cell(_dict(cell), str(language))]
    return SectionedDocument(found, Properties(_text(about.get("title"))))


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    """A text, which may be written as a list of lines."""
    if isinstance(value, list):
        return "".join(each for each in value if isinstance(each, str))
    return value if isinstance(value, str) else ""


def _cell(cell: dict[str, Any], language: str) -> Iterator[Element]:
    source = _text(cell.get("source", cell.get("input")))
    match cell.get("cell_type"):
        case "markdown" | "html":
            yield from elements_of(source)
            for name in _dict(cell.get("attachments")):
                yield Image(str(name), description=f"{name}, a picture in this notebook")
        case "heading":
            level = cell.get("level")
            yield Heading(source, level if isinstance(level, int) and 1 <= level <= 6 else 1)
        case "code":
            if source.strip():
                yield Code(source.strip("\n"), _text(cell.get("language")) or language)
            outputs = cell.get("outputs")
            for output in outputs if isinstance(outputs, list) else ():
                yield from _output(_dict(output))
        case _ if source.strip():
            yield Text(source)


def _output(output: dict[str, Any]) -> Iterator[Element]:
    if output.get("output_type") in ("error", "pyerr"):
        lines = output.get("traceback")
        trace = "\n".join(each for each in lines if isinstance(each, str)) if isinstance(lines, list) else ""
        yield from _printed(trace or f"{_text(output.get('ename'))}: {_text(output.get('evalue'))}")
        return
    # Before version 4 the forms of an output stand beside its other facts, under shorter names.
    forms = _dict(output.get("data")) or output
    plain = _text(forms.get("text/plain", forms.get("text")))
    html = _text(forms.get("text/html", forms.get("html")))
    pictures = [str(kind) for kind in forms if str(kind).startswith("image/") or kind in ("png", "jpeg", "svg")]
    if markdown := _text(forms.get("text/markdown")):
        yield from elements_of(markdown)
    elif plain:
        yield from _printed(plain)
    elif html:
        yield from html_elements(html)
    elif latex := _text(forms.get("text/latex", forms.get("latex"))):
        yield Formula(latex.strip().strip("$").strip())
    for kind in pictures:
        yield Image(description=f"A picture that this code made ({kind})")


def _printed(text: str) -> Iterator[Element]:
    if words := _ESCAPES.sub("", text).strip("\n").rstrip():
        yield Code(words, "text")

"""Makes a `DPEDocumentSummary` of what an MCP server lists, and of what it answers at level 0 or 1. Pure."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from mcp_types import ReadResourceResult, TextResourceContents

from a2c_smcp.smcp import DPEDocumentSummary
from a2c_smcp.types import SERVER_NAME
from a2c_smcp.utils.dpe_uri import document_ref

__all__ = [
    "CataloguePage",
    "Described",
    "Fields",
    "build_summary",
    "is_complete",
    "merged",
    "read_catalogue",
    "read_document",
]

#: What a server says of a document, unchecked.
Fields: TypeAlias = Mapping[str, Any]


class Described(Protocol):
    """What a server's list says of a resource."""

    @property
    def uri(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class CataloguePage:
    """What a server answers at level 0."""

    documents: Mapping[str, Fields]
    """By `doc_ref`."""
    count: int
    """How many entries this page has, including entries that name no document. The next page starts there."""
    total_count: int
    note: str = ""
    """What the server says of the whole catalogue, such as which files it does not serve."""


def read_document(result: ReadResourceResult) -> Fields:
    """The fields of a document, from an answer at level 1. Raises `ValueError` if that is not one JSON object."""
    for content in result.contents:
        if isinstance(content, TextResourceContents):
            return _json_object(content.text)
    raise ValueError("the document holds no text")


def read_catalogue(result: ReadResourceResult) -> CataloguePage:
    """The documents of a server, from an answer at level 0. Raises `ValueError` if that is not a catalogue."""
    catalogue = read_document(result)
    documents = catalogue.get("documents")
    if not isinstance(documents, list):
        raise ValueError("the catalogue has no list of documents")
    return CataloguePage(
        documents={
            document["doc_ref"]: document
            for document in documents
            if isinstance(document, dict) and isinstance(document.get("doc_ref"), str)
        },
        count=len(documents),
        total_count=_count(catalogue.get("total_count")) or len(documents),
        note=_text(catalogue.get("note")),
    )


def is_complete(fields: Fields) -> bool:
    """Whether a catalogue's entry has every field that level 1 could have."""
    return _given(fields).keys() == _WANTED.keys()


def merged(entry: Fields, document: Fields) -> Fields:
    """The fields of a catalogue's entry. Fields that the entry lacks are taken from level 1."""
    return {**entry, **document, **_given(entry)}


def _given(fields: Fields) -> Fields:
    """The fields that say something. An empty text or list, 0 pages and a wrong type count as missing."""
    return {key: fields[key] for key, read in _WANTED.items() if key in fields and read(fields[key])}


def build_summary(server: SERVER_NAME, resource: Described, fields: Fields) -> DPEDocumentSummary:
    """The summary of a listed document. A field that is missing or of a wrong type gets its default."""
    summary: DPEDocumentSummary = {
        "doc_ref": (document_ref(resource.uri) or ("", ""))[1],
        "uri": resource.uri,
        "file_uri": _text(fields.get("file_uri")),
        "file_type": _text(fields.get("file_type")),
        "title": _text(fields.get("title")) or resource.name,
        "page_count": _count(fields.get("page_count")),
        "server": server,
    }
    if isinstance(keywords := fields.get("keywords"), list):
        summary["keywords"] = [keyword for keyword in keywords if isinstance(keyword, str)]
    if text := _text(fields.get("summary")) or resource.description:
        summary["summary"] = text
    if modified := _text(fields.get("last_modified")):
        summary["last_modified"] = modified
    return summary


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("the document is not JSON") from None
    if not isinstance(value, dict):
        raise ValueError("the document is not a JSON object")
    return value


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    return value if type(value) is int and value > 0 else 0


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


#: The fields that a summary takes from the server's answers, and how each is read.
_WANTED: Final[Mapping[str, Callable[[object], object]]] = {
    **dict.fromkeys(("file_uri", "file_type", "title", "summary", "last_modified"), _text),
    "page_count": _count,
    "keywords": _list,
}

"""Two small documents, and how they answer at every level. Pure: an MCP server hands URIs in and texts out."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from a2c_smcp.computer.utils.dpe_uri import ParsedDPEUri, build_dpe_uri, parse_dpe_uri
from a2c_smcp.errors import DocumentNotFoundError, ElementNotFoundError, PageOutOfRangeError

__all__ = ["HOST", "answer", "catalogue"]

HOST: Final = "demo.documents"

Element = Mapping[str, Any]


def _element(element_id: str, category: str, summary: str, **content: Any) -> Element:
    return {"element_id": element_id, "category": category, "summary": summary, "content": content}


_DOCUMENTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "年度报告": {
        "title": "年度报告 2025",
        "file_type": "xlsx",
        "keywords": ["finance", "财务"],
        "summary": "Revenue by quarter, and what became of the costs.",
        "last_modified": "2026-02-14T10:30:01+08:00",
        "pages": [
            (
                "Summary",
                [
                    _element("intro", "heading", "The year in one page", text="The year in one page", level=2),
                    _element("text-1", "text", "Revenue grew", text="Revenue grew by a third; costs did not."),
                ],
            ),
            (
                "Quarters",
                [
                    _element("heading-2", "heading", "Revenue by quarter", text="Revenue by quarter", level=2),
                    _element(
                        "table-1",
                        "table",
                        "Revenue and cost by quarter",
                        headers=["quarter", "revenue", "cost"],
                        rows=[["Q1", 120, 80], ["Q2", 135, 82], ["Q3", 150, 81], ["Q4", 160, 83]],
                    ),
                    _element("chart-1", "chart", "A rising line", title="Revenue", data_summary="120 → 160, steadily"),
                ],
            ),
        ],
    },
    "handbook": {
        "title": "Operator's handbook",
        "file_type": "md",
        "keywords": ["help"],
        "summary": "What to do when a light turns red.",
        "last_modified": "2025-11-02T08:00:00Z",
        "pages": [("Red lights", [_element("text-1", "text", "Do not panic", text="Look at it. Then call someone.")])],
    },
}


def catalogue() -> list[tuple[str, str, str]]:
    """URI, title and summary of every document, for `resources/list`."""
    return [(build_dpe_uri(HOST, ref), doc["title"], doc["summary"]) for ref, doc in _DOCUMENTS.items()]


def answer(uri: str) -> tuple[str, str]:
    """The MIME type and the text at a `dpe://` URI, or a Finder error."""
    parsed = parse_dpe_uri(uri)
    value = _at(parsed)
    if parsed.query_params.get("format", "json") == "json":
        return "application/json", json.dumps(value, ensure_ascii=False)
    return "text/markdown", _markdown(value)


def _at(uri: ParsedDPEUri) -> dict[str, Any]:
    if uri.doc_ref is None:
        documents = [_summary(ref) for ref in _DOCUMENTS]
        return {"documents": documents, "total_count": len(documents)}
    if uri.doc_ref not in _DOCUMENTS:
        raise DocumentNotFoundError(uri.doc_ref)
    if uri.page_index is not None:
        return _page(uri.doc_ref, uri.page_index)
    if uri.element_id is not None:
        return _find(uri.doc_ref, uri.element_id)
    document = _summary(uri.doc_ref)
    if uri.query_params.get("depth") == "pages":
        offset, limit = (int(uri.query_params.get(key, default)) for key, default in (("offset", 0), ("limit", 20)))
        pages = _DOCUMENTS[uri.doc_ref]["pages"]
        document |= {
            "pages": [_page_summary(uri.doc_ref, index) for index in range(len(pages))][offset : offset + limit],
            "page_offset": offset,
            "page_limit": limit,
            "page_total": len(pages),
        }
    return document


def _summary(ref: str) -> dict[str, Any]:
    document = _DOCUMENTS[ref]
    fields = {key: value for key, value in document.items() if key != "pages"}
    return {
        "doc_ref": ref,
        "uri": build_dpe_uri(HOST, ref),
        "file_uri": f"file:///demo/{ref}.{document['file_type']}",
        "page_count": len(document["pages"]),
        **fields,
    }


def _page_summary(ref: str, index: int) -> dict[str, Any]:
    title, elements = _DOCUMENTS[ref]["pages"][index]
    uri = build_dpe_uri(HOST, ref, f"pages/{index}")
    return {"page_index": index, "title": title, "element_count": len(elements), "uri": uri, "doc_ref": ref}


def _page(ref: str, index: int) -> dict[str, Any]:
    pages = _DOCUMENTS[ref]["pages"]
    if index >= len(pages):
        raise PageOutOfRangeError(index, len(pages))
    return {**_page_summary(ref, index), "elements": [dict(element) for element in pages[index][1]]}


def _find(ref: str, element_id: str) -> dict[str, Any]:
    for index, (_, elements) in enumerate(_DOCUMENTS[ref]["pages"]):
        for element in elements:
            if element["element_id"] == element_id:
                uri = build_dpe_uri(HOST, ref, f"elements/{element_id}")
                return {**element, "doc_ref": ref, "page_index": index, "uri": uri}
    raise ElementNotFoundError(element_id)


def _markdown(value: Mapping[str, Any]) -> str:
    if "documents" in value:
        return "\n".join(f"- {document['title']}: {document['uri']}" for document in value["documents"])
    if "category" in value:
        return _element_markdown(value)
    if "elements" in value:
        return "\n\n".join([f"# {value['title']}", *map(_element_markdown, value["elements"])])
    return f"# {value['title']}\n\n{value['summary']}"


def _element_markdown(element: Element) -> str:
    content = element["content"]
    match element["category"]:
        case "heading":
            return f"{'#' * content['level']} {content['text']}"
        case "text":
            return str(content["text"])
        case "table":
            return _table_markdown(content["headers"], content["rows"])
        case "chart":
            return f"[图表: {content['title']}] {content['data_summary']}"
        case other:
            return f"[{other}: {element['summary']}]"


def _table_markdown(headers: Iterable[Any], rows: Iterable[Iterable[Any]]) -> str:
    lines = [list(headers), *map(list, rows)]
    text = [f"| {' | '.join(map(str, line))} |" for line in lines]
    return "\n".join([text[0], "|" + " --- |" * len(lines[0]), *text[1:]])

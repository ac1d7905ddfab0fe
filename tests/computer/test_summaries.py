"""Document summaries from what a server lists and what it answers."""

import json
from typing import Any

import pytest
from mcp_types import BlobResourceContents, ReadResourceResult, Resource, TextResourceContents

from a2c_smcp.computer.finder.summaries import (
    build_summary,
    is_complete,
    merged,
    read_catalogue,
    read_document,
)
from a2c_smcp.smcp import GET_FINDER_EVENT
from a2c_smcp.wire import parse_response

RESOURCE = Resource(uri="dpe://com.example/annual%20report", name="report.pdf", description="What it says.")
FULL: dict[str, Any] = {
    "doc_ref": "annual report",
    "uri": "dpe://com.example/annual%20report",
    "file_uri": "file:///report.pdf",
    "file_type": "pdf",
    "title": "Annual Report",
    "page_count": 12,
    "keywords": ["finance"],
    "summary": "A good year.",
    "last_modified": "2026-01-01T00:00:00Z",
}


def answer(value: object) -> ReadResourceResult:
    text = value if isinstance(value, str) else json.dumps(value)
    return ReadResourceResult(contents=[TextResourceContents(uri="dpe://h/d", text=text)])


# --- a summary


def test_a_full_document_is_taken_over_with_its_server() -> None:
    summary = build_summary("docs", RESOURCE, FULL)
    assert summary == {**FULL, "server": "docs"}
    reply = {"documents": [summary], "total_count": 1, "req_id": "1"}
    assert parse_response(GET_FINDER_EVENT, reply) == reply


def test_an_empty_document_gets_the_defaults() -> None:
    assert build_summary("docs", RESOURCE, {}) == {
        "doc_ref": "annual report",
        "uri": "dpe://com.example/annual%20report",
        "file_uri": "",
        "file_type": "",
        "title": "report.pdf",
        "page_count": 0,
        "summary": "What it says.",
        "server": "docs",
    }


def test_without_a_description_there_is_no_summary() -> None:
    assert "summary" not in build_summary("docs", Resource(uri="dpe://h/d", name="d"), {})


def test_uri_doc_ref_and_server_are_those_of_the_list() -> None:
    lying = {**FULL, "uri": "dpe://h/other", "doc_ref": "other", "server": "other"}
    summary = build_summary("docs", RESOURCE, lying)
    assert (summary["uri"], summary["doc_ref"], summary["server"]) == (RESOURCE.uri, "annual report", "docs")


def test_unknown_fields_are_left_out() -> None:
    assert "pages" not in build_summary("docs", RESOURCE, {**FULL, "pages": []})


@pytest.mark.parametrize("wrong", [None, 7, "", [], {}, True, -1])
def test_a_field_that_is_not_what_it_should_be_counts_as_missing(wrong: Any) -> None:
    fields = dict.fromkeys(("file_uri", "file_type", "title", "summary", "last_modified"), wrong)
    assert build_summary("docs", RESOURCE, fields | {"page_count": wrong if wrong != 7 else "7"}) == build_summary(
        "docs", RESOURCE, {}
    )


def test_keywords_that_are_no_text_are_left_out() -> None:
    assert build_summary("docs", RESOURCE, {"keywords": ["a", 1, None]})["keywords"] == ["a"]
    assert "keywords" not in build_summary("docs", RESOURCE, {"keywords": "a, b"})


# --- level 0 and level 1


@pytest.mark.parametrize(
    "field", ["file_uri", "file_type", "title", "page_count", "keywords", "summary", "last_modified"]
)
@pytest.mark.parametrize("nothing", [None, "", [], 0, {}])
def test_a_field_of_the_catalogue_that_says_nothing_is_filled_from_the_document(field: str, nothing: Any) -> None:
    entry = {**FULL, field: nothing}
    assert is_complete(FULL)
    assert not is_complete(entry)
    assert merged(entry, {**FULL, field: "level 1"})[field] == "level 1"


def test_what_the_catalogue_says_goes_before_the_document() -> None:
    assert merged({"title": "t", "page_count": 3}, FULL) == {**FULL, "title": "t", "page_count": 3}
    assert merged({"keywords": [], "page_count": 0}, {"title": "t"}) == {"keywords": [], "page_count": 0, "title": "t"}


# --- reading


def test_level_1_is_one_json_object() -> None:
    assert read_document(answer(FULL)) == FULL


def test_blobs_beside_the_text_are_passed_over() -> None:
    blob = BlobResourceContents(uri="dpe://h/d", blob="AA==")
    assert read_document(ReadResourceResult(contents=[blob, *answer(FULL).contents])) == FULL


@pytest.mark.parametrize("text", ["", "# Report", "[1]", "null", "{", "[" * 100_000])
def test_what_is_no_json_object_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        read_document(answer(text))


@pytest.mark.parametrize("contents", [[], [BlobResourceContents(uri="dpe://h/d", blob="AA==")]])
def test_a_document_without_text_is_a_value_error(contents: list[BlobResourceContents]) -> None:
    with pytest.raises(ValueError):
        read_document(ReadResourceResult(contents=[*contents]))


def test_level_0_gives_the_documents_by_doc_ref() -> None:
    page = read_catalogue(answer({"documents": [FULL, {"doc_ref": "b"}], "total_count": 7}))
    assert page.documents == {"annual report": FULL, "b": {"doc_ref": "b"}}
    assert (page.count, page.total_count, page.note) == (2, 7, "")
    assert read_catalogue(answer({"documents": [], "note": "Some are not served."})).note == "Some are not served."
    assert read_catalogue(answer({"documents": [], "note": 7})).note == ""


def test_documents_that_name_no_doc_ref_are_counted_but_not_kept() -> None:
    page = read_catalogue(answer({"documents": [{}, 7, {"doc_ref": 1}, {"doc_ref": "b"}]}))
    assert list(page.documents) == ["b"]
    assert (page.count, page.total_count) == (4, 4)


@pytest.mark.parametrize("value", [{}, {"documents": None}, {"documents": {}}, [], "x"])
def test_what_is_no_catalogue_is_a_value_error(value: object) -> None:
    with pytest.raises(ValueError):
        read_catalogue(answer(value))

"""Which documents match, in which order, one page of them. The first tests are named after the seed's own list."""

import time
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.computer.finder import organize_finder
from a2c_smcp.computer.finder.organize import file_name
from a2c_smcp.errors import BadRequestError
from a2c_smcp.smcp import DPEDocumentSummary


def document(name: str = "d", server: str = "a", **fields: Any) -> DPEDocumentSummary:
    summary: Any = {
        "doc_ref": name,
        "uri": f"dpe://h/{name}",
        "file_uri": "",
        "file_type": "pdf",
        "title": name,
        "page_count": 1,
        "server": server,
        **fields,
    }
    return summary  # type: ignore[no-any-return]


def found(documents: list[DPEDocumentSummary], **query: Any) -> list[str]:
    page, total = organize_finder(documents, **{"limit": 1000, **query})
    assert total == len(page)
    return [item["doc_ref"] for item in page]


# --- the seed's list


def test_empty_input_gives_an_empty_list_and_a_total_of_zero() -> None:
    assert organize_finder([]) == ([], 0)


@pytest.mark.parametrize(
    "fields", [{"title": "Annual Budget"}, {"keywords": ["x", "BUDGETS"]}, {"summary": "the budget of 2026"}]
)
def test_keywords_match_title_keywords_and_summary(fields: dict[str, Any]) -> None:
    assert found([document("hit", **fields), document("miss")], keywords=["budget"]) == ["hit"]


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("file:///a/b/Q3%20%C3%9Cbersicht.pdf", "Q3 Übersicht.pdf"),
        ("file:///folder/", "folder"),
        ("no uri at all", "no uri at all"),
        ("file:///%FF%zz", "\ufffd%zz"),
        ("", ""),
    ],
)
def test_a_document_matches_by_the_name_of_its_file_where_that_is_wanted(uri: str, name: str) -> None:
    hit = document("hit", file_uri=uri)
    assert file_name(hit) == name
    if name:
        documents = [hit, document("miss", file_uri="file:///b/other")]
        assert found(documents, keywords=[name.upper()], by_file_name=True) == ["hit"]
        assert found(documents, keywords=[name]) == []
        assert found(documents, keywords=["a/b"], by_file_name=True) == []  # not by its folders


def test_file_type_matches_exactly() -> None:
    documents = [document("a", file_type="pdf"), document("b", file_type="PDF"), document("c", file_type="pdfx")]
    assert found(documents, file_type="pdf") == ["a"]


def test_a_file_type_that_no_document_has_gives_nothing() -> None:
    assert organize_finder([document()], file_type="xlsx") == ([], 0)


def test_server_priority_the_most_recently_used_comes_first() -> None:
    documents = [document(name, server=name) for name in ("d", "b", "c", "a")]
    assert found(documents, history=["b", "c", "b"]) == ["b", "c", "a", "d"]


def test_last_modified_falls_and_missing_ones_come_last() -> None:
    documents = [
        document("none"),
        document("old", last_modified="2025-01-01T00:00:00Z"),
        document("new", last_modified="2026-01-01T00:00:00Z"),
    ]
    assert found(documents) == ["new", "old", "none"]


@pytest.mark.parametrize(
    ("offset", "limit", "expected"),
    [(3, 20, []), (99, 20, []), (0, 0, []), (1, 0, []), (0, 99, ["0", "1", "2"]), (2, 99, ["2"]), (1, 1, ["1"])],
)
def test_the_edges_of_paging(offset: int, limit: int, expected: list[str]) -> None:
    page, total = organize_finder([document(str(number)) for number in range(3)], offset=offset, limit=limit)
    assert [item["doc_ref"] for item in page] == expected
    assert total == 3


def test_total_count_is_what_matches_not_what_the_page_holds() -> None:
    documents = [document(str(number), file_type="pdf" if number % 2 else "txt") for number in range(10)]
    page, total = organize_finder(documents, file_type="pdf", limit=2)
    assert (len(page), total) == (2, 5)


# --- the contract's rulings


@pytest.mark.parametrize(
    "uri", ["http://h/d", "dpe://", "DPE://h/d", "dpe://h/d/chapters/1", "dpe://h/d?format=pdf", ""]
)
def test_a_document_whose_uri_does_not_parse_is_dropped(uri: str) -> None:
    assert organize_finder([document(uri=uri), document("ok")]) == ([document("ok")], 1)


@pytest.mark.parametrize("nothing", [{"keywords": []}, {"keywords": None}, {"file_type": ""}, {"file_type": None}])
def test_empty_filters_filter_nothing(nothing: dict[str, Any]) -> None:
    assert found([document("a"), document("b", file_type="")], **nothing) == ["a", "b"]


def test_any_keyword_suffices() -> None:
    documents = [document("one"), document("two"), document("three")]
    assert found(documents, keywords=["TWO", "thr"]) == ["two", "three"]


def test_keywords_do_not_match_across_fields() -> None:
    assert found([document("x", title="annual", keywords=["budget"], summary="plan")], keywords=["annual budget"]) == []


@pytest.mark.parametrize(("title", "keyword"), [("预算 2026", "预算"), ("STRASSE", "straße"), ("ΟΔΟΣ", "οδοσ")])
def test_case_is_ignored_in_every_script(title: str, keyword: str) -> None:
    assert found([document("x", title=title)], keywords=[keyword]) == ["x"]


def test_twenty_documents_are_a_page_and_there_is_no_cap() -> None:
    documents = [document(str(number)) for number in range(3000)]
    assert len(organize_finder(documents)[0]) == 20
    assert len(organize_finder(documents, limit=2500)[0]) == 2500


def test_timestamps_are_compared_as_instants() -> None:
    documents = [
        document("9:30 UTC", last_modified="2026-01-01T09:30:00Z"),
        document("9:00 UTC", last_modified="2026-01-01T17:00:00+08:00"),
        document("10:00 UTC", last_modified="2026-01-01T05:00:00.000-05:00"),
        document("9:45 UTC", last_modified="2026-01-01T09:45:00"),
    ]
    assert found(documents) == ["10:00 UTC", "9:45 UTC", "9:30 UTC", "9:00 UTC"]


@pytest.mark.parametrize("unreadable", ["yesterday", "", "2026-13-01", None])
def test_unreadable_timestamps_come_last(unreadable: str | None) -> None:
    documents = [document("bad", last_modified=unreadable), document("good", last_modified="0001-01-01")]
    assert found(documents) == ["good", "bad"]


def test_the_ends_of_the_calendar_do_not_overflow() -> None:
    documents = [
        document("first", last_modified="0001-01-01T00:00:00+14:00"),
        document("last", last_modified="9999-12-31T23:59:59-12:00"),
    ]
    assert found(documents) == ["last", "first"]


def test_ties_stay_in_list_order() -> None:
    same = ["2026-01-01T00:00:00Z", "2026-01-01T08:00:00+08:00", "2026-01-01"]
    documents = [document(str(index), last_modified=text) for index, text in enumerate(same)]
    assert found(documents) == ["0", "1", "2"]


def test_recency_of_use_goes_before_last_modified() -> None:
    documents = [document("new", "a", last_modified="2026-01-01"), document("old", "b", last_modified="2020-01-01")]
    assert found(documents, history=["b"]) == ["old", "new"]


@pytest.mark.parametrize("query", [{"offset": -1}, {"limit": -1}])
def test_a_negative_offset_or_limit_is_400(query: dict[str, Any]) -> None:
    with pytest.raises(BadRequestError):
        organize_finder([], **query)


def test_the_documents_come_out_as_they_went_in() -> None:
    one = document("a", extra={"kept": True})
    assert organize_finder([one])[0][0] is one


# --- laws

timestamps = st.none() | st.datetimes().map(datetime.isoformat) | st.sampled_from(["x", "2026-01-01T01:00:00+05:00"])
documents_lists = st.lists(
    st.builds(
        lambda name, server, file_type, modified: document(name, server, file_type=file_type, last_modified=modified),
        st.text("abc", min_size=1, max_size=3),
        st.sampled_from(["s", "t", "u"]),
        st.sampled_from(["pdf", "txt"]),
        timestamps,
    ),
    max_size=15,
)
queries = st.fixed_dictionaries(
    {
        "keywords": st.none() | st.lists(st.text("abc", max_size=2), max_size=2),
        "file_type": st.sampled_from([None, "", "pdf"]),
        "history": st.lists(st.sampled_from(["s", "t", "gone"]), max_size=4),
    }
)


@given(documents_lists, queries)
def test_no_document_is_invented_or_duplicated(documents: list[DPEDocumentSummary], query: dict[str, Any]) -> None:
    page, total = organize_finder(documents, **query, limit=1000)
    assert len(page) == total
    assert len({id(item) for item in page}) == len(page)
    assert {id(item) for item in page} <= {id(item) for item in documents}


@given(documents_lists, queries, st.integers(1, 5))
def test_the_pages_concatenate_to_the_whole(
    documents: list[DPEDocumentSummary], query: dict[str, Any], limit: int
) -> None:
    whole, total = organize_finder(documents, **query, limit=1000)
    pages = [organize_finder(documents, **query, offset=offset, limit=limit) for offset in range(0, total + 1, limit)]
    assert [item for page, _ in pages for item in page] == whole
    assert {count for _, count in pages} <= {total}


@given(documents_lists, queries)
def test_servers_stay_together_and_undated_documents_come_last(
    documents: list[DPEDocumentSummary], query: dict[str, Any]
) -> None:
    page, _ = organize_finder(documents, **query, limit=1000)
    servers = [item["server"] for item in page]
    runs = [name for index, name in enumerate(servers) if index == 0 or servers[index - 1] != name]
    assert len(runs) == len(set(runs))
    for server in runs:
        dated = [item.get("last_modified") not in (None, "x") for item in page if item["server"] == server]
        assert dated == sorted(dated, reverse=True)


@pytest.mark.parametrize("missing", ["title", "file_type", "uri", "server", "page_count", "file_uri"])
def test_a_summary_that_lacks_a_field_is_filtered_without_an_error(missing: str) -> None:
    incomplete: Any = document("report")
    del incomplete[missing]
    complete = document("report-2")
    assert len(organize_finder([incomplete, complete])[0]) == (1 if missing == "uri" else 2)
    assert complete in organize_finder([incomplete, complete], ["report"], "pdf")[0]
    assert organize_finder([incomplete], ["no such thing"], "xlsx") == ([], 0)


# --- speed


def test_ten_thousand_warm_documents_are_searched_and_paged_quickly() -> None:
    documents = [
        document(
            f"report-{number}",
            server=f"server-{number % 4}",
            title=f"Quarterly report number {number}",
            keywords=["finance", f"region {number % 100}", "quarterly", "draft"],
            summary="What the quarter brought, and what it did not. " * 8,
            last_modified=f"2026-01-{number % 28 + 1:02}T{number % 24:02}:00:00+08:00",
        )
        for number in range(10_000)
    ]
    query: dict[str, Any] = {"keywords": ["region 42", "quarter"], "history": ["server-2"], "offset": 40}
    took = []
    for _ in range(5):
        started = time.process_time()
        page, total = organize_finder(documents, **query)
        took.append(time.process_time() - started)
    # The goal is 50 ms on an idle core; the allowance is for a busy machine.
    assert min(took) < 0.2
    assert (len(page), total) == (20, 10_000)

"""Queries: words, phrases, filters, and the expression that FTS5 gets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.docs.queries import Query, QueryError, Term, match_expression, parse_query
from a2c_smcp.docs.walking import FoundFile

MAY_31 = 1_717_113_600


def wanted(text: str, *, any_term: bool = False) -> str:
    query = parse_query(text)
    return match_expression(tuple(map(Term, query.words)), query.phrases, any_term=any_term)


def test_words_phrases_and_filters_are_told_apart() -> None:
    query = parse_query('Annual report "net income" type:.PDF,docx path:"My Reports" after:2024-05-31')
    assert query == Query(("annual", "report"), ("net income",), frozenset({"pdf", "docx"}), "my reports", MAY_31)
    assert parse_query("note: this").words == ("note",), "a colon alone makes no filter"


def test_words_that_every_text_has_are_looked_for_only_if_there_are_no_others() -> None:
    assert parse_query("where do good ideas come from").words == ("good", "ideas", "come")
    assert parse_query("to be or not to be").words == ("to", "be", "or", "not")


def test_a_date_that_is_none_is_refused_in_a_sentence() -> None:
    assert parse_query("after:2024").after == parse_query("after:2024-1-1").after
    for value in ("yesterday", "2024-13", "2024-02-30", ""):
        with pytest.raises(QueryError, match="needs a date such as 2024-05-31"):
            parse_query(f"after:{value}")


def test_filters_choose_files() -> None:
    report = FoundFile("Reports/2024/Q1.PDF", 1, MAY_31 * 10**9)
    assert parse_query("type:pdf path:reports/2024 after:2024-05-31").wants(report)
    assert parse_query("path:reports/*.pdf").wants(report)
    assert not parse_query("type:docx").wants(report)
    assert not parse_query("path:2023").wants(report)
    assert not parse_query("path:*.docx").wants(report)
    assert not parse_query("after:2024-06").wants(report)


def test_a_query_of_chinese_is_a_phrase_of_pairs_and_one_character_a_beginning() -> None:
    assert wanted("财务报告") == '"财务 务报 报告"'
    assert wanted("财 rain") == '"财" * AND "rain"'


def test_all_words_or_any_of_them_and_always_the_phrases() -> None:
    assert wanted('x "y z" v') == '"y z" AND "x" AND "v"'
    assert wanted('x "y z" v', any_term=True) == '"y z" AND ("x" OR "v")'
    assert match_expression((Term("x", ("y", "z")),), ()) == '("y" OR "z")'
    assert wanted("!?") == ""


@given(st.text())
def test_no_text_makes_an_expression_of_more_than_quoted_words(text: str) -> None:
    try:
        outside = wanted(text).split('"')[::2]
    except QueryError:
        return
    assert set("".join(outside).replace("AND", "").replace("OR", "")) <= set(" *()")

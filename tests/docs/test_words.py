"""Frequent terms, Chinese pairs, queries and snippets."""

from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.docs.words import as_indexed, as_query, frequent_terms, shortened, snippet, terms_of


def test_chinese_is_taken_by_pairs_and_other_words_whole() -> None:
    assert list(terms_of("The 年度报告 of 2024, 好")) == ["the", "年度", "度报", "报告", "of", "2024", "好"]


def test_frequent_terms_leave_out_what_every_text_has() -> None:
    text = "The rain and the roots: rain for roots, and the rain again. 财务报告与财务计划的报告"
    assert frequent_terms(text)[:2] == ["rain", "roots"] or frequent_terms(text)[0] == "rain"
    assert {"财务", "报告"} <= set(frequent_terms(text))
    assert not {"the", "and", "again", "计划的"} & set(frequent_terms(text))


def test_a_query_of_chinese_is_a_phrase_of_pairs_and_one_character_a_beginning() -> None:
    assert as_query("财务报告") == '"财务 务报 报告"'
    assert as_query("财 rain") == '"财" * "rain"'
    assert as_query("a b", any_term=True) == '"a" OR "b"'
    assert as_query('"; DROP') == '"DROP"'
    assert as_query("!?") == ""


def test_the_last_character_of_a_run_is_indexed_once_more() -> None:
    assert as_indexed("见报告。").split() == ["见报", "报告", "告", "。"]


@given(st.text())
def test_no_text_makes_a_query_that_is_more_than_quoted_words(text: str) -> None:
    for term in as_query(text).split('"')[1::2]:
        assert '"' not in term


def test_a_snippet_shows_where_the_words_are() -> None:
    text = "x " * 500 + "the deep well is clean " + "y " * 500
    assert "deep well" in snippet(text, "DEEP well")
    assert len(snippet(text, "deep")) < 170
    assert snippet("short", "nothing") == "short"


def test_a_summary_is_one_line_of_limited_length() -> None:
    assert shortened("a\n\n b") == "a b"
    assert len(shortened("word " * 1000)) <= 200

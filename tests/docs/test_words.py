"""Frequent terms, Chinese pairs, queries and snippets."""

from a2c_smcp.docs.words import (
    as_indexed,
    best_text,
    frequent_terms,
    has_phrase,
    is_one_edit_away,
    name_words,
    shortened,
    snippet,
    spelled_words,
    terms_of,
)


def test_chinese_is_taken_by_pairs_and_other_words_whole() -> None:
    assert list(terms_of("The 年度报告 of 2024, 好")) == ["the", "年度", "度报", "报告", "of", "2024", "好"]


def test_frequent_terms_leave_out_what_every_text_has() -> None:
    text = "The rain and the roots: rain for roots, and the rain again. 财务报告与财务计划的报告"
    assert frequent_terms(text)[:2] == ["rain", "roots"] or frequent_terms(text)[0] == "rain"
    assert {"财务", "报告"} <= set(frequent_terms(text))
    assert not {"the", "and", "again", "计划的"} & set(frequent_terms(text))


def test_the_last_character_of_a_run_is_indexed_once_more() -> None:
    assert as_indexed("见报告。").split() == ["见报", "报告", "告", "。"]


def test_a_snippet_shows_where_the_words_are() -> None:
    text = "x " * 500 + "the deep well is clean " + "y " * 500
    assert "deep well" in snippet(text, ["deep", "well"])
    assert len(snippet(text, ["deep"])) < 170
    assert snippet("short", ["nothing"]) == "short"


def test_a_summary_is_one_line_of_limited_length() -> None:
    assert shortened("a\n\n b") == "a b"
    assert len(shortened("word " * 1000)) <= 200


def test_a_word_with_a_hyphen_is_found_without_it() -> None:
    assert as_indexed("a plug-in, and a plug-in") == "a plug-in, and a plug-in plugin"


def test_a_name_is_found_by_its_pieces() -> None:
    assert name_words("Reports_2024/AnnualReport.final.pdf").split()[-4:] == ["Annual", "Report", "final", "pdf"]
    assert "AnnualReport" in name_words("Reports_2024/AnnualReport.final.pdf").split()


def test_one_edit_is_a_letter_more_less_or_different_or_two_that_changed_places() -> None:
    for typo in ("gardn", "gardeen", "garben", "agrden", "gadren", "gardne"):
        assert is_one_edit_away(typo, "garden"), typo
        assert is_one_edit_away("garden", typo), typo
    for other in ("garden", "gadner", "garde s", "guardian"):
        assert not is_one_edit_away(other, "garden"), other


def test_the_vocabulary_has_words_of_letters_without_accents() -> None:
    assert spelled_words("Résumé of_report 2024 x1y 年度") == {"resume", "report"}


def test_a_phrase_stands_there_word_by_word() -> None:
    assert has_phrase("The net\nincome, of 2024", "NET income")
    assert not has_phrase("The net total income", "net income")
    assert not has_phrase("planet incomes", "net income")
    assert has_phrase("见年度报告。", "年度报")


def test_the_text_that_has_most_of_the_words_is_shown() -> None:
    texts = ["roots", "rain and roots", "rain for the roots of trees"]
    assert best_text(texts, ["rains", "rooting", "tree"], []) == 2
    assert best_text(texts, ["rain"], ["rain and roots"]) == 1
    assert best_text(texts, ["zebra"], []) == 0


def test_a_row_of_a_million_letters_takes_no_longer_than_it_must() -> None:
    assert as_indexed("a" * 1_000_000) == "a" * 1_000_000
    assert as_indexed("a-" * 100_000).split()[-1] == "a" * 100_000

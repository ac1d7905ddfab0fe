"""`dpe://`: the eight rules of the seed, the four levels, the contract's rulings, and bad input."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.errors import InvalidDPEURIError, SMCPError
from a2c_smcp.utils.dpe_uri import (
    CATEGORIES,
    ParsedDPEUri,
    build_dpe_uri,
    element_uri,
    is_dpe_uri,
    is_valid_dpe_uri,
    page_uri,
    parse_dpe_uri,
    try_parse_dpe_uri,
    with_params,
)
from tests.utils.test_window_uri import hosts, words


def refused(text: str) -> str:
    with pytest.raises(InvalidDPEURIError) as caught:
        parse_dpe_uri(text)
    assert caught.value.code == 4204
    assert caught.value.details["uri"]
    assert len(str(caught.value)) < 600
    return caught.value.message


# --- the eight rules, one positive and one negative each


def test_rule_1_scheme_is_dpe() -> None:
    assert parse_dpe_uri("dpe://com.example").scheme == "dpe"


@pytest.mark.parametrize("text", ["window://h", "DPE://h/d", "dpe:/h", "h/d", "invalid://..."])
def test_rule_1_other_schemes_are_refused(text: str) -> None:
    assert "scheme" in refused(text)


def test_rule_2_host_is_kept() -> None:
    assert parse_dpe_uri("dpe://Com.Example/doc").host == "Com.Example"


@pytest.mark.parametrize("text", ["dpe://", "dpe:///doc"])
def test_rule_2_empty_host_is_refused(text: str) -> None:
    assert "host" in refused(text)


@pytest.mark.parametrize("sub_path", ["pages/0", "pages/12", "elements/e1", "elements/a/b"])
def test_rule_3_sub_path_is_a_page_or_an_element(sub_path: str) -> None:
    assert parse_dpe_uri(f"dpe://h/doc/{sub_path}").sub_path == sub_path


@pytest.mark.parametrize(
    "sub_path",
    [
        *("pages", "pages/", "pages/-1", "pages/x", "pages/1/2", "pages/1.0", "pages/٣", "pages%2F3"),
        *("elements", "elements/", "other/1", "Pages/1", "pages/" + "9" * 5000),
    ],
)
def test_rule_3_other_sub_paths_are_refused(sub_path: str) -> None:
    assert refused(f"dpe://h/doc/{sub_path}")


@pytest.mark.parametrize("value", ["json", "markdown", "text"])
def test_rule_4_format(value: str) -> None:
    assert parse_dpe_uri(f"dpe://h/d?format={value}").query_params == {"format": value}


@pytest.mark.parametrize("value", ["html", "", "JSON"])
def test_rule_4_other_formats_are_refused(value: str) -> None:
    assert "format" in refused(f"dpe://h/d?format={value}")


@pytest.mark.parametrize("value", ["metadata", "pages"])
def test_rule_5_depth(value: str) -> None:
    assert parse_dpe_uri(f"dpe://h/d?depth={value}").query_params == {"depth": value}


@pytest.mark.parametrize("value", ["all", "", "elements"])
def test_rule_5_other_depths_are_refused(value: str) -> None:
    assert "depth" in refused(f"dpe://h/d?depth={value}")


@pytest.mark.parametrize("value", ["0", "999999"])
def test_rule_6_offset_is_a_non_negative_integer(value: str) -> None:
    assert parse_dpe_uri(f"dpe://h/d?offset={value}").query_params["offset"] == value


@pytest.mark.parametrize("value", ["-1", "x", "", "1.0", "9" * 5000])
def test_rule_6_other_offsets_are_refused(value: str) -> None:
    assert "offset" in refused(f"dpe://h/d?offset={value}")


@pytest.mark.parametrize("value", ["1", "100"])
def test_rule_7_limit_is_from_1_to_100(value: str) -> None:
    assert parse_dpe_uri(f"dpe://h/d?limit={value}").query_params["limit"] == value


@pytest.mark.parametrize("value", ["0", "101", "-5", "ten", ""])
def test_rule_7_other_limits_are_refused(value: str) -> None:
    assert "limit" in refused(f"dpe://h/d?limit={value}")


@pytest.mark.parametrize("value", ["table", "table,chart", ",".join(sorted(CATEGORIES))])
def test_rule_8_categories(value: str) -> None:
    assert parse_dpe_uri(f"dpe://h/d?categories={value}").query_params["categories"] == value


@pytest.mark.parametrize("value", ["", "poem", "table,", "table,poem", "Table"])
def test_rule_8_other_categories_are_refused(value: str) -> None:
    assert "categor" in refused(f"dpe://h/d?categories={value}")


# --- levels and parts


@pytest.mark.parametrize(
    ("text", "level"),
    [("dpe://h", 0), ("dpe://h/", 0), ("dpe://h/d", 1), ("dpe://h/d/", 1), ("dpe://h/d/pages/0", 2)],
)
def test_four_levels(text: str, level: int) -> None:
    assert parse_dpe_uri(text).level == level


@pytest.mark.parametrize("sub_path", ["", "page/1", "pages", "elementary/x"])
def test_a_sub_path_that_makes_no_sense_is_level_minus_1_and_cannot_be_written(sub_path: str) -> None:
    uri = ParsedDPEUri("dpe", "h", "d", sub_path)
    assert uri.level == -1
    assert (uri.page_index, uri.element_id) == (None, None)
    with pytest.raises(InvalidDPEURIError):
        uri.build()


def test_an_element_is_level_3() -> None:
    assert parse_dpe_uri("dpe://h/d/elements/e").level == 3


def test_page_index_and_element_id() -> None:
    assert parse_dpe_uri("dpe://h/d/pages/007").page_index == 7
    assert parse_dpe_uri("dpe://h/d/elements/a/b%2Fc").element_id == "a/b/c"
    assert parse_dpe_uri("dpe://h/d").page_index is None
    assert parse_dpe_uri("dpe://h/d").element_id is None


def test_query_parameters_combine_and_unknown_ones_are_kept() -> None:
    uri = "dpe://h/d?depth=pages&offset=20&limit=10&format=json&categories=table,chart&theme=dark"
    assert parse_dpe_uri(uri).query_params["theme"] == "dark"
    assert len(parse_dpe_uri(uri).query_params) == 6


def test_special_characters_round_trip() -> None:
    assert parse_dpe_uri("dpe://h/c%2Fd").doc_ref == "c/d"
    assert parse_dpe_uri("dpe://h/年度报告").doc_ref == "年度报告"
    assert parse_dpe_uri(build_dpe_uri("h", "年度报告", "elements/表/1")).element_id == "表/1"
    assert build_dpe_uri("h", "c/d", "elements/a/b") == "dpe://h/c%2Fd/elements/a%2Fb"


# --- bad input


@pytest.mark.parametrize(
    "text",
    [
        *("", "dpe://h//d", "dpe://h/d//", "dpe://h/d/elements/a//b", "dpe://h/d#x", "dpe://u@h/d"),
        *("dpe://h/d?limit=1&limit=1", "dpe://h/d\r", "dpe://h/%", "dpe://h/" + "a" * 1_000_000),
    ],
)
def test_bad_input_has_the_modules_own_error(text: str) -> None:
    with pytest.raises(InvalidDPEURIError) as caught:
        parse_dpe_uri(text)
    assert caught.value.message


def test_the_error_is_an_smcp_error_and_a_value_error() -> None:
    for kind in (SMCPError, ValueError):
        with pytest.raises(kind):
            parse_dpe_uri("nonsense")


def test_parts_that_break_a_rule_cannot_be_built() -> None:
    attempts: list[Callable[[], object]] = [
        lambda: build_dpe_uri(""),
        lambda: build_dpe_uri("h", ""),
        lambda: build_dpe_uri("h", None, "pages/1"),
        lambda: build_dpe_uri("h", "d", "pages/-1"),
        lambda: build_dpe_uri("h", "d", "chapters/1"),
        lambda: build_dpe_uri("h", "d", params={"limit": "0"}),
        lambda: build_dpe_uri("h", "\ud800"),
        lambda: build_dpe_uri("h", "d", params={"limit": 5}),  # type: ignore[dict-item]
    ]
    for attempt in attempts:
        with pytest.raises(InvalidDPEURIError):
            attempt()


# --- helpers


def test_a_part_is_inserted_before_the_query_and_the_document_stays_as_written() -> None:
    assert page_uri("dpe://h/报告?format=json", 3) == "dpe://h/报告/pages/3?format=json"
    assert page_uri("dpe://h/d/", 0) == "dpe://h/d/pages/0"
    assert element_uri("dpe://h/d", "t/1?x") == "dpe://h/d/elements/t%2F1%3Fx"


def test_parameters_are_added_or_replaced() -> None:
    assert with_params("dpe://h/d", {"format": "text"}) == "dpe://h/d?format=text"
    assert with_params("dpe://h/报告?format=json&a=b", {"format": "text"}) == "dpe://h/报告?format=text&a=b"
    assert with_params("dpe://h/d", {}) == "dpe://h/d"


def test_helpers_refuse_what_makes_no_valid_uri() -> None:
    attempts: list[Callable[[], object]] = [
        lambda: page_uri("dpe://h", 0),
        lambda: page_uri("dpe://h/d/pages/1", 0),
        lambda: page_uri("dpe://h/d", -1),
        lambda: element_uri("dpe://h/d", ""),
        lambda: element_uri("window://h/d", "e"),
        lambda: with_params("dpe://h/d", {"limit": "1000"}),
        lambda: element_uri("dpe://h/" + "d" * 8000, "e" * 1000),
        lambda: with_params("dpe://h/" + "d" * 8000, {"theme": "x" * 1000}),
    ]
    for attempt in attempts:
        with pytest.raises(InvalidDPEURIError):
            attempt()


def test_is_dpe_uri_looks_at_the_scheme_only() -> None:
    assert is_dpe_uri("dpe://") and not is_dpe_uri("window://h")


known = st.fixed_dictionaries(
    {},
    optional={
        "format": st.sampled_from(["json", "markdown", "text"]),
        "depth": st.sampled_from(["metadata", "pages"]),
        "offset": st.integers(0, 10**9).map(str),
        "limit": st.integers(1, 100).map(str),
        "categories": st.lists(st.sampled_from(sorted(CATEGORIES)), min_size=1, max_size=4).map(",".join),
        "theme": words,
    },
)
sub_paths = st.integers(0, 10**9).map("pages/{}".format) | words.map("elements/{}".format)
documents = st.builds(
    ParsedDPEUri, scheme=st.just("dpe"), host=hosts, doc_ref=words, sub_path=st.none() | sub_paths, query_params=known
)


@given(documents | st.builds(ParsedDPEUri, scheme=st.just("dpe"), host=hosts, query_params=known))
def test_parse_reads_what_build_wrote(uri: ParsedDPEUri) -> None:
    assert parse_dpe_uri(uri.build()) == uri


@given(st.text(max_size=60) | st.text(max_size=40).map("dpe://".__add__))
def test_any_text_parses_or_has_the_modules_own_error(text: str) -> None:
    try:
        assert parse_dpe_uri(parse_dpe_uri(text).build()) == parse_dpe_uri(text)
    except InvalidDPEURIError as error:
        assert error.code == 4204


@given(documents.filter(lambda uri: uri.sub_path is None), words, st.integers(0, 10**6))
def test_helpers_agree_with_parse(uri: ParsedDPEUri, element_id: str, page_index: int) -> None:
    assert parse_dpe_uri(element_uri(uri.build(), element_id)).element_id == element_id
    assert parse_dpe_uri(page_uri(uri.build(), page_index)).page_index == page_index


def test_trying_gives_the_same_value_or_none() -> None:
    assert try_parse_dpe_uri("dpe://h/d?format=text") == parse_dpe_uri("dpe://h/d?format=text")
    assert try_parse_dpe_uri("dpe://h/d?format=pdf") is None


def test_validity_is_what_parse_says() -> None:
    assert is_valid_dpe_uri("dpe://h/d?format=text")
    assert not is_valid_dpe_uri("dpe://h/d?format=pdf")

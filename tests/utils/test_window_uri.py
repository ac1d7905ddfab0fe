"""`window://`: the five rules of the seed, the contract's rulings, and bad input."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.errors import InvalidWindowURIError, SMCPError
from a2c_smcp.utils.window_uri import WindowURI, is_window_uri

parse = WindowURI.parse


def refused(text: str) -> str:
    with pytest.raises(InvalidWindowURIError) as caught:
        parse(text)
    assert caught.value.code == 400
    assert len(str(caught.value)) < 600
    return caught.value.message


def test_rule_1_scheme_is_window() -> None:
    assert parse("window://com.example.logger").host == "com.example.logger"


@pytest.mark.parametrize(
    "text", ["dpe://host", "http://host", "window:/host", "windows://host", "WINDOW://host", "host"]
)
def test_rule_1_other_schemes_are_refused(text: str) -> None:
    assert "scheme" in refused(text)


def test_rule_2_host_is_kept_with_its_case() -> None:
    assert parse("window://Com.Example.MCP/a").host == "Com.Example.MCP"


@pytest.mark.parametrize("text", ["window://", "window:///a", "window://?priority=1"])
def test_rule_2_empty_host_is_refused(text: str) -> None:
    assert "host" in refused(text)


@pytest.mark.parametrize(("text", "priority"), [("0", 0), ("100", 100), ("80", 80), ("007", 7)])
def test_rule_3_priority_is_an_integer_from_0_to_100(text: str, priority: int) -> None:
    assert parse(f"window://h?priority={text}").priority == priority


@pytest.mark.parametrize("text", ["101", "-1", "abc", "1.5", "+1", "%2B1", "", " 1", "1e1", "٣", "9" * 40, "9" * 5000])
def test_rule_3_other_priorities_are_refused(text: str) -> None:
    assert "priority" in refused(f"window://h?priority={text}")


@pytest.mark.parametrize("text", ["true", "1", "yes", "on", "TRUE", "Yes"])
def test_rule_4_fullscreen_true(text: str) -> None:
    assert parse(f"window://h?fullscreen={text}").fullscreen is True


@pytest.mark.parametrize("text", ["false", "0", "no", "off", "Off"])
def test_rule_4_fullscreen_false(text: str) -> None:
    assert parse(f"window://h?fullscreen={text}").fullscreen is False


@pytest.mark.parametrize("text", ["maybe", "", "2", "ja"])
def test_rule_4_other_fullscreen_values_are_refused(text: str) -> None:
    assert "fullscreen" in refused(f"window://h?fullscreen={text}")


def test_rule_5_an_encoded_slash_stays_in_its_segment() -> None:
    assert parse("window://h/a/c%2Fd").path == ("a", "c/d")
    assert WindowURI("h", ("a", "c/d")).build() == "window://h/a/c%2Fd"


@pytest.mark.parametrize("text", ["window://h/%", "window://h/%zz", "window://h/%f", "window://h/%ff"])
def test_rule_5_bad_percent_encoding_is_refused(text: str) -> None:
    assert "%" in refused(text) or "UTF-8" in refused(text)


def test_the_three_examples_of_the_seed() -> None:
    assert parse("window://com.example.browser/main/tab1?priority=80&fullscreen=true") == WindowURI(
        "com.example.browser", ("main", "tab1"), 80, True
    )
    assert parse("window://com.example.logger") == WindowURI("com.example.logger", (), None, None)
    assert parse("window://com.example.editor/src%2Fmain/file%20name").path == ("src/main", "file name")


def test_one_trailing_slash_is_ignored() -> None:
    assert parse("window://h/") == parse("window://h")
    assert parse("window://h/a/") == parse("window://h/a")


def test_unknown_query_keys_are_kept() -> None:
    uri = parse("window://h?theme=dark&priority=1")
    assert uri.params == {"theme": "dark"}
    assert parse(uri.build()) == uri


@pytest.mark.parametrize(
    "text",
    [
        "",
        "window://h//a",
        "window://h//",
        "window://h/a#top",
        "window://user@h/a",
        "window://user:pass@h",
        "window://h?priority=1&priority=1",
        "window://h?x=1&x=2",
        "window://h?=1",
        "window://h/a\nb",
        "window://h/a\x00",
        "window://h/\x85",
        "window://h /a",
        "window://h/\ud800",
        "window://h/" + "a" * 1_000_000,
    ],
)
def test_bad_input_has_the_modules_own_error(text: str) -> None:
    assert refused(text)


def test_the_error_is_an_smcp_error_and_a_value_error() -> None:
    for kind in (SMCPError, ValueError):
        with pytest.raises(kind):
            parse("window://")


def test_a_value_that_breaks_a_rule_cannot_be_built() -> None:
    attempts: list[Callable[[], object]] = [
        lambda: WindowURI(""),
        lambda: WindowURI("h", ("",)),
        lambda: WindowURI("h", priority=101),
        lambda: WindowURI("h", priority=True),
        lambda: WindowURI("h", params={"priority": "1"}),
        lambda: WindowURI("h", ("a" * 9000,)),
        lambda: WindowURI("a/b"),
        lambda: WindowURI("h", ("\ud800",)),
    ]
    for attempt in attempts:
        with pytest.raises(InvalidWindowURIError):
            attempt()


def test_is_window_uri_looks_at_the_scheme_only() -> None:
    assert is_window_uri("window://") and not is_window_uri("dpe://h")


# Any text that UTF-8 can carry; hosts as people write them.
words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
hosts = st.from_regex(r"[A-Za-z0-9.\-_]{1,30}", fullmatch=True)
params = st.dictionaries(
    words.filter(lambda key: key not in ("priority", "fullscreen")), words | st.just(""), max_size=3
)
windows = st.builds(
    WindowURI,
    host=hosts,
    path=st.lists(words, max_size=4).map(tuple),
    priority=st.none() | st.integers(0, 100),
    fullscreen=st.none() | st.booleans(),
    params=params,
)


@given(windows)
def test_parse_reads_what_build_wrote(window: WindowURI) -> None:
    assert parse(window.build()) == window


@given(st.text(max_size=60) | st.text(max_size=40).map("window://".__add__))
def test_any_text_parses_or_has_the_modules_own_error(text: str) -> None:
    try:
        assert parse(parse(text).build()) == parse(text)
    except InvalidWindowURIError as error:
        assert error.code == 400

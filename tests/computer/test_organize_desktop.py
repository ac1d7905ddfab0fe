"""Which windows show, in which order, and which ones are read to know."""

import logging
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import Annotations, BlobResourceContents, ReadResourceResult, Resource, TextResourceContents

from a2c_smcp.computer.desktop import listed_windows, organize_desktop, windows_to_read
from a2c_smcp.computer.desktop.organize import show_windows
from a2c_smcp.computer.types import ToolCallRecord

Window = tuple[str, Resource, ReadResourceResult]
Read = Mapping[tuple[str, str], ReadResourceResult | None]


def resource(uri: str) -> Resource:
    return Resource(uri=uri, name="window")


def text(*texts: str) -> ReadResourceResult:
    return ReadResourceResult(contents=[TextResourceContents(uri="window://h", text=item) for item in texts])


def blob(*texts: str) -> ReadResourceResult:
    image = BlobResourceContents(uri="window://h", blob="AA==", mime_type="image/png")
    return ReadResourceResult(contents=[image, *text(*texts).contents])


NOTHING = ReadResourceResult(contents=[])


def window(server: str, uri: str, result: ReadResourceResult | None = None) -> Window:
    return server, resource(uri), text("x") if result is None else result


def record(server: str) -> ToolCallRecord:
    return {
        "timestamp": "2026-01-01T00:00:00+00:00",
        "req_id": "1",
        "server": server,
        "tool": "read",
        "parameters": {},
        "timeout": None,
        "success": True,
        "error": None,
    }


def uris(windows: Sequence[Window], size: int | None = None, history: Sequence[ToolCallRecord] = ()) -> list[str]:
    return [desktop.partition("\n")[0] for desktop in organize_desktop(windows, size, history)]


# --- step 1: filtering


@pytest.mark.parametrize("uri", ["http://h", "window://", "window://h?priority=101", "window://h?fullscreen=maybe"])
def test_a_window_with_an_invalid_uri_never_shows(uri: str) -> None:
    assert uris([window("a", uri), window("a", "window://h")]) == ["window://h"]


@pytest.mark.parametrize("result", [NOTHING, blob()])
def test_a_window_that_holds_nothing_or_only_blobs_never_shows(result: ReadResourceResult) -> None:
    assert uris([window("a", "window://h", result)]) == []


@pytest.mark.parametrize("result", [blob(), blob("text beside it")])
def test_a_skipped_blob_warns_once_with_its_uri(result: ReadResourceResult, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        organize_desktop([window("a", "window://h/picture", result)], None, [])
    assert ["window://h/picture" in message for message in caplog.messages].count(True) == 1


# --- what MCP's own fields say


@pytest.mark.parametrize(
    ("uri", "priority", "fullscreen", "shown"),
    [
        ("window://h/it", 0.6, None, ["window://h/it", "window://h/fifty"]),
        ("window://h/it?priority=10", 0.6, None, ["window://h/fifty", "window://h/it?priority=10"]),
        ("window://h/it", None, True, ["window://h/it"]),
        ("window://h/it", None, "true", ["window://h/fifty", "window://h/it"]),
        ("window://h/it?fullscreen=false", None, True, ["window://h/fifty", "window://h/it?fullscreen=false"]),
    ],
)
def test_annotations_and_meta_count_where_the_uri_says_nothing(
    uri: str, priority: float | None, fullscreen: object, shown: list[str]
) -> None:
    annotations = None if priority is None else Annotations(priority=priority)
    meta = None if fullscreen is None else {"fullscreen": fullscreen}
    it = Resource(uri=uri, name="window", annotations=annotations, _meta=meta)
    fifty = window("a", "window://h/fifty?priority=50")
    found = [each.partition("?priority=50")[0] for each in uris([fifty, ("a", it, text("x"))])]
    assert found == shown


# --- step 2: servers


def test_recently_used_servers_come_first_and_the_others_by_name() -> None:
    windows = [window(server, f"window://{server}") for server in ("d", "b", "c", "a")]
    history = [record("b"), record("c"), record("b")]
    assert uris(windows, history=history) == ["window://b", "window://c", "window://a", "window://d"]


# --- step 3: priority


def test_windows_of_a_server_come_by_falling_priority_and_none_means_zero() -> None:
    windows = [window("a", "window://h/none"), *(window("a", f"window://h?priority={p}") for p in (0, 50, 100))]
    assert uris(windows) == [
        "window://h?priority=100",
        "window://h?priority=50",
        "window://h/none",
        "window://h?priority=0",
    ]


def test_priorities_compare_inside_one_server_only() -> None:
    windows = [window("b", "window://b?priority=100"), window("a", "window://a")]
    assert uris(windows) == ["window://a", "window://b?priority=100"]


def test_equal_priorities_keep_list_order() -> None:
    listed = [f"window://h/{name}?priority=5" for name in ("z", "a", "m")]
    assert uris([window("a", uri) for uri in listed]) == listed


# --- step 4: fullscreen


def test_the_first_listed_fullscreen_window_is_alone_on_its_server() -> None:
    windows = [
        window("a", "window://h/plain?priority=100"),
        window("a", "window://h/first?fullscreen=1&priority=1"),
        window("a", "window://h/second?fullscreen=true&priority=100"),
        window("b", "window://b/plain"),
    ]
    assert uris(windows) == ["window://h/first?fullscreen=1&priority=1", "window://b/plain"]


def test_every_server_may_have_a_fullscreen_window() -> None:
    windows = [window(server, f"window://{server}?fullscreen=on") for server in ("a", "b")]
    assert len(uris(windows)) == 2


def test_a_fullscreen_window_that_is_filtered_out_rules_nothing() -> None:
    windows = [
        window("a", "window://h/blob?fullscreen=1", blob()),
        window("a", "window://h/full?fullscreen=1"),
        window("a", "window://h/plain"),
    ]
    assert uris(windows) == ["window://h/full?fullscreen=1"]
    assert uris([windows[0], windows[2]]) == ["window://h/plain"]


def test_fullscreen_false_is_an_ordinary_window() -> None:
    windows = [window("a", "window://h/1?fullscreen=off"), window("a", "window://h/2")]
    assert len(uris(windows)) == 2


# --- step 5: size


@pytest.mark.parametrize(("size", "count"), [(None, 4), (10, 4), (3, 3), (1, 1), (0, 0), (-1, 0)])
def test_size_cuts_over_all_servers(size: int | None, count: int) -> None:
    windows = [window(server, f"window://{server}/{index}") for server in "ab" for index in range(2)]
    assert uris(windows, size) == ["window://a/0", "window://a/1", "window://b/0", "window://b/1"][:count]


# --- rendering


def test_the_body_joins_the_non_empty_texts_with_a_blank_line() -> None:
    windows = [window("a", "window://h", text("one", "", "two\n"))]
    assert organize_desktop(windows, None, []) == ["window://h\n\none\n\ntwo\n"]


def test_texts_that_are_all_empty_show_as_the_uri_alone() -> None:
    assert organize_desktop([window("a", "window://h", text("", ""))], None, []) == ["window://h"]


def test_the_uri_is_printed_byte_for_byte_as_listed() -> None:
    uri = "window://Com.Example/src%2fmain/?fullscreen=YES&x=%41"
    assert organize_desktop([window("a", uri)], None, []) == [f"{uri}\n\nx"]


def test_arguments_go_by_keyword_too() -> None:
    assert organize_desktop(windows=[], size=None, history=[]) == []


# --- which windows there are


def test_windows_are_listed_once_per_server_and_nothing_else_is() -> None:
    listed = {
        "b": [resource("window://x"), resource("dpe://h/d"), resource("window://y"), resource("window://x")],
        "a": [resource("window://x")],
    }
    assert [(server, item.uri) for server, item in listed_windows(listed)] == [
        ("b", "window://x"),
        ("b", "window://y"),
        ("a", "window://x"),
    ]


def test_one_window_is_asked_for_by_exact_uri_before_the_fullscreen_rule() -> None:
    listed = {"a": [resource("window://h/full?fullscreen=1"), resource("window://h/plain")]}
    [(server, plain)] = listed_windows(listed, "window://h/plain")
    assert uris([(server, plain, text("x"))]) == ["window://h/plain"]
    assert listed_windows(listed, "window://h/PLAIN") == []


# --- which windows are read


def to_read(
    listed: Sequence[str], read: Read | None = None, size: int | None = None, used: Sequence[str] = ()
) -> list[str]:
    """The windows to read; each is written as its server and its URI."""
    pairs = [(server, resource(uri)) for server, _, uri in (item.partition(" ") for item in listed)]
    return [f"{server} {item.uri}" for server, item in windows_to_read(pairs, read or {}, size, used)]


LISTED = ["b window://1", "a window://2", "a window://3?priority=9", "a not-a-window"]


def test_without_a_size_every_valid_window_is_read_at_once() -> None:
    assert to_read(LISTED) == ["a window://3?priority=9", "a window://2", "b window://1"]


def test_with_a_size_only_the_windows_that_can_still_appear_are_read() -> None:
    assert to_read(LISTED, size=2) == ["a window://3?priority=9", "a window://2"]
    assert to_read(LISTED, size=1, used=["b"]) == ["b window://1"]


@pytest.mark.parametrize("size", [0, -1])
def test_without_room_nothing_is_read(size: int) -> None:
    assert to_read(LISTED, size=size) == []


@pytest.mark.parametrize("result", [None, NOTHING, blob()])
def test_reading_goes_on_past_windows_that_turn_out_empty(result: ReadResourceResult | None) -> None:
    assert to_read(LISTED, {("a", "window://3?priority=9"): result}, size=1) == ["a window://2"]


def test_a_window_that_shows_ends_the_reading() -> None:
    assert to_read(LISTED, {("a", "window://3?priority=9"): text("")}, size=1) == []


def test_beside_a_fullscreen_window_nothing_is_read_until_it_turns_out_empty() -> None:
    listed = ["a window://plain", "a window://f1?fullscreen=1", "a window://f2?fullscreen=1", "b window://other"]
    assert to_read(listed) == ["a window://f1?fullscreen=1", "b window://other"]
    read: dict[tuple[str, str], ReadResourceResult | None] = {
        ("a", "window://f1?fullscreen=1"): NOTHING,
        ("b", "window://other"): text("x"),
    }
    assert to_read(listed, read) == ["a window://f2?fullscreen=1"]
    read["a", "window://f2?fullscreen=1"] = None
    assert to_read(listed, read) == ["a window://plain"]


# --- laws

results = st.sampled_from([NOTHING, blob(), blob("x"), text("x"), text("")])
addresses = st.builds(
    lambda path, query: f"window://h/{path}{query}",
    st.sampled_from("abcd"),
    st.sampled_from(["", "?priority=5", "?priority=50", "?fullscreen=1", "?fullscreen=1&priority=7", "?priority=x"]),
)
screens = st.dictionaries(st.tuples(st.sampled_from(["a", "b", "c"]), addresses), results, max_size=12)
uses = st.lists(st.sampled_from(["a", "b", "c", "gone"]), max_size=6)
sizes = st.none() | st.integers(-1, 8)


def as_windows(screen: Mapping[tuple[str, str], ReadResourceResult]) -> list[Window]:
    return [window(server, uri, result) for (server, uri), result in screen.items()]


@given(screens, sizes, uses)
def test_no_window_is_invented_or_duplicated(
    screen: dict[tuple[str, str], ReadResourceResult], size: int | None, used: list[str]
) -> None:
    shown = [desktop.partition("\n")[0] for desktop in show_windows(as_windows(screen), size, used)]
    listed = [uri for _, uri in screen]
    assert all(shown.count(uri) <= listed.count(uri) for uri in shown)
    assert size is None or len(shown) <= max(size, 0)


@given(screens, st.integers(0, 8), uses)
def test_a_smaller_desktop_is_the_beginning_of_the_whole(
    screen: dict[tuple[str, str], ReadResourceResult], size: int, used: list[str]
) -> None:
    windows = as_windows(screen)
    assert show_windows(windows, size, used) == show_windows(windows, None, used)[:size]


@given(screens, sizes, uses)
def test_reading_only_what_is_named_gives_the_same_desktop_as_reading_everything(
    screen: dict[tuple[str, str], ReadResourceResult], size: int | None, used: list[str]
) -> None:
    listed = [(server, resource(uri)) for server, uri in screen]
    read: dict[tuple[str, str], ReadResourceResult | None] = {}
    while wanted := windows_to_read(listed, read, size, used):
        assert all((server, item.uri) not in read for server, item in wanted)
        assert size is None or len(wanted) <= size
        read.update({(server, item.uri): screen[server, item.uri] for server, item in wanted})
    known = [(server, item, result) for server, item in listed if (result := read.get((server, item.uri)))]
    assert show_windows(known, size, used) == show_windows(as_windows(screen), size, used)

"""What change notifications mean, and when they are announced. The first tests are named after the seed's own list."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.computer.watching.announcements import Channel, Listed, Watch, channel_of
from a2c_smcp.computer.watching.paced_events import ANNOUNCE_SECONDS
from a2c_smcp.utils.pace import Pace

DESKTOP, FINDER = Channel.DESKTOP, Channel.FINDER


def watching(**listed: list[str]) -> Watch:
    watch = Watch()
    for server, uris in listed.items():
        watch, _ = watch.relist(server, Listed(uris))
    return watch


def announced(change: tuple[Watch, frozenset[Channel]]) -> set[Channel]:
    return set(change[1])


# --- the seed's list


def test_the_same_set_of_uris_announces_nothing() -> None:
    assert announced(watching(a=["dpe://h/1", "dpe://h/2"]).relist("a", Listed(["dpe://h/2", "dpe://h/1"]))) == set()


@pytest.mark.parametrize("after", [["dpe://h/1", "dpe://h/2"], [], ["dpe://h/3"]])
def test_a_different_set_announces(after: list[str]) -> None:
    assert announced(watching(a=["dpe://h/1"]).relist("a", Listed(after))) == {FINDER}


def test_only_dpe_uris_matter_to_the_finder_and_only_windows_to_the_desktop() -> None:
    watch = watching(a=["dpe://h/1", "window://h", "file:///x"])
    assert announced(watch.relist("a", Listed(["dpe://h/1", "window://h", "file:///y", "http://h"]))) == set()
    assert announced(watch.relist("a", Listed(["dpe://h/1", "file:///x"]))) == {DESKTOP}
    assert announced(watch.relist("a", Listed(["window://h", "window://i"]))) == {DESKTOP, FINDER}


# --- the contract's rulings


def test_each_channel_names_the_event_that_announces_it() -> None:
    assert [channel.value for channel in Channel] == ["server:update_desktop", "server:update_finder"]


@pytest.mark.parametrize(
    ("uri", "channel"),
    [
        ("window://h", DESKTOP),
        ("dpe://h/d", FINDER),
        ("dpe://h/d/pages/1", FINDER),
        ("window:h", None),
        ("WINDOW://h", None),
    ],
)
def test_an_update_belongs_to_the_channel_of_its_scheme(uri: str, channel: Channel | None) -> None:
    assert channel_of(uri) is channel


def test_the_sets_of_all_servers_are_compared() -> None:
    watch = watching(a=["window://x", "dpe://h/1"], b=["window://y"])
    assert announced(watch.relist("b", Listed(["window://y"]))) == set()
    # Another server lists the same: what there is on the whole stays the same.
    assert announced(watch.relist("b", Listed(["window://y", "window://x"]))) == set()


def test_the_first_list_changed_after_connecting_is_silent_without_a_change() -> None:
    connected, changed = Watch().relist("a", Listed(["window://x"]))
    assert changed == {DESKTOP}
    assert announced(connected.relist("a", Listed(["window://x"]))) == set()


def test_a_server_without_either_kind_of_resource_comes_and_goes_silently() -> None:
    watch, changed = Watch().relist("a", Listed(["file:///x"]))
    assert changed == set()
    assert announced(watch.drop("a")) == set()


def test_a_server_that_goes_counts_as_a_list_change() -> None:
    after, changed = watching(a=["window://x", "dpe://h/1"], b=["window://x"]).drop("a")
    assert changed == {FINDER}
    assert after == watching(b=["window://x"])


def test_dropping_a_server_that_is_not_there_changes_nothing() -> None:
    watch = watching(a=["window://x"])
    assert watch.drop("b") == (watch, frozenset())


def test_documents_of_another_host_that_come_and_the_last_ones_that_go_are_announced() -> None:
    watch, changed = Watch().relist("a", Listed(["dpe://h/1"]))
    assert changed == {FINDER}
    watch, changed = watch.relist("b", Listed(["dpe://i/1"]))
    assert changed == {FINDER}
    assert announced(watch.relist("a", Listed(["dpe://h/1"]))) == set()
    watch, changed = watch.drop("a")
    assert changed == {FINDER}
    assert announced(watch.drop("b")) == {FINDER}


def test_the_uris_of_a_channel_are_those_of_all_servers() -> None:
    watch = watching(a=["window://x", "dpe://h/1"], b=["dpe://h/2"])
    assert watch.uris(FINDER) == {"dpe://h/1", "dpe://h/2"}
    assert watch.uris(DESKTOP) == {"window://x"}


# --- what to read again

LISTED = ["dpe://h/1", "dpe://h/2?format=json", "dpe://h/2/pages/0", "dpe://other/1", "dpe://h/?bad=%", "window://h"]


@pytest.mark.parametrize(
    ("uri", "stale"),
    [
        ("dpe://h/1", {"dpe://h/1"}),
        ("dpe://h/2", {"dpe://h/2?format=json"}),
        ("dpe://h/1/pages/3", {"dpe://h/1"}),
        ("dpe://h/1/elements/e", {"dpe://h/1"}),
        ("dpe://h", {"dpe://h/1", "dpe://h/2?format=json"}),
        ("dpe://h/unlisted", set()),
        ("dpe://", set()),
        ("window://h", set()),
    ],
)
def test_an_updated_uri_makes_its_document_stale_and_no_other(uri: str, stale: set[str]) -> None:
    assert watching(a=LISTED, b=["dpe://h/1"]).stale_documents("a", uri) == stale


@pytest.mark.parametrize("uri", ["dpe://h/d", "dpe://h/d/pages/7", "dpe://h/d/elements/x", "dpe://h"])
def test_a_document_of_which_only_parts_are_listed_is_stale_as_well(uri: str) -> None:
    watch = watching(a=["dpe://h/d/pages/0?format=text", "dpe://h/d/elements/a/b", "dpe://i/a%20b/pages/0"])
    assert watch.stale_documents("a", uri) == {"dpe://h/d"}
    assert watch.stale_documents("a", "dpe://i") == {"dpe://i/a%20b"}


def test_a_server_that_is_not_there_has_no_stale_documents() -> None:
    assert Watch().stale_documents("a", "dpe://h/1") == set()


# --- announcements


def test_the_first_change_is_announced_at_once() -> None:
    assert Pace(ANNOUNCE_SECONDS).due is None
    assert Pace(ANNOUNCE_SECONDS).change(7.0).due == 7.0


def test_a_change_soon_after_waits_for_its_turn() -> None:
    assert Pace(ANNOUNCE_SECONDS).change(7.0).sent(7.0).change(7.03).due == 7.0 + ANNOUNCE_SECONDS


def test_a_change_long_after_is_announced_at_once() -> None:
    assert Pace(ANNOUNCE_SECONDS).change(7.0).sent(7.0).change(9.0).due == 9.0


def test_changes_that_wait_become_one() -> None:
    waiting = Pace(ANNOUNCE_SECONDS).change(7.0).sent(7.0).change(7.01)
    assert waiting.change(7.05) == waiting
    assert waiting.sent(7.1).due is None


def test_a_change_after_the_sending_began_is_not_lost() -> None:
    assert Pace(ANNOUNCE_SECONDS).change(7.0).sent(7.0).change(7.0).due == 7.0 + ANNOUNCE_SECONDS


@given(st.lists(st.integers(0, 300), min_size=1, max_size=30))
def test_however_changes_come_announcements_keep_their_distance_and_the_last_is_never_lost(gaps: list[int]) -> None:
    moments = [sum(gaps[: index + 1]) / 1000 for index in range(len(gaps))]
    state = Pace(ANNOUNCE_SECONDS)
    sent: list[float] = []
    for moment in moments:
        while state.due is not None and state.due <= moment:
            sent.append(state.due)
            state = state.sent(state.due)
        state = state.change(moment)
    assert state.due is not None
    sent.append(state.due)
    assert sent[0] == moments[0]
    assert all(later - earlier >= ANNOUNCE_SECONDS - 1e-9 for earlier, later in itertools.pairwise(sent))
    assert sent[-1] >= moments[-1]
    assert all(any(moment <= at <= moment + ANNOUNCE_SECONDS for at in sent) for moment in moments)

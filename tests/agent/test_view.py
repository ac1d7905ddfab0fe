"""What is fetched after which notification, and what is known afterwards."""

from typing import Any

import pytest

from a2c_smcp.agent.view import Fetch, Later, OfficeView, Part, retry_delay
from a2c_smcp.errors import BadRequestError, ConnectionLostError, NotFoundError, PayloadTooLargeError, SMCPError
from a2c_smcp.smcp import (
    UPDATE_CONFIG_NOTIFICATION,
    UPDATE_DESKTOP_NOTIFICATION,
    UPDATE_FINDER_NOTIFICATION,
    UPDATE_TOOL_LIST_NOTIFICATION,
)

GONE = NotFoundError("gone")


def tools(view: OfficeView, computer: str) -> Any:
    return view.computers[computer].tools


def wanted(fetches: list[Fetch]) -> list[tuple[str, Part]]:
    return [(fetch.computer, fetch.part) for fetch in fetches]


def resumed(view: OfficeView, fetch: Fetch) -> list[Fetch]:
    outcome = view.resume(fetch)
    assert isinstance(outcome, list)
    return outcome


@pytest.fixture
def view() -> OfficeView:
    """An office with one computer whose tools are known."""
    view = OfficeView()
    view.begin_listing()
    (fetch,) = view.end_listing(["laptop"])
    view.fetched(fetch, ["a tool"])
    return view


def test_on_join_the_members_and_their_tools() -> None:
    view = OfficeView()
    view.begin_listing()
    fetches = view.end_listing(["laptop", "desk"])
    assert wanted(fetches) == [("desk", Part.TOOLS), ("laptop", Part.TOOLS)]
    assert list(view.computers) == ["desk", "laptop"]
    assert view.computers["desk"].tools is None
    assert view.fetched(fetches[0], ["t"]) == (True, [])
    view.failed(fetches[1], GONE)
    assert view.settled
    assert tools(view, "desk") == ["t"]
    assert view.computers["laptop"].failures == {Part.TOOLS: GONE}


@pytest.mark.parametrize(
    ("notification", "parts"),
    [
        (UPDATE_CONFIG_NOTIFICATION, [Part.CONFIG, Part.TOOLS]),
        (UPDATE_TOOL_LIST_NOTIFICATION, [Part.TOOLS]),
        (UPDATE_DESKTOP_NOTIFICATION, [Part.DESKTOP]),
        (UPDATE_FINDER_NOTIFICATION, [Part.DOCUMENTS]),
    ],
)
def test_each_notification_fetches_its_parts(view: OfficeView, notification: str, parts: list[Part]) -> None:
    assert wanted(view.update(notification, "laptop")) == [("laptop", part) for part in parts]
    assert view.update(notification, "stranger") == []


def test_it_is_settled_when_everything_was_fetched_or_tried() -> None:
    view = OfficeView()
    steps = [view.settled]
    view.begin_listing()
    steps.append(view.settled)
    one, two = view.end_listing(["laptop", "desk"])
    steps.append(view.settled)
    view.fetched(one, [])
    steps.append(view.settled)
    view.failed(two, GONE)
    steps.append(view.settled)
    assert steps == [True, False, False, False, True]


def test_a_burst_is_fetched_twice_at_most(view: OfficeView) -> None:
    (first,) = view.update(UPDATE_DESKTOP_NOTIFICATION, "laptop")
    assert [view.update(UPDATE_DESKTOP_NOTIFICATION, "laptop") for _ in range(100)] == [[]] * 100
    news, again = view.fetched(first, ["old"])
    assert news and isinstance(again, list)
    (second,) = again
    assert view.fetched(second, ["new"]) == (True, [])
    assert view.computers["laptop"].desktop == ["new"]


def test_the_same_value_again_is_no_news(view: OfficeView) -> None:
    (fetch,) = view.update(UPDATE_TOOL_LIST_NOTIFICATION, "laptop")
    assert view.fetched(fetch, ["a tool"]) == (False, [])


def test_a_failure_is_visible_and_retried_and_the_old_value_stays(view: OfficeView) -> None:
    (fetch,) = view.update(UPDATE_TOOL_LIST_NOTIFICATION, "laptop")
    assert view.failed(fetch, GONE) == Later(fetch, 1.0)
    assert view.computers["laptop"].failures == {Part.TOOLS: GONE}
    assert tools(view, "laptop") == ["a tool"]
    (again,) = resumed(view, fetch)
    assert view.failed(again, GONE) == Later(again, 2.0)
    (again,) = resumed(view, again)
    assert view.fetched(again, ["a tool"]) == (True, [])
    assert view.computers["laptop"].failures == {}


def test_a_notification_overtakes_a_retry(view: OfficeView) -> None:
    (fetch,) = view.update(UPDATE_DESKTOP_NOTIFICATION, "laptop")
    view.failed(fetch, GONE)
    (sooner,) = view.update(UPDATE_DESKTOP_NOTIFICATION, "laptop")
    assert resumed(view, fetch) == []
    assert view.fetched(sooner, ["w"]) == (True, [])
    assert resumed(view, sooner) == []


def test_a_failure_after_another_notification_is_tried_again_at_once(view: OfficeView) -> None:
    (fetch,) = view.update(UPDATE_DESKTOP_NOTIFICATION, "laptop")
    view.update(UPDATE_DESKTOP_NOTIFICATION, "laptop")
    outcome = view.failed(fetch, GONE)
    assert isinstance(outcome, list)
    assert wanted(outcome) == [("laptop", Part.DESKTOP)]


@pytest.mark.parametrize("error", [BadRequestError("unknown event"), ConnectionLostError("cut")])
def test_what_cannot_get_better_by_itself_is_not_retried(view: OfficeView, error: SMCPError) -> None:
    (fetch,) = view.update(UPDATE_DESKTOP_NOTIFICATION, "laptop")
    assert view.failed(fetch, error) == []
    assert view.computers["laptop"].failures == {Part.DESKTOP: error}
    assert view.settled
    assert wanted(view.update(UPDATE_DESKTOP_NOTIFICATION, "laptop")) == [("laptop", Part.DESKTOP)]


def test_retries_come_further_and_further_apart() -> None:
    assert [retry_delay(n) for n in (1, 2, 3, 4, 5, 6, 7, 10_000)] == [1, 2, 4, 8, 16, 30, 30, 30]


def test_a_computer_that_leaves_is_dropped_and_what_comes_late_changes_nothing(view: OfficeView) -> None:
    (fetch,) = view.update(UPDATE_TOOL_LIST_NOTIFICATION, "laptop")
    view.leave("laptop")
    assert view.computers == {}
    assert view.settled
    assert view.fetched(fetch, ["late"]) == (False, [])
    assert view.failed(fetch, GONE) is None
    assert resumed(view, fetch) == []


def test_one_that_left_and_came_back_is_not_given_what_was_fetched_before(view: OfficeView) -> None:
    (old,) = view.update(UPDATE_TOOL_LIST_NOTIFICATION, "laptop")
    view.leave("laptop")
    (new,) = view.enter("laptop")
    assert view.fetched(old, ["old"]) == (False, [])
    view.fetched(new, ["new"])
    assert tools(view, "laptop") == ["new"]


def test_who_comes_or_goes_while_the_office_is_listed_counts() -> None:
    view = OfficeView()
    view.begin_listing()
    assert wanted(view.enter("early")) == [("early", Part.TOOLS)]
    view.enter("brief")
    view.leave("brief")
    view.leave("gone")
    assert wanted(view.end_listing(["brief", "gone", "here"])) == [("here", Part.TOOLS)]
    assert set(view.computers) == {"early", "here"}


def test_after_a_reconnect_everything_that_was_known_is_fetched_again(view: OfficeView) -> None:
    (fetch,) = view.update(UPDATE_DESKTOP_NOTIFICATION, "laptop")
    view.fetched(fetch, [])
    (fetch,) = view.update(UPDATE_FINDER_NOTIFICATION, "laptop")
    view.failed(fetch, ConnectionLostError("cut"))
    view.enter("other")
    view.begin_listing()
    assert set(view.computers) == {"laptop", "other"}
    fetches = view.end_listing(["laptop", "new"])
    assert set(wanted(fetches)) == {
        ("laptop", Part.TOOLS),
        ("laptop", Part.DESKTOP),
        ("laptop", Part.DOCUMENTS),
        ("new", Part.TOOLS),
    }
    assert set(view.computers) == {"laptop", "new"}


def test_leaving_the_office_forgets_it(view: OfficeView) -> None:
    snapshot = view.computers
    (fetch,) = view.update(UPDATE_TOOL_LIST_NOTIFICATION, "laptop")
    view.clear()
    assert view.computers == {}
    assert view.fetched(fetch, []) == (False, [])
    assert list(snapshot) == ["laptop"]


def test_after_a_costly_fetch_the_next_one_waits_and_the_last_change_is_fetched(view: OfficeView) -> None:
    (first,) = view.update(UPDATE_DESKTOP_NOTIFICATION, "laptop")
    assert view.fetched(first, ["old"], 2.0) == (True, Later(first, 2.0))
    assert [view.update(UPDATE_DESKTOP_NOTIFICATION, "laptop") for _ in range(100)] == [[]] * 100
    (second,) = resumed(view, first)
    assert view.resume(first) == []
    assert view.fetched(second, ["new"], 2.0) == (True, Later(second, 2.0))
    assert view.resume(second) == []
    assert wanted(view.update(UPDATE_DESKTOP_NOTIFICATION, "laptop")) == [("laptop", Part.DESKTOP)]


def test_what_is_announced_during_a_costly_fetch_waits_as_well(view: OfficeView) -> None:
    (first,) = view.update(UPDATE_DESKTOP_NOTIFICATION, "laptop")
    assert view.update(UPDATE_DESKTOP_NOTIFICATION, "laptop") == []
    assert view.fetched(first, ["old"], 2.0) == (True, Later(first, 2.0))
    assert wanted(resumed(view, first)) == [("laptop", Part.DESKTOP)]


def test_a_failure_rests_before_a_notification_may_overtake_its_retry(view: OfficeView) -> None:
    (fetch,) = view.update(UPDATE_DESKTOP_NOTIFICATION, "laptop")
    assert view.failed(fetch, GONE, 0.5) == Later(fetch, 0.5)
    assert view.update(UPDATE_DESKTOP_NOTIFICATION, "laptop") == []
    (again,) = resumed(view, fetch)
    assert view.failed(again, GONE, 0.5) == Later(again, 0.5)
    assert view.resume(again) == Later(again, 2.0)
    assert wanted(view.update(UPDATE_DESKTOP_NOTIFICATION, "laptop")) == [("laptop", Part.DESKTOP)]


def test_a_part_rests_by_itself(view: OfficeView) -> None:
    (fetch,) = view.update(UPDATE_DESKTOP_NOTIFICATION, "laptop")
    view.fetched(fetch, ["w"], 30.0)
    assert wanted(view.update(UPDATE_TOOL_LIST_NOTIFICATION, "laptop")) == [("laptop", Part.TOOLS)]
    (other,) = view.enter("desk")
    view.leave("laptop")
    assert view.resume(fetch) == []
    assert wanted([other]) == [("desk", Part.TOOLS)]


def test_only_a_short_rest_puts_off_that_it_is_settled(view: OfficeView) -> None:
    for pause, settled in ((0.1, False), (5.0, True)):
        (fetch,) = view.update(UPDATE_DESKTOP_NOTIFICATION, "laptop")
        view.fetched(fetch, ["w"], pause)
        steps = [view.settled]
        view.update(UPDATE_DESKTOP_NOTIFICATION, "laptop")
        steps.append(view.settled)
        (again,) = resumed(view, fetch)
        steps.append(view.settled)
        assert steps == [True, settled, False]
        view.fetched(again, ["w"])


def test_what_is_wanted_later_does_not_put_off_an_earlier_moment(view: OfficeView) -> None:
    (fetch,) = view.update(UPDATE_DESKTOP_NOTIFICATION, "laptop")
    moment = view.now()
    view.update(UPDATE_DESKTOP_NOTIFICATION, "laptop")
    assert not view.settled_since(moment)
    view.fetched(fetch, ["w"])
    assert view.settled_since(moment)
    assert not view.settled


def test_what_is_too_large_is_not_retried(view: OfficeView) -> None:
    (fetch,) = view.update(UPDATE_DESKTOP_NOTIFICATION, "laptop")
    assert view.failed(fetch, PayloadTooLargeError("large")) == []


def test_a_costly_computer_that_leaves_and_comes_back_is_fetched_when_its_time_has_come(view: OfficeView) -> None:
    (costly,) = view.enter("desk")
    _, later = view.fetched(costly, ["many"], pause=20)
    assert later == Later(costly, 20)
    for _ in range(3):
        view.leave("desk")
        assert view.enter("desk") == []
    assert tools(view, "desk") is None
    assert view.settled
    assert wanted(resumed(view, costly)) == [("desk", Part.TOOLS)]


def test_a_costly_computer_that_comes_back_late_is_fetched_at_once(view: OfficeView) -> None:
    (costly,) = view.enter("desk")
    view.fetched(costly, ["many"], pause=20)
    view.begin_listing()
    view.end_listing(["laptop"])
    assert resumed(view, costly) == []
    assert wanted(view.enter("desk")) == [("desk", Part.TOOLS)]

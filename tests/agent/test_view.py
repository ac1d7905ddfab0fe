"""What is fetched after which notification, and what is known afterwards."""

from typing import Any

import pytest

from a2c_smcp.agent.view import Fetch, OfficeView, Part, Retry, retry_delay
from a2c_smcp.errors import BadRequestError, ConnectionLostError, NotFoundError, SMCPError
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
    news, (second,) = view.fetched(first, ["old"])
    assert news
    assert view.fetched(second, ["new"]) == (True, [])
    assert view.computers["laptop"].desktop == ["new"]


def test_the_same_value_again_is_no_news(view: OfficeView) -> None:
    (fetch,) = view.update(UPDATE_TOOL_LIST_NOTIFICATION, "laptop")
    assert view.fetched(fetch, ["a tool"]) == (False, [])


def test_a_failure_is_visible_and_retried_and_the_old_value_stays(view: OfficeView) -> None:
    (fetch,) = view.update(UPDATE_TOOL_LIST_NOTIFICATION, "laptop")
    assert view.failed(fetch, GONE) == Retry(fetch, 1.0)
    assert view.computers["laptop"].failures == {Part.TOOLS: GONE}
    assert tools(view, "laptop") == ["a tool"]
    (again,) = view.retry(fetch)
    assert view.failed(again, GONE) == Retry(again, 2.0)
    (again,) = view.retry(again)
    assert view.fetched(again, ["a tool"]) == (True, [])
    assert view.computers["laptop"].failures == {}


def test_a_notification_overtakes_a_retry(view: OfficeView) -> None:
    (fetch,) = view.update(UPDATE_DESKTOP_NOTIFICATION, "laptop")
    view.failed(fetch, GONE)
    (sooner,) = view.update(UPDATE_DESKTOP_NOTIFICATION, "laptop")
    assert view.retry(fetch) == []
    assert view.fetched(sooner, ["w"]) == (True, [])
    assert view.retry(sooner) == []


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
    assert view.retry(fetch) == []


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

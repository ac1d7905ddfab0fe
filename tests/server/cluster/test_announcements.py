"""What is remembered of announcements, directly."""

from a2c_smcp.server.cluster.announcements import RecentNotices
from a2c_smcp.server.effects import Broadcast


def cancel(sender: str) -> Broadcast:
    return Broadcast("o", "notify:tool_call_cancel", {}, sender)


def update(sender: str) -> Broadcast:
    return Broadcast("o", "notify:update_config", {}, sender, collapses=True)


def test_every_cancel_is_kept_and_the_latest_of_what_collapses_until_they_are_old() -> None:
    recent = RecentNotices()
    recent.add(update("c"), "first", 1.0)
    recent.add(update("c"), "second", 2.0)
    recent.add(cancel("a"), "1", 1.0)
    recent.add(cancel("a"), "2", 2.0)
    assert [text for _, text in recent] == ["second", "1", "2"]
    recent.forget_before(1.5)
    assert [text for _, text in recent] == ["second", "2"]
    recent.add(cancel("a"), "2", 3.0)
    recent.forget_before(2.5)
    assert [text for _, text in recent] == ["2"], "it was said again"


def test_one_session_that_cancels_without_end_leaves_room_for_the_others() -> None:
    recent = RecentNotices()
    for number in range(20_000):
        recent.add(cancel("loud"), f"loud {number}", 1.0)
    recent.add(cancel("quiet"), "quiet", 2.0)
    assert len(list(recent)) == 1025
    recent.forget_before(1.5)
    assert [text for _, text in recent] == ["quiet"]
    recent.add(cancel("loud"), "loud again", 3.0)
    assert [text for _, text in recent] == ["quiet", "loud again"]


def test_all_sessions_together_have_a_bound_and_what_is_long_is_not_kept() -> None:
    recent = RecentNotices()
    for number in range(20_000):
        recent.add(cancel(f"a{number % 100}"), str(number), 1.0)
    assert len(list(recent)) == 10_000
    recent.forget_before(2.0)
    recent.add(cancel("a"), "x" * 1025, 2.0)
    recent.add(update("c"), "x" * 1025, 2.0)
    assert [notice for notice, _ in recent] == [update("c")]

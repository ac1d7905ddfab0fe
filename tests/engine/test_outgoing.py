"""What waits for a reader: repeats collapse, never across a coming or going, and a request leaves room for others."""

import pytest

from a2c_smcp.engine.outgoing import Control, Mention, Notice, Parcel, QueueOutcome, SendQueue, packet_of


def update(sender: str = "c", event: str = "notify:update_desktop") -> Notice:
    return Notice(f'2/smcp,["{event}",{{"computer":"{sender}"}}]', sender, event, collapses=True)


def said(sender: str, event: str) -> Notice:
    return Notice(f'2/smcp,["{event}",{{}}]', sender, event, collapses=False)


def taken(queue: SendQueue, *parcels: Parcel) -> list[Parcel]:
    return [parcel for parcel in parcels if queue.add(parcel) is QueueOutcome.TAKEN]


def drained(queue: SendQueue) -> list[Parcel]:
    found = []
    while queue.parcels:
        found.append(queue.pop())
    return found


def test_repeats_of_one_sender_collapse_while_the_first_one_waits() -> None:
    queue = SendQueue(1000)
    first, other, elsewhere = update(), update(event="notify:update_finder"), update("d")
    assert taken(queue, first, update(), other, update(), elsewhere, update("d")) == [first, other, elsewhere]
    assert queue.queued_bytes == sum(len(each.text) for each in (first, other, elsewhere))


def test_nothing_collapses_into_what_its_reader_may_have_seen() -> None:
    queue = SendQueue(1000)
    queue.add(update())
    queue.pop()
    assert queue.add(update()) is QueueOutcome.TAKEN
    assert queue.add(update()) is QueueOutcome.UNNEEDED
    drained(queue)
    assert queue.queued_bytes == 0
    assert queue.add(update()) is QueueOutcome.TAKEN


@pytest.mark.parametrize("event", ["notify:enter_office", "notify:leave_office"])
def test_nothing_collapses_across_the_senders_enter_or_leave(event: str) -> None:
    queue = SendQueue(1000)
    story = [update(), said("c", event), update()]
    assert taken(queue, *story, update()) == story
    queue.pop()  # the first of them says nothing of the second
    assert queue.add(update()) is QueueOutcome.UNNEEDED


def test_what_does_not_collapse_never_collapses() -> None:
    cancels = [said("a", "notify:tool_call_cancel") for _ in range(3)]
    assert taken(SendQueue(1000), *cancels) == cancels


def test_a_reader_falls_behind_once() -> None:
    queue = SendQueue(10)
    assert queue.add("x" * 10) is QueueOutcome.TAKEN
    assert queue.add("x") is QueueOutcome.BEHIND
    assert queue.add("x") is QueueOutcome.UNNEEDED
    assert drained(queue) == ["x" * 10]


def test_text_that_is_not_ascii_counts_three_bytes_a_character() -> None:
    queue = SendQueue(1000)
    queue.add("é" * 10)
    assert queue.queued_bytes == 30
    queue.pop()
    assert (queue.queued_bytes, queue.sent_bytes) == (0, 30)


def test_a_request_leaves_room_for_notifications_and_takes_all_of_an_empty_queue() -> None:
    queue = SendQueue(800)
    assert not queue.add_if_it_fits("x" * 801)
    assert queue.add_if_it_fits("x" * 800)
    queue.pop()
    assert queue.add_if_it_fits("x" * 350)
    assert queue.add_if_it_fits("x" * 350)
    assert not queue.add_if_it_fits("x")
    assert queue.add("x" * 100) is QueueOutcome.TAKEN


def test_a_mention_replaces_the_one_before_and_changes_nobody_elses() -> None:
    queue = SendQueue(800)
    first, second = Mention("1", "a call"), Mention("22", "a call")
    queue.add_mention(first)
    queue.add_mention(Mention("other", "another call"))
    queue.add_mention(second)
    assert queue.queued_bytes == 7
    assert [packet_of(each) for each in drained(queue)] == ["422", "4other"]
    assert first.text == "1"
    queue.add_mention(first)
    assert [packet_of(each) for each in drained(queue)] == ["41"]


def test_a_mention_waits_behind_one_that_its_reader_may_have_seen() -> None:
    queue = SendQueue(1000)
    for text, about in (("1", "a call"), ("22", "another"), ("333", "a call")):
        queue.add_mention(Mention(text, about))
    assert packet_of(queue.pop()) == "4333"
    queue.add_mention(Mention("4", "a call"))
    assert [packet_of(each) for each in drained(queue)] == ["422", "44"]


def test_mentions_leave_the_queue_to_others() -> None:
    queue = SendQueue(800)
    for number in range(5):
        queue.add_mention(Mention("x" * 30, number))
    assert queue.queued_bytes == 90


def test_six_thousand_updates_wait_for_a_slow_reader_as_one() -> None:
    queue = SendQueue(1_000_000)
    for _ in range(6000):
        queue.add(update())
    assert len(drained(queue)) == 1
    queue.add(update())
    assert len(drained(queue)) == 1


def test_a_mention_is_dropped_when_an_eighth_of_the_room_is_taken() -> None:
    queue = SendQueue(800)
    queue.add("x" * 99)
    queue.add_mention(Mention("22", "a call"))
    assert queue.queued_bytes == 99
    queue.add_mention(Mention("1", "a call"))
    assert queue.queued_bytes == 100


def test_controls_are_sent_as_they_are_and_not_counted() -> None:
    queue = SendQueue(10)
    queue.add(Control("2"))
    assert queue.queued_bytes == 0
    assert packet_of(queue.pop()) == "2"

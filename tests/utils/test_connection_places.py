"""Who has a place, who has to go for a new connection, and who is never sent away."""

import pytest

from a2c_smcp.web.connection_places import ConnectionPlaces, put_holder, vouch


class Held:
    """A connection that keeps us waiting, unless told otherwise."""

    def __init__(self, waited_for: bool = True) -> None:
        self.is_waited_for = waited_for
        self.vouched: list[bool] = []

    def vouch(self, known: bool) -> None:
        self.vouched.append(known)


def sent_away(places: ConnectionPlaces) -> list[object]:
    leaving = places.surplus
    for each in leaving:
        places.leave(each)
    return list(leaving)


def test_the_oldest_strangers_that_keep_us_waiting_go_when_there_are_too_many() -> None:
    places = ConnectionPlaces(3)
    asks, oldest, old, new, newer = Held(waited_for=False), Held(), Held(), Held(), Held()
    for each in (asks, oldest, old):
        assert places.come(each)
    assert sent_away(places) == []
    assert places.come(new) and places.come(newer)
    assert sent_away(places) == [oldest, old]
    assert sent_away(places) == []
    assert places.taken == 3


def test_who_is_being_answered_stays_and_in_the_end_nobody_else_comes_in() -> None:
    places = ConnectionPlaces(2)
    busy = [Held(waited_for=False) for _ in range(8)]
    assert [places.come(each) for each in busy] == [True] * 8
    assert sent_away(places) == []
    new = Held()
    assert not places.come(new)
    places.leave(new)  # it was never counted
    places.leave(busy[0])
    assert places.come(new)
    assert sent_away(places) == [new]


def test_who_has_shown_a_key_takes_no_place_of_strangers_and_never_goes() -> None:
    places = ConnectionPlaces(1, known=2)
    pages = [Held(), Held()]
    for page in pages:
        places.come(page)
        places.vouch(page, True)
    strangers = [Held() for _ in range(4)]
    assert all(places.come(each) for each in strangers)
    assert sent_away(places) == strangers[:-1]
    assert places.taken == 3


@pytest.mark.parametrize("again", [False, True])
def test_who_is_not_known_any_more_is_a_stranger_again(again: bool) -> None:
    places = ConnectionPlaces(1)
    page = Held()
    places.come(page)
    places.vouch(page, True)
    places.vouch(page, False)
    if again:
        places.vouch(page, True)
    places.come(Held())
    assert sent_away(places) == ([] if again else [page])


def test_one_more_that_is_known_keeps_the_place_of_a_stranger() -> None:
    places = ConnectionPlaces(1, known=1)
    first, second = Held(), Held()
    for page in (first, second):
        places.come(page)
        places.vouch(page, True)
    places.come(Held())
    assert sent_away(places) == [second]


def test_a_connection_that_has_gone_is_not_counted_whatever_is_said_of_it() -> None:
    places = ConnectionPlaces(1)
    page = Held()
    places.come(page)
    places.vouch(page, True)
    places.leave(page)
    places.vouch(page, True)
    places.vouch(page, False)
    assert places.taken == 0


def test_an_application_vouches_for_a_request_wherever_it_is_served() -> None:
    held = Held()
    scope: dict[str, object] = {}
    vouch(scope, True)  # another web server
    vouch({"extensions": None}, True)
    put_holder(scope, held)
    vouch(scope, True)
    vouch(scope, False)
    assert held.vouched == [True, False]

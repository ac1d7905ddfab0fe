"""Links that work once, the sessions that they open, and which of them has to leave."""

import itertools

import pytest

from a2c_smcp.computer.console.limits import CONSOLE_LIMITS
from a2c_smcp.computer.console.visitors import PageSession, VisitorBook
from a2c_smcp.errors import TooManyRequestsError

_NUMBERS = itertools.count()


def _session() -> PageSession:
    return PageSession(f"page {next(_NUMBERS)}")


def _entered(book: VisitorBook, now: float = 0) -> tuple[str, PageSession]:
    admitted = book.redeem(book.new_token(now), _session, now)
    assert admitted is not None
    return admitted


def test_a_token_opens_one_session_and_is_used_up() -> None:
    book = VisitorBook()
    token = book.new_token(0)
    admitted = book.redeem(token, _session, 1)
    assert admitted is not None
    key, session = admitted
    assert book.find(key) is session and book.sessions == (session,)
    assert book.redeem(token, _session, 1) is None
    assert not any(book.find(wrong) for wrong in (token, "", "\ud800"))


def test_a_token_that_nobody_used_in_time_is_refused_and_used_up() -> None:
    book = VisitorBook()
    token = book.new_token(0)
    assert book.redeem(token, _session, CONSOLE_LIMITS.link_seconds + 1) is None
    assert book.redeem(token, _session, 0) is None


def test_of_too_many_links_the_oldest_stops_working() -> None:
    book = VisitorBook()
    tokens = [book.new_token(0) for _ in range(CONSOLE_LIMITS.links + 1)]
    assert book.redeem(tokens[0], _session, 0) is None
    assert all(book.redeem(token, _session, 0) for token in tokens[1:])


def test_of_too_many_sessions_the_one_that_was_silent_longest_leaves() -> None:
    book = VisitorBook()
    keys = [_entered(book)[0] for _ in range(CONSOLE_LIMITS.sessions)]
    assert book.find(keys[0])
    newest, _ = _entered(book)
    assert [book.find(key) is not None for key in (keys[0], keys[1], newest)] == [True, False, True]


def test_a_page_that_follows_never_leaves_however_silent_it_is() -> None:
    book = VisitorBook()
    key, follows = _entered(book)
    heard, through_another = _entered(book)
    through_another.followed_until = CONSOLE_LIMITS.alive_seconds
    with book.following(follows, lambda: 50.0):
        for _ in range(3 * CONSOLE_LIMITS.sessions):
            _entered(book, 10)
        assert book.find(key) is follows and book.find(heard) is through_another
        assert len(book.sessions) == CONSOLE_LIMITS.sessions
    # Its stream was cut a moment ago: it is about to come back.
    assert follows.is_in_use(60) and not follows.is_in_use(70)


def test_if_every_page_is_in_use_the_next_is_refused_and_its_link_works_later() -> None:
    book = VisitorBook()
    admitted = [_entered(book) for _ in range(CONSOLE_LIMITS.sessions)]
    for _, session in admitted:
        session.followed_until = 100
    token = book.new_token(0)
    with pytest.raises(TooManyRequestsError, match="close one"):
        book.redeem(token, _session, 99)
    with pytest.raises(TooManyRequestsError):
        book.admit(_session(), 99)
    assert [book.find(key) for key, _ in admitted] == [session for _, session in admitted]
    assert book.redeem(token, _session, 101) is not None


def test_a_session_that_was_ended_is_over() -> None:
    book = VisitorBook()
    (key, session), (other, _) = _entered(book), _entered(book)
    book.end(session)
    assert session.is_over and book.find(key) is None and book.find(other) is not None


def test_neither_tokens_nor_keys_are_kept() -> None:
    book = VisitorBook()
    token = book.new_token(0)
    key, _ = _entered(book)
    kept = repr(vars(book))
    assert token not in kept and key not in kept

"""Links that work once, and the sessions that they open."""

from a2c_smcp.computer.console.admission import LINK_SECONDS, MAX_LINKS, MAX_SESSIONS, VisitorBook


def test_a_token_opens_one_session_and_is_used_up() -> None:
    admission = VisitorBook()
    token = admission.new_token(0)
    key = admission.redeem(token, 1)
    assert key is not None and admission.knows(key)
    assert admission.redeem(token, 1) is None
    assert not admission.knows(token) and not admission.knows("") and not admission.knows("\ud800")


def test_a_token_that_nobody_used_in_time_is_refused_and_used_up() -> None:
    admission = VisitorBook()
    token = admission.new_token(0)
    assert admission.redeem(token, LINK_SECONDS + 1) is None
    assert admission.redeem(token, 0) is None


def test_of_too_many_links_the_oldest_stops_working() -> None:
    admission = VisitorBook()
    tokens = [admission.new_token(0) for _ in range(MAX_LINKS + 1)]
    assert admission.redeem(tokens[0], 0) is None
    assert all(admission.redeem(token, 0) for token in tokens[1:])


def test_of_too_many_sessions_the_one_that_was_silent_longest_leaves() -> None:
    admission = VisitorBook()
    keys = [admission.redeem(admission.new_token(0), 0) or "" for _ in range(MAX_SESSIONS)]
    assert admission.knows(keys[0])
    newest = admission.redeem(admission.new_token(0), 0) or ""
    assert [admission.knows(key) for key in (keys[0], keys[1], newest)] == [True, False, True]


def test_neither_tokens_nor_keys_are_kept() -> None:
    admission = VisitorBook()
    token = admission.new_token(0)
    key = admission.redeem(admission.new_token(0), 0) or ""
    kept = repr(vars(admission))
    assert token not in kept and key not in kept

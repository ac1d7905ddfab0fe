"""Both ends of an Engine.IO session, each alone: what is sent when, and what the other end may do."""

from dataclasses import replace

import pytest

from a2c_smcp.engine.bounds import EngineBounds
from a2c_smcp.engine.client_session import ClientSession
from a2c_smcp.engine.errors import IllegalMoveError, PeerError, TooLargeError
from a2c_smcp.engine.events import BadPacket, Greeted, SessionEnded
from a2c_smcp.engine.outgoing import Notice, packet_of
from a2c_smcp.engine.packets import Greeting
from a2c_smcp.engine.server_session import Carrier, ServerSession, ServerUpgrade

BOUNDS = EngineBounds(
    max_message=100, first_messages=50, queued_bytes=1000, ping_interval=10, ping_timeout=5, connect_timeout=7
)
STRICT = replace(BOUNDS, forgives_polls=False, bad_packets=1)
GREETING = Greeting("s", ("websocket",), 10, 5, 100)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def polling(clock: Clock, bounds: EngineBounds = BOUNDS) -> ServerSession:
    return ServerSession("s", bounds, clock, Carrier.POLLING)


def direct(clock: Clock, bounds: EngineBounds = BOUNDS) -> ServerSession:
    return ServerSession("s", bounds, clock, Carrier.WEBSOCKET)


def written(session: ServerSession | ClientSession) -> list[str]:
    return [packet_of(each) for each in session.frames()]


# --- the server


def test_a_greeting_offers_a_websocket_to_whoever_polls(clock: Clock) -> None:
    assert Greeting.read(polling(clock).greeting) == GREETING
    assert Greeting.read(direct(clock).greeting).upgrades == ()


def test_what_is_sent_while_nothing_waits_is_written_at_once_and_in_order(clock: Clock) -> None:
    session = direct(clock)
    assert session.send("1") and session.offer("2")
    session.writable = False
    assert not session.send("3") and session.offer("4") is False
    assert written(session) == []
    session.writable = True
    assert not session.send("5")  # it must not overtake the others
    assert written(session) == ["43", "44", "45"]
    assert session.send("6")
    assert session.queue.sent_bytes == 6


def test_a_poll_waits_until_there_is_something_and_gets_sixteen_at_most(clock: Clock) -> None:
    session = polling(clock)
    assert session.poll() is None and session.answer() is None
    for number in range(20):
        session.send(str(number))
    assert session.answer() == [f"4{number}" for number in range(16)]
    assert session.answer() is None  # nobody waits
    session.poll()
    assert session.answer() == ["416", "417", "418", "419"]


def test_a_second_poll_takes_the_place_of_the_first(clock: Clock) -> None:
    session = polling(clock)
    session.poll()
    assert session.poll() == ["6"]
    session.send("x")
    assert session.answer() == ["4x"]


def test_a_poll_that_was_given_up_takes_nothing(clock: Clock) -> None:
    session = polling(clock)
    session.poll()
    session.lose_poll()
    session.send("x")
    assert session.answer() is None
    session.poll()
    assert session.answer() == ["4x"]


def test_by_the_letter_of_the_protocol_two_polls_or_one_that_is_given_up_end_the_session(clock: Clock) -> None:
    session = polling(clock, STRICT)
    session.poll()
    assert session.poll() == ["1"] and session.ended
    with pytest.raises(PeerError):
        session.poll()
    session = polling(clock, STRICT)
    session.poll()
    session.lose_poll()
    assert session.ended


def test_released_polls_return_at_once(clock: Clock) -> None:
    session = polling(clock)
    session.poll()
    session.release()
    assert session.answer() == ["6"]


def test_the_end_of_a_session_ends_its_poll_and_allows_no_other(clock: Clock) -> None:
    session = polling(clock)
    session.poll()
    assert session.receive("1") == SessionEnded("client disconnect")
    assert session.answer() == ["6"]
    for move in (session.poll, session.check_post):
        with pytest.raises(PeerError):
            move()
    for send in (session.send, session.offer):
        with pytest.raises(IllegalMoveError):
            send("x")


def test_messages_are_small_before_a_key_was_shown_and_large_after_it(clock: Clock) -> None:
    session = direct(clock)
    assert session.receive("4" + "x" * 49) == "4" + "x" * 49
    assert session.receive("4" + "x" * 50) == SessionEnded("message too large", "a message has more than 50 bytes")
    session = polling(clock)
    session.admit()
    assert session.split(b"4" + b"x" * 99) == ["4" + "x" * 99]
    with pytest.raises(TooLargeError):
        session.check_post(101)
    assert session.ended is not None and session.ended.reason == "message too large"


def test_the_tenth_packet_that_does_not_decode_ends_the_session_and_the_ninth_does_not(clock: Clock) -> None:
    session = direct(clock)
    bad = ["x", "", "0{}", "9", "2" + "x" * 100]
    for number in range(9):
        event = session.receive(bad[number % 5])
        assert isinstance(event, BadPacket) and event.number == number + 1
    ended = session.receive_binary()
    assert isinstance(ended, SessionEnded) and ended.reason == "transport error"
    assert isinstance(direct(clock, STRICT).receive("abc"), SessionEnded)


@pytest.mark.parametrize("packet", ["3", "3probe", "2probe", "5", "6"])
def test_what_clients_send_late_does_no_harm(clock: Clock, packet: str) -> None:
    session = direct(clock)
    assert session.receive(packet) is None
    assert (session.bad_packets, session.ended) == (0, None)


@pytest.mark.parametrize("body", [b"\x1e" * 4096, b"4\xff"])
def test_a_payload_that_is_none_is_the_peers_mistake(clock: Clock, body: bytes) -> None:
    session = polling(clock, replace(BOUNDS, first_messages=None, max_message=10_000))
    with pytest.raises(PeerError):
        session.split(body)
    assert session.ended is None
    assert not session.split(b"")
    assert session.split(b"4a\x1e4b") == ["4a", "4b"]


def test_a_ping_that_is_not_answered_ends_the_session(clock: Clock) -> None:
    session = direct(clock)
    while clock.now < 110:  # at 107 it is looked whether it is in a namespace
        assert written(session) == []
        clock.now = session.wake_at
        session.tick(is_in=True)
    assert written(session) == ["2"]
    signs = [session.has_given_a_sign]
    session.receive("3")
    assert [*signs, session.has_given_a_sign] == [False, True]
    session.ask_for_a_sign()
    clock.now += 5
    assert session.tick(is_in=True) == SessionEnded("ping timeout")
    assert session.wake_at == float("inf")


def test_a_session_that_is_in_no_namespace_ends_in_time_and_one_that_is_does_not(clock: Clock) -> None:
    session, member = direct(clock), direct(clock)
    clock.now += 7
    assert member.tick(is_in=True) is None
    ended = session.tick(is_in=False)
    assert ended is not None and "no namespace" in ended.why
    clock.now += 1
    assert member.tick(is_in=False) is None
    member.receive("3")
    clock.now += 6
    assert member.tick(is_in=False) is not None


def test_a_reader_for_which_too_much_waits_has_fallen_behind(clock: Clock) -> None:
    session = direct(clock)
    session.writable = False
    session.send("x" * 900)
    assert session.offer("x" * 100) is None  # it stays connected
    session.send("x" * 101)
    assert session.ended is not None and session.ended.reason == "fell behind"
    assert session.queue.queued_bytes == 0


def test_notices_collapse_only_while_they_wait(clock: Clock) -> None:
    session = direct(clock)
    notice = Notice("u", "c", "update", collapses=True)
    assert session.send(notice) and session.send(notice)
    session.writable = False
    assert not session.send(notice) and not session.send(notice)
    session.writable = True
    assert written(session) == ["4u"]


# --- the move to a websocket


def test_a_session_moves_and_nothing_is_lost_on_the_way(clock: Clock) -> None:
    session = polling(clock)
    upgrade = ServerUpgrade(session)
    session.poll()
    assert session.answer() is None
    assert upgrade.receive("2probe") == "3probe"
    assert session.answer() == ["6"]  # so that the client can go on
    session.send("a")
    session.poll()
    assert session.answer() == ["4a"]  # both transports are alive
    assert session.split(b"4x") == ["4x"]
    session.send("b")
    assert upgrade.receive("5") is None and upgrade.moved
    assert written(session) == ["4b"]
    for move in (session.poll, session.check_post):
        with pytest.raises(PeerError):
            move()
    assert ServerUpgrade(session).over
    session.end("transport close")
    with pytest.raises(PeerError):
        ServerUpgrade(session)


def test_a_poll_that_still_waits_at_the_move_takes_nothing(clock: Clock) -> None:
    session = polling(clock)
    upgrade = ServerUpgrade(session)
    upgrade.receive("2probe")
    session.poll()
    upgrade.receive("5")
    session.send("x")
    assert session.answer() == ["6"]


def test_one_session_moves_to_one_websocket(clock: Clock) -> None:
    session = polling(clock)
    first, second = ServerUpgrade(session), ServerUpgrade(session)
    first.receive("2probe")
    second.receive("2probe")
    first.receive("5")
    assert second.receive("5") is None
    assert first.moved and second.over and not second.moved


@pytest.mark.parametrize("packets", [["5"], ["2"], ["4x"], ["2probe", "4x"], ["2probe", "2probe"]])
def test_a_websocket_that_says_something_else_moves_nobody(clock: Clock, packets: list[str]) -> None:
    session = polling(clock)
    upgrade = ServerUpgrade(session)
    for packet in packets:
        upgrade.receive(packet)
    assert (upgrade.over, upgrade.moved) == (True, False)
    session.poll()
    assert session.answer() is None  # polls wait as before
    with pytest.raises(IllegalMoveError):
        upgrade.receive("5")


# --- the client


def greeted(clock: Clock, way: Carrier, greeting: Greeting = GREETING) -> ClientSession:
    session = ClientSession(clock, way, BOUNDS)
    if way is Carrier.POLLING:
        assert session.receive_payload(greeting.encode().encode()) == [Greeted(greeting)]
    else:
        assert session.receive(greeting.encode()) == Greeted(greeting)
    return session


def test_nothing_is_sent_before_the_greeting(clock: Clock) -> None:
    session = ClientSession(clock, Carrier.WEBSOCKET, BOUNDS)
    assert not session.send("x")
    assert written(session) == []
    session.receive(GREETING.encode())
    assert written(session) == ["4x"]
    assert session.send("y")


@pytest.mark.parametrize(
    "packet",
    [
        "",
        "4x",
        "0",
        "0[]",
        "0{}",
        '0{"sid":"s","pingInterval":"x","pingTimeout":1}',
        '0{"sid":"s","pingInterval":1}',
        "0" + "[" * 10000,
        '0{"sid":"s","pingInterval":-1,"pingTimeout":1}',
    ],
)
def test_what_does_not_greet_is_no_server(clock: Clock, packet: str) -> None:
    session = ClientSession(clock, Carrier.WEBSOCKET, BOUNDS)
    ended = session.receive(packet)
    assert isinstance(ended, SessionEnded) and ended.why


def test_pings_are_answered_and_a_server_without_them_has_gone(clock: Clock) -> None:
    session = greeted(clock, Carrier.WEBSOCKET)
    clock.now += 14
    session.receive("2")
    assert written(session) == ["3"]
    clock.now += 14
    assert session.tick() is None
    clock.now = session.wake_at
    assert session.tick() == SessionEnded("ping timeout")
    with pytest.raises(IllegalMoveError):
        session.send("x")


def test_a_post_has_no_more_packets_and_bytes_than_a_server_takes(clock: Clock) -> None:
    session = greeted(clock, Carrier.POLLING)
    for number in range(20):
        session.send(f"{number:02}")
    body = session.body()
    assert body is not None and body.count("\x1e") == 15 and session.body() is None
    session.posted()
    session.send("x" * 90)
    assert session.body() == "416\x1e417\x1e418\x1e419"
    session.posted()
    assert session.body() == "4" + "x" * 90
    session.posted()
    assert session.body() is None
    with pytest.raises(IllegalMoveError):
        session.posted()


def test_one_poll_at_a_time(clock: Clock) -> None:
    session = greeted(clock, Carrier.POLLING)
    session.polling()
    assert not session.may_poll
    with pytest.raises(IllegalMoveError):
        session.polling()
    assert session.receive_payload(b"4a\x1e2\x1e4b") == ["4a", "4b"]
    assert (session.may_poll, session.body()) == (True, "3")


def test_a_client_moves_when_nothing_is_under_way_any_more(clock: Clock) -> None:
    session = greeted(clock, Carrier.POLLING)
    session.polling()
    session.send("a")
    assert session.body() == "4a"
    assert session.probe() == "2probe"
    session.receive_on_probe("3probe")
    session.send("b")
    assert session.body() is None and (session.may_poll, session.may_upgrade) == (False, False)
    session.posted()
    assert (session.receive_payload(b"6"), session.may_upgrade) == ([], True)
    assert session.upgrade() == "5"
    assert written(session) == ["4b"]
    with pytest.raises(IllegalMoveError):
        session.receive_payload(b"")


def test_a_client_whose_websocket_fails_goes_on_polling(clock: Clock) -> None:
    session = greeted(clock, Carrier.POLLING)
    session.probe()
    with pytest.raises(PeerError):
        session.receive_on_probe("4x")
    session.probe()
    session.receive_on_probe("3probe")
    session.give_up_probe()
    session.send("a")
    assert (session.may_poll, session.body()) == (True, "4a")
    for illegal in (session.upgrade, lambda: session.receive_on_probe("3probe")):
        with pytest.raises(IllegalMoveError):
            illegal()
    with pytest.raises(IllegalMoveError):
        greeted(clock, Carrier.POLLING, replace(GREETING, upgrades=())).probe()


def test_a_client_says_goodbye_once(clock: Clock) -> None:
    session = greeted(clock, Carrier.WEBSOCKET)
    assert session.close() == "1"
    with pytest.raises(IllegalMoveError):
        session.close()
    assert session.receive("4x") is None

"""Both ends and a line between them that is cut at any byte and at any moment.

Whatever happens, each end hears a beginning of what the other one said, in order and once; an ack answers the one
question that it was asked for; and after a cut nothing of the old connection is heard on the new one.
"""

import itertools
from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from a2c_smcp.engine.bounds import EngineBounds
from a2c_smcp.engine.client_session import ClientSession
from a2c_smcp.engine.events import AckCame, Greeted, Knocked, LetIn, Said, SessionEnded
from a2c_smcp.engine.frames import WebSocketReader, masked_frame, text_frame
from a2c_smcp.engine.namespaces import ClientNamespaces, Namespaces, ServerNamespaces
from a2c_smcp.engine.outgoing import packet_of
from a2c_smcp.engine.packets import join_packets
from a2c_smcp.engine.server_session import Carrier, ServerSession, ServerUpgrade

BOUNDS = EngineBounds(max_message=5000, ping_interval=10, ping_timeout=5, connect_timeout=30)
#: Unique in the process, as the ends want it.
NUMBERS = itertools.count(1).__next__


class Line:
    """A websocket: bytes that are on their way, in both directions."""

    def __init__(self) -> None:
        self.to_server = b""
        self.to_client = b""
        self.server_reads = WebSocketReader(BOUNDS.max_message, from_client=True)
        self.client_reads = WebSocketReader(BOUNDS.max_message, from_client=False)


class End:
    """What the test keeps of one end: what it said on this connection, and what it heard."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.heard: list[str] = []
        self.asked: dict[str, str] = {}
        """By the question: its one answer."""
        self.to_answer: list[Said] = []


class TwoEnds(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.words = itertools.count(1)
        self.connect(Carrier.POLLING)

    def connect(self, way: Carrier) -> None:
        clock: Callable[[], float] = lambda: self.now  # noqa: E731
        self.server = ServerSession("s", BOUNDS, clock, way)
        self.client = ClientSession(clock, way, BOUNDS)
        self.at_server = ServerNamespaces({"/smcp"}, BOUNDS, NUMBERS)
        self.at_client = ClientNamespaces(BOUNDS, NUMBERS)
        self.server_end, self.client_end = End(), End()
        self.line: Line | None = Line() if way is Carrier.WEBSOCKET else None
        self.upgrade: ServerUpgrade | None = None
        self.poll_waits = False
        self.answer: bytes | None = None
        self.post: bytes | None = None
        if self.line is not None:
            self.line.to_client += text_frame(self.server.greeting)
        else:
            (greeted,) = self.client.receive_payload(self.server.greeting.encode())
            assert isinstance(greeted, Greeted)
        self.client.send(self.at_client.knock("/smcp"))
        self.flush()

    # --- what the shells do

    def flush(self) -> None:
        """Write what can be written, and answer a poll that can be answered."""
        if self.line is not None:
            for parcel in self.server.frames():
                self.line.to_client += text_frame(packet_of(parcel))
            for parcel in self.client.frames():
                self.line.to_server += masked_frame(packet_of(parcel), b"\x00\xff\x01\x80")
        if self.poll_waits and (packets := self.server.answer()) is not None:
            self.poll_waits = False
            self.answer = join_packets(packets).encode()

    def send(self, session: ServerSession | ClientSession, text: str) -> None:
        if not session.send(text):
            return
        assert self.line is not None
        if isinstance(session, ServerSession):
            self.line.to_client += text_frame("4" + text)
        else:
            self.line.to_server += masked_frame("4" + text, b"\x00\xff\x01\x80")

    def at_the_server(self, packet: str) -> None:
        found = self.server.receive(packet)
        if isinstance(found, str):
            event = self.at_server.receive(found)
            if isinstance(event, Knocked):
                self.send(self.server, self.at_server.let_in("/smcp", {"sid": "1"}))
            else:
                self.hear(self.server_end, self.client_end, event)
        else:
            assert found is None or isinstance(found, SessionEnded)

    def at_the_client(self, found: object) -> None:
        if isinstance(found, str):
            event = self.at_client.receive(found)
            if not isinstance(event, LetIn):
                self.hear(self.client_end, self.server_end, event)
        else:
            assert found is None or isinstance(found, (Greeted, SessionEnded))

    @staticmethod
    def hear(end: End, other: End, event: object) -> None:
        match event:
            case Said(ack_id=None, body=body):
                end.heard.append(body)
            case Said(body=body):
                end.heard.append(body)
                end.to_answer.append(event)
            case AckCame(waiter=question, body=body):
                assert question not in end.asked, "answered twice"
                end.asked[question] = body
                assert body == f"[{question}]"
            case None:
                pass  # the second answer to a question
            case _:
                raise AssertionError(event)
        assert end.heard == other.said[: len(end.heard)]

    # --- what the two ends say

    def word(self, size: int) -> str:
        return f'["{next(self.words)}{"x" * size}"]'

    @rule(by_server=st.booleans(), size=st.sampled_from([0, 1, 120, 300]), asks=st.booleans())
    def say(self, by_server: bool, size: int, asks: bool) -> None:
        session: ServerSession | ClientSession = self.server if by_server else self.client
        spaces: Namespaces = self.at_server if by_server else self.at_client
        end = self.server_end if by_server else self.client_end
        if session.ended is not None or not spaces.is_in("/smcp"):
            return
        body = self.word(size)
        text = spaces.ask("/smcp", body, body)[1] if asks else spaces.say("/smcp", body)
        end.said.append(body)
        self.send(session, text)
        self.flush()

    @rule(by_server=st.booleans(), again=st.booleans())
    def reply(self, by_server: bool, again: bool) -> None:
        session: ServerSession | ClientSession = self.server if by_server else self.client
        spaces: Namespaces = self.at_server if by_server else self.at_client
        end = self.server_end if by_server else self.client_end
        if session.ended is not None or not end.to_answer:
            return
        event = end.to_answer[0] if again else end.to_answer.pop(0)
        assert event.ack_id is not None
        self.send(session, spaces.answer("/smcp", event.ack_id, f"[{event.body}]"))
        self.flush()

    @rule(seconds=st.sampled_from([1.0, 4.0, 10.0]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.server.tick(is_in=bool(self.at_server.members))
        self.client.tick()
        self.flush()

    @rule(full=st.booleans())
    def fill_or_empty_the_websocket(self, full: bool) -> None:
        self.server.writable = not full
        self.flush()

    # --- the line

    @precondition(lambda self: self.line is not None)
    @rule(to_server=st.booleans(), size=st.integers(1, 400))
    def carry(self, to_server: bool, size: int) -> None:
        """Some bytes arrive, wherever that cuts a frame."""
        assert self.line is not None
        if to_server:
            self.line.server_reads.feed(self.line.to_server[:size])
            self.line.to_server = self.line.to_server[size:]
            while isinstance(text := self.line.server_reads.next_arrived(), str):
                if self.upgrade is None or self.upgrade.moved:
                    self.at_the_server(text)
                elif (reply := self.upgrade.receive(text)) is not None:
                    self.line.to_client += text_frame(reply)
                    self.flush()
        else:
            self.line.client_reads.feed(self.line.to_client[:size])
            self.line.to_client = self.line.to_client[size:]
            while isinstance(text := self.line.client_reads.next_arrived(), str):
                if self.client.way is Carrier.POLLING:
                    self.client.receive_on_probe(text)
                else:
                    self.at_the_client(self.client.receive(text))
        assert text is None
        self.flush()

    @precondition(lambda self: self.client.way is Carrier.POLLING)
    @rule(step=st.sampled_from(["poll", "answer", "post", "posted", "upgrade"]))
    def poll(self, step: str) -> None:
        """One step of a client that polls."""
        if step == "poll" and self.client.may_poll and self.server.ended is None and self.server.way is Carrier.POLLING:
            self.client.polling()
            assert self.server.poll() is None
            self.poll_waits = True
        elif step == "answer" and self.answer is not None:
            body, self.answer = self.answer, None
            for found in self.client.receive_payload(body):
                self.at_the_client(found)
        elif step == "post" and self.post is None and (text := self.client.body()) is not None:
            self.post = text.encode()
        elif step == "posted" and self.post is not None and self.server.ended is None:
            body, self.post = self.post, None
            for packet in self.server.split(body):
                self.at_the_server(packet)
            self.client.posted()
        elif step == "upgrade" and self.client.may_upgrade:
            assert self.line is not None
            self.line.to_server += masked_frame(self.client.upgrade(), b"\x00\xff\x01\x80")
        self.flush()

    @precondition(lambda self: self.client.way is Carrier.POLLING and self.line is None)
    @rule()
    def probe(self) -> None:
        if self.client.ended is None and self.server.ended is None:
            self.line = Line()
            self.upgrade = ServerUpgrade(self.server)
            self.line.to_server += masked_frame(self.client.probe(), b"\x00\xff\x01\x80")

    @precondition(lambda self: self.line is not None)
    @rule(way=st.sampled_from(Carrier))
    def cut(self, way: Carrier) -> None:
        """The websocket breaks, with all that was on its way. Before the move is over, polling goes on."""
        assert self.line is not None
        if self.client.way is Carrier.POLLING and self.upgrade is not None and not self.upgrade.moved:
            self.line = None
            self.upgrade.give_up()
            self.upgrade = None
            self.client.give_up_probe()
            self.flush()
            return
        self.server.end("transport close")
        self.client.lose()
        self.connect(way)

    # --- what always holds

    @invariant()
    def nothing_is_counted_that_does_not_wait(self) -> None:
        for queue in (self.server.queue, self.client.queue):
            assert queue.queued_bytes >= 0
            assert queue.queued_bytes == 0 or queue.parcels

    @invariant()
    def whoever_has_gone_is_not_waited_for(self) -> None:
        for session in (self.server, self.client):
            assert session.ended is None or (session.wake_at == float("inf") and not session.queue.parcels)

    def teardown(self) -> None:
        """If the line holds, everything arrives."""
        self.server.writable = True
        for _ in range(200):
            self.flush()
            if self.line is not None:
                self.carry(True, 1 << 20)
                self.carry(False, 1 << 20)
            if self.client.way is Carrier.POLLING:
                for step in ("poll", "answer", "post", "posted", "upgrade"):
                    self.poll(step)
        if self.server.ended is None and self.client.ended is None:
            assert self.client_end.heard == self.server_end.said
            assert self.server_end.heard == self.client_end.said


TwoEnds.TestCase.settings = settings(deadline=None, derandomize=True, max_examples=150, stateful_step_count=60)
TestTwoEnds = TwoEnds.TestCase

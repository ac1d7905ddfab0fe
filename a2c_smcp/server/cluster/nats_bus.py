"""The bus over NATS: one subscription a process, and frames from process to process. Knows nothing of sockets.

A process takes frames at `<prefix>.p.<process>.m`. A frame has the reply subject
`<prefix>.p.<sender>.r.<process>.<number>`. It names the sender, and NATS writes to it when nobody took the frame.

- A process acts on frames of another one in the order in which they were sent. It waits until its own copy of the
  membership has seen what the sender's copy had seen. So a process hears that a computer entered before it hears
  anything else about that computer.
- An `AskFrame` has an instant after which it must not be started. The instant is by the receiver's clock, which the
  sender has learnt with a ping. It is never later than the moment at which the sender gives up. So nothing is started
  for a caller that was told of a failure, however long a process was stopped or a frame was on its way.
- A process that waits for another one pings it every second, and names the requests that it waits for. So it learns
  that an answer was lost. A process that works for another one, and hears nothing from it, stops that work.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from nats.errors import Error as NatsError

from a2c_smcp.errors import InternalError, TooManyRequestsError
from a2c_smcp.server.cluster import tuning
from a2c_smcp.server.cluster.announcements import Announcements
from a2c_smcp.server.cluster.bus import BusInbox, BusObserver, RemoteRequest
from a2c_smcp.server.cluster.bus_frames import (
    AgainFrame,
    AskFrame,
    BusFrame,
    ChunkFrame,
    CreditFrame,
    NoticeFrame,
    OrderedFrame,
    OrderFrame,
    PingFrame,
    PongFrame,
    ReplyFrame,
    ReportFrame,
    WithdrawFrame,
    decode,
    kind_of,
    to_text,
)
from a2c_smcp.server.cluster.clock import now as elapsed
from a2c_smcp.server.cluster.connection import NatsConnection
from a2c_smcp.server.cluster.incoming import IncomingRequests
from a2c_smcp.server.cluster.intake import Intake
from a2c_smcp.server.cluster.line import ProcessLine, Subjects
from a2c_smcp.server.cluster.orders import Orders
from a2c_smcp.server.cluster.other_process import BusMembership, Lane, OtherProcess
from a2c_smcp.server.cluster.outgoing import OutgoingRequests
from a2c_smcp.server.cluster.post import Post
from a2c_smcp.server.cluster.seal import DroppedFrameError, FrameSeal, OpenedFrame
from a2c_smcp.server.effects import Broadcast
from a2c_smcp.server.envelopes import Answer

__all__ = ["NatsBus"]

logger = logging.getLogger(__name__)

#: What NATS says when nobody takes a message.
_NO_RESPONDERS: Final = "503"
_DEAF: Final = "NATS does not deliver what other processes send: allow its user the subjects in docs/scaling.md"


class NatsBus:
    """The way to other processes. Use `async with NatsBus(...)` inside the `async with` of the connection."""

    def __init__(
        self,
        connection: NatsConnection,
        membership: BusMembership,
        prefix: str,
        observer: BusObserver,
        seal: FrameSeal | None = None,
    ) -> None:
        self._connection = connection
        self._membership = membership
        self._subjects = Subjects(prefix)
        self._observer = observer
        self._seal = seal or FrameSeal()
        self._post = Post(connection.client)
        self._process = ""
        self._subscription: Any = None
        self._own_probe = ""
        self._heard_itself = asyncio.Event()
        self._inbox: BusInbox
        self._numbers = itertools.count(1)
        self._peers: dict[str, OtherProcess] = {}
        self._intake = Intake(self._seal, membership, observer, self._peers, self._admit, self._start)
        self._asked: dict[RemoteRequest, OtherProcess] = {}
        self._announcements = Announcements(membership, lambda process: self._peer(process).line)
        self.orders = Orders(lambda process: self._peer(process).line, self._start)
        self._reconnects = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "NatsBus":
        self._start(self._post.run())
        self._start(self._tick())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._post.drained(tuning.TIMES.flush)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def serve(self, inbox: BusInbox) -> None:
        """Hand what arrives to this inbox. Called once, before anything arrives."""
        self._inbox = inbox

    async def began(self, process: str) -> None:
        """This process has this name from now on."""
        self.ended(self._process)
        client = self._connection.client
        try:
            if self._subscription is not None:
                with suppress(NatsError):
                    await self._subscription.unsubscribe()
            # No limits here: NATS has limits of its own, and what it delivers is taken at once.
            self._subscription = await client.subscribe(
                self._subjects.all_of(process), cb=self._take, pending_msgs_limit=0, pending_bytes_limit=0
            )
            # NATS refuses a subscription without an answer. If this comes back, other processes can reach this one.
            self._own_probe, self._heard_itself = self._subjects.probe_of(process), asyncio.Event()
            await client.publish(self._own_probe, b"")
            async with asyncio.timeout(tuning.TIMES.nats_answer):
                await self._heard_itself.wait()
        except TimeoutError:
            raise InternalError(_DEAF) from None
        except (NatsError, OSError) as error:
            raise InternalError(f"NATS did not take the subscription of this process: {error}") from None
        self._process = process

    def ended(self, process: str) -> None:
        """This process has lost its name. Everything that it asked of others fails."""
        self._process = ""
        self._intake.clear()
        peers = list(self._peers.values())
        self._peers.clear()
        for peer in peers:
            peer.outgoing.give_up(InternalError("this server process was cut off from NATS for too long"))
            peer.incoming.withdraw_all()
            peer.lane.clear()
            peer.line.count_as_gone()

    # --- what the shell asks

    async def ask(self, remote: RemoteRequest, answer: "asyncio.Future[Answer | None]") -> None:
        """Send a request. It is sent when this returns, and `answer` gets its result. Raises a coded error when it
        cannot be sent. Call `forget` afterwards in any case.
        """
        await self._connection.within_reach()
        self._membership.check()
        self._check_unsent()
        peer = self._asked[remote] = self._peer(remote.target.process)
        with self._announcements.held_for(remote.caller, self._process):
            await peer.outgoing.ask(remote, answer)

    def forget(self, remote: RemoteRequest) -> None:
        """Nobody waits for the answer any more. A request without an answer is withdrawn."""
        if (peer := self._asked.pop(remote, None)) is not None:
            peer.outgoing.forget(remote)

    def publish(self, notice: Broadcast, text: str) -> None:
        """Tell the other processes that hold members of the office; `text` is the packet."""
        self._announcements.publish(notice, text, self._process, self._check_unsent)

    def _check_unsent(self) -> None:
        if self._post.unsent > tuning.BOUNDS.unsent_bytes:
            raise TooManyRequestsError("too much waits to be sent to other server processes; try again later")

    # --- what arrives

    async def _take(self, message: Any) -> None:
        """Called for one message after another. Nothing here waits, so no message holds up another."""
        if message.subject == self._own_probe:
            self._heard_itself.set()
            return
        try:
            sender, receiver, number = self._subjects.read_reply(message.reply or message.subject)
            if message.headers and message.headers.get("Status") == _NO_RESPONDERS:
                if sender == self._process:
                    self._refused(receiver, number)
            elif receiver == self._process:
                self._intake.take(sender, receiver, message.data)
        except Exception as error:  # a boundary: one message must not end the subscription
            self._intake.note_failure(error)

    def _admit(self, sender: str, opened: OpenedFrame) -> None:
        peer, now = self._peer(sender), elapsed()
        frame, text = decode(opened.frame)
        # A pong that names a moment of this process was sent after that moment.
        is_fresh = isinstance(frame, PongFrame) and 0 <= now - frame.sent <= tuning.TIMES.ping
        try:
            peer.arrivals.take(opened, now, is_fresh=is_fresh)
        except DroppedFrameError as error:
            if error.reason == "late":
                peer.line.send(PingFrame(now))  # its machine may have slept; its pong will show that
            raise
        self._take_frame(peer, frame, text)

    def _take_frame(self, peer: OtherProcess, frame: BusFrame, text: bytes) -> None:
        self._observer.heard_across(kind_of(frame))
        peer.quiet = 0
        refused = peer.line.health.is_refusing()
        peer.line.health.heard()
        if refused:
            peer.outgoing.send_again()
        match frame:
            case ReplyFrame():
                if len(text) < frame.size:
                    peer.line.send(CreditFrame())
                peer.outgoing.take_reply(frame, text)
            case AskFrame():
                if len(text) < frame.size:
                    peer.line.send(CreditFrame())
                if (begin := peer.incoming.take(frame, text)) is not None:
                    peer.lane.put(frame.revision, begin)
            case ChunkFrame():
                peer.line.send(CreditFrame())
                if not frame.of_ask:
                    peer.outgoing.take_chunk(frame, text)
                elif (ready := peer.incoming.take_chunk(frame, text)) is not None:
                    peer.lane.put(*ready)
            case NoticeFrame():
                # A request begins in a task. An announcement after it must not overtake that task.
                loop = asyncio.get_running_loop()
                peer.lane.put(frame.revision, lambda: loop.call_soon(self._hear, frame, text))
            case WithdrawFrame():
                peer.lane.put(0, lambda: peer.incoming.withdraw(frame.id))
            case ReportFrame():
                peer.outgoing.take_report(frame, text)
            case CreditFrame():
                peer.line.window.give()
            case PingFrame():
                peer.line.send(PongFrame(frame.sent, elapsed(), peer.incoming.unknown(frame.waiting)))
            case PongFrame():
                peer.outgoing.take_pong(frame)
            case AgainFrame():
                self._after_cut(peer)
            case OrderFrame():
                self.orders.take(peer.line, frame, text)
            case OrderedFrame():
                self.orders.take_answer(peer.line.process, frame, text)

    def _hear(self, frame: NoticeFrame, text: bytes) -> None:
        notice = Broadcast(frame.office, frame.event, {}, frame.sender, collapses=frame.collapses)
        self._inbox.hear(notice, to_text(text))

    # --- who is there

    def _peer(self, process: str) -> OtherProcess:
        if (peer := self._peers.get(process)) is None:
            if not self._process:
                raise InternalError("this server process is cut off from NATS")
            line = ProcessLine(self._process, process, self._subjects, self._post, self._seal, self._observer)
            revision = lambda: self._membership.revision  # noqa: E731
            outgoing = OutgoingRequests(line, self._numbers.__next__, revision, self._membership.check, self._observer)
            incoming = IncomingRequests(line, self._inbox, self._membership.check, self._process)
            lane = Lane(process, self._membership, self._start)
            peer = self._peers[process] = OtherProcess(line, outgoing, incoming, self._seal.arrivals(), lane)
        return peer

    def _refused(self, process: str, number: int) -> None:
        """NATS says that nobody took what we sent."""
        if (peer := self._peers.get(process)) is None:
            return
        gone = peer.line.health.refused(elapsed())
        peer.outgoing.take_refusal(number)
        if gone:
            self._give_up(peer)
        elif not peer.probing:
            peer.probing = True
            asyncio.get_running_loop().call_later(tuning.TIMES.refusals_apart, self._probe, peer)

    def _probe(self, peer: OtherProcess) -> None:
        peer.probing = False
        if peer.line.health.is_refusing() and peer.outgoing:
            peer.outgoing.send_again()
            peer.outgoing.ping()

    def _give_up(self, peer: OtherProcess) -> None:
        if peer.outgoing:
            logger.warning("server process %s is out of reach: %d requests fail", peer.line.process, len(peer.outgoing))
        peer.outgoing.give_up(None if self._connection.client.is_connected else InternalError("NATS is out of reach"))
        peer.line.count_as_gone()

    async def _tick(self) -> None:
        due = elapsed() + tuning.TIMES.ping
        while True:
            await asyncio.sleep(max(0.0, due - elapsed()))
            late = elapsed() - due
            due = elapsed() + tuning.TIMES.ping
            looks: list[Callable[[], None]] = [partial(self._look_at, peer, late) for peer in self._peers.values()]
            for look in (*looks, self._look_back):
                try:
                    look()
                except Exception:
                    # A fault with one process must not end the watch over the others.
                    logger.exception("failed to look after other server processes")

    def _look_at(self, peer: OtherProcess, late: float) -> None:
        now = elapsed()
        if late > tuning.TIMES.ping / 2:
            peer.line.health.slept(late)  # this process was held up, and could hear nothing
        alive = peer.line.process in self._membership.processes
        # A process that writes and never appears in the membership is not one of ours.
        ended = not alive and (peer.was_seen or peer.quiet > tuning.TIMES.quiet)
        peer.was_seen = peer.was_seen or alive
        peer.quiet += 1
        if peer.outgoing:
            if ended or peer.line.health.is_silent(now):
                self._give_up(peer)
            else:
                peer.outgoing.ping()
        elif alive and peer.arrivals.want_pong(now):
            peer.line.send(PingFrame(now))
        if peer.incoming and (ended or peer.quiet > tuning.TIMES.quiet):
            logger.warning(
                "nothing is heard of server process %s: %d of its requests are cancelled",
                peer.line.process,
                len(peer.incoming),
            )
            peer.incoming.withdraw_all()
            peer.line.window.close()
        if ended and not peer.outgoing and not peer.incoming:
            del self._peers[peer.line.process]
            if peer.arrivals.are_signed:
                self._intake.close_to(peer.line.process)

    def _look_back(self) -> None:
        """Forget what is old. After a cut, repeat the announcements, and ask the other processes to do the same."""
        self._intake.expire(elapsed())
        self._announcements.forget_old()
        reconnects = self._connection.client.stats["reconnects"]
        if reconnects != self._reconnects and self._connection.client.is_connected and self._process:
            self._reconnects = reconnects
            for process in self._membership.processes:
                if process != self._process:
                    peer = self._peer(process)
                    peer.line.send(AgainFrame())
                    self._after_cut(peer)

    def _after_cut(self, peer: OtherProcess) -> None:
        """Messages between this process and another one may be lost. End what depends on them, and announce again."""
        peer.line.cut()
        peer.outgoing.cut()
        peer.incoming.cut()
        self._announcements.repeat_to(peer.line)

    def _start(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

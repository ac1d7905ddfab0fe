"""The bus over NATS: one subscription a process, and frames from process to process. Knows nothing of sockets.

A process takes frames at `<prefix>.p.<process>.m`. A frame has the reply subject
`<prefix>.p.<sender>.r.<process>.<number>`: it names the sender, and NATS itself says there when nobody took the frame.

- A process acts on what another one sends in the order in which it was sent, and only when its own copy of the
  membership has seen what the sender's had: nothing is heard of a computer before its enter.
- An `AskFrame` has the instant after which it must not be started, by the receiver's own clock, which the sender has
  learnt with a ping. It is never later than the moment at which the sender gives up. So nothing is started for a caller
  that was told of a failure, however long a process was stopped or a frame was on its way.
- A process that waits for another pings it every second, and says what it waits for: so it finds out that an answer was
  lost. One that works for another, and hears nothing of it, stops that work.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from nats.errors import Error as NatsError

from a2c_smcp.errors import InternalError, PayloadTooLargeError, SMCPError, TooManyRequestsError
from a2c_smcp.server.cluster import tuning
from a2c_smcp.server.cluster.bus import BusInbox, BusObserver, RemoteRequest
from a2c_smcp.server.cluster.bus_frames import (
    MOST_WHOLE,
    AgainFrame,
    AskFrame,
    BusFrame,
    ChunkFrame,
    CreditFrame,
    NoticeFrame,
    PingFrame,
    PongFrame,
    ReplyFrame,
    ReportFrame,
    WithdrawFrame,
    decode,
    from_text,
    kind_of,
    to_text,
)
from a2c_smcp.server.cluster.clock import now as elapsed
from a2c_smcp.server.cluster.incoming import IncomingRequests
from a2c_smcp.server.cluster.intake import Intake
from a2c_smcp.server.cluster.line import REMEMBERED_FOR_CUTS, ProcessLine, Subjects
from a2c_smcp.server.cluster.other_process import BusConnection, BusMembership, OtherProcess
from a2c_smcp.server.cluster.outgoing import OutgoingRequests
from a2c_smcp.server.cluster.peers import PING_SECONDS
from a2c_smcp.server.cluster.post import Post
from a2c_smcp.server.cluster.recent_notices import RecentNotices
from a2c_smcp.server.cluster.seal import DroppedFrameError, FrameSeal, OpenedFrame
from a2c_smcp.server.effects import Broadcast
from a2c_smcp.server.envelopes import Answer

__all__ = ["NatsBus"]

logger = logging.getLogger(__name__)

#: What NATS says when nobody takes a message.
_NO_RESPONDERS: Final = "503"


@dataclass(slots=True)
class _Sender:
    """A session whose requests are being sent: how many, and what it announced meanwhile."""

    requests: int = 0
    held: list[tuple[Broadcast, str]] = field(default_factory=list)
    size: int = 0


class NatsBus:
    """`async with NatsBus(...)`, inside the connection's own `async with`. A `Bus`."""

    def __init__(
        self,
        connection: BusConnection,
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
        self._inbox: BusInbox
        self._numbers = itertools.count(1)
        self._peers: dict[str, OtherProcess] = {}
        self._intake = Intake(self._seal, membership, observer, self._peers, self._admit, self._start)
        self._asked: dict[RemoteRequest, OtherProcess] = {}
        self._senders: dict[str, _Sender] = {}
        self._recent = RecentNotices()
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
        self._inbox = inbox

    async def began(self, process: str) -> None:
        self.ended(self._process)
        client = self._connection.client
        try:
            if self._subscription is not None:
                with suppress(NatsError):
                    await self._subscription.unsubscribe()
            # No limits: what is in the queue has left NATS, which has limits of its own, and is taken at once.
            self._subscription = await client.subscribe(
                self._subjects.all_of(process), cb=self._take, pending_msgs_limit=0, pending_bytes_limit=0
            )
            await client.flush()  # who learns of this process from now on reaches it
        except (NatsError, OSError) as error:
            raise InternalError(f"NATS did not take the subscription of this process: {error}") from None
        self._process = process

    def ended(self, process: str) -> None:
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
        self._connection.check()
        self._membership.check()
        self._check_unsent()
        peer = self._asked[remote] = self._peer(remote.target.process)
        with self._sent_in_order(remote.caller):
            await peer.outgoing.ask(remote, answer)

    def forget(self, remote: RemoteRequest) -> None:
        if (peer := self._asked.pop(remote, None)) is not None:
            peer.outgoing.forget(remote)

    def publish(self, notice: Broadcast, text: str) -> None:
        if (sender := self._senders.get(notice.skip_sid)) is not None:
            if sender.size > tuning.BOUNDS.held_characters:
                raise TooManyRequestsError("too many announcements wait for a call of the same session to be sent")
            sender.size += len(text)
            sender.held.append((notice, text))
            return
        others = self._others(notice)
        if others:
            self._check_unsent()
        self._spread(notice, text, others)

    def _others(self, notice: Broadcast) -> list[str]:
        return [process for process in self._membership.holders(notice.office_id) if process != self._process]

    def _spread(self, notice: Broadcast, text: str, others: Iterable[str]) -> None:
        self._recent.add(notice, text, elapsed())
        for process in others:
            self._announce(self._peer(process), notice, text)

    def _check_unsent(self) -> None:
        if self._post.unsent > tuning.BOUNDS.unsent_bytes:
            raise TooManyRequestsError("too much waits to be sent to other server processes; try again later")

    @contextmanager
    def _sent_in_order(self, caller: str) -> Iterator[None]:
        """What a session announces while a request of its own is being sent goes after it: a cancel must not overtake
        the call.
        """
        sender = self._senders.setdefault(caller, _Sender())
        sender.requests += 1
        try:
            yield
        finally:
            sender.requests -= 1
            if not sender.requests:
                del self._senders[caller]
                for notice, text in sender.held:
                    with suppress(SMCPError):  # its sender has its answer
                        self._spread(notice, text, self._others(notice))

    def _announce(self, peer: OtherProcess, notice: Broadcast, text: str) -> None:
        if len(text) > MOST_WHOLE // 4:
            raise PayloadTooLargeError(f"{notice.event} is too large for other server processes")
        frame = NoticeFrame(
            self._membership.revision, notice.office_id, notice.event, notice.skip_sid, notice.collapses
        )
        peer.line.send(frame, from_text(text))

    # --- what arrives

    async def _take(self, message: Any) -> None:
        """Called for one message after another. Nothing here waits, so none holds up another."""
        try:
            sender, receiver, number = self._subjects.read_reply(message.reply or message.subject)
            if message.headers and message.headers.get("Status") == _NO_RESPONDERS:
                if sender == self._process:
                    self._refused(receiver, number)
            elif receiver == self._process:
                self._intake.take(sender, receiver, message.data)
        except Exception as error:  # of whatever kind: this must not end for one message
            self._intake.note_failure(error)

    def _admit(self, sender: str, opened: OpenedFrame) -> None:
        peer, now = self._peer(sender), elapsed()
        frame, text = decode(opened.frame)
        # A pong that names this moment was sent after it.
        is_fresh = isinstance(frame, PongFrame) and 0 <= now - frame.sent <= PING_SECONDS
        try:
            peer.arrivals.take(opened, now, is_fresh=is_fresh)
        except DroppedFrameError as error:
            if error.reason == "late":
                peer.line.send(PingFrame(now))  # its machine may have stood still: then its pong says so
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
                    self._in_order(peer, frame.revision, begin)
            case ChunkFrame():
                peer.line.send(CreditFrame())
                if not frame.of_ask:
                    peer.outgoing.take_chunk(frame, text)
                elif (ready := peer.incoming.take_chunk(frame, text)) is not None:
                    self._in_order(peer, *ready)
            case NoticeFrame():
                # A request begins with a task; what comes after it must not overtake that.
                loop = asyncio.get_running_loop()
                self._in_order(peer, frame.revision, lambda: loop.call_soon(self._hear, frame, text))
            case WithdrawFrame():
                self._in_order(peer, 0, lambda: peer.incoming.withdraw(frame.id))
            case ReportFrame():
                peer.outgoing.take_report(frame.id, text)
            case CreditFrame():
                peer.line.window.give()
            case PingFrame():
                peer.line.send(PongFrame(frame.sent, elapsed(), peer.incoming.unknown(frame.waiting)))
            case PongFrame():
                peer.outgoing.take_pong(frame)
            case AgainFrame():
                self._after_cut(peer)

    def _hear(self, frame: NoticeFrame, text: bytes) -> None:
        notice = Broadcast(frame.office, frame.event, {}, frame.sender, collapses=frame.collapses)
        self._inbox.hear(notice, to_text(text))

    # What one process sends is acted on in order.

    def _in_order(self, peer: OtherProcess, revision: int, act: Callable[[], object]) -> None:
        waits = bool(peer.lane)
        peer.lane.append((revision, act))
        if not waits:
            if revision <= self._membership.revision:
                self._act(peer)
            else:
                self._start(self._run_lane(peer))

    async def _run_lane(self, peer: OtherProcess) -> None:
        while peer.lane:
            acts = 1
            try:
                await self._membership.reached(peer.lane[0][0])
            except SMCPError as error:
                # A request has become too late by now, and says so; an announcement late is better than none. What
                # came after it does not begin to wait anew.
                logger.warning("acting on what another server process sent without having seen all it has: %s", error)
                acts = len(peer.lane)
            for _ in range(min(acts, len(peer.lane))):
                self._act(peer)

    def _act(self, peer: OtherProcess) -> None:
        """Do what is first. A process that has lost its lease is not listened to: its members may be elsewhere."""
        _, act = peer.lane.popleft()
        if peer.line.process in self._membership.processes:
            act()

    # --- who is there

    def _peer(self, process: str) -> OtherProcess:
        if (peer := self._peers.get(process)) is None:
            if not self._process:
                raise InternalError("this server process is cut off from NATS")
            line = ProcessLine(self._process, process, self._subjects, self._post, self._seal, self._observer)
            revision = lambda: self._membership.revision  # noqa: E731
            outgoing = OutgoingRequests(line, self._numbers.__next__, revision, self._membership.check, self._observer)
            incoming = IncomingRequests(line, self._inbox, self._membership.check, self._process)
            peer = self._peers[process] = OtherProcess(line, outgoing, incoming, self._seal.arrivals())
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
        due = elapsed() + PING_SECONDS
        while True:
            await asyncio.sleep(max(0.0, due - elapsed()))
            late = elapsed() - due
            due = elapsed() + PING_SECONDS
            looks: list[Callable[[], None]] = [partial(self._look_at, peer, late) for peer in self._peers.values()]
            for look in (*looks, self._look_back):
                try:
                    look()
                except Exception:
                    # A fault with one process must not end the watch over the others.
                    logger.exception("failed to look after other server processes")

    def _look_at(self, peer: OtherProcess, late: float) -> None:
        now = elapsed()
        if late > PING_SECONDS / 2:
            peer.line.health.slept(late)  # it was us who heard nothing
        alive = peer.line.process in self._membership.processes
        # One that writes and is never seen in the membership is none of ours.
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
        """Forget what nobody will want again; after a cut, have everything repeated, both ways."""
        self._intake.expire(elapsed())
        self._recent.forget_before(elapsed() - REMEMBERED_FOR_CUTS)
        reconnects = self._connection.client.stats["reconnects"]
        if reconnects != self._reconnects and self._connection.client.is_connected and self._process:
            self._reconnects = reconnects
            for process in self._membership.processes:
                if process != self._process:
                    peer = self._peer(process)
                    peer.line.send(AgainFrame())
                    self._after_cut(peer)

    def _after_cut(self, peer: OtherProcess) -> None:
        """What was on its way between the two may be lost."""
        peer.line.cut()
        peer.outgoing.cut()
        peer.incoming.cut()
        for notice, text in self._recent:
            if peer.line.process in self._membership.holders(notice.office_id):
                self._announce(peer, notice, text)

    def _start(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

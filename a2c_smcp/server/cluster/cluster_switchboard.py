"""The switchboard of a process that shares its offices with others: it asks and tells them, and works for them."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from a2c_smcp.errors import ForbiddenError, InternalError, NotInRoomError, SMCPError
from a2c_smcp.server import offices
from a2c_smcp.server.boundary import log_refusal, notice_of
from a2c_smcp.server.cluster.bus import RemoteRequest
from a2c_smcp.server.cluster.outgoing import fail
from a2c_smcp.server.effects import Broadcast
from a2c_smcp.server.envelopes import Answer, Message
from a2c_smcp.server.offices import Member, MemberChange
from a2c_smcp.server.own_fields import without_foreign_stamp
from a2c_smcp.server.port import LOST_PLACE, Notice
from a2c_smcp.server.relay_spans import sent_across, taken_across
from a2c_smcp.server.relays import PassOn, RelayAsk, TellEnd
from a2c_smcp.server.switchboard import Switchboard, do_later
from a2c_smcp.smcp import TOOL_CALL_EVENT

if TYPE_CHECKING:
    from a2c_smcp.server.cluster.nats_bus import NatsBus
    from a2c_smcp.server.cluster.registry import ClusterRegistry

__all__ = ["ClusterSwitchboard"]

#: Seconds for which this process waits longer than the process that it asks. So the answer of that process comes first.
_GRACE: Final = 1.0


class ClusterSwitchboard(Switchboard):
    """A `Switchboard` that reaches the computers of other processes over the bus.

    It is the `RegistryListener` of its registry and the `BusInbox` of its bus.
    """

    registry: "ClusterRegistry"

    def __init__(self, auth: Any, *, registry: "ClusterRegistry", bus: "NatsBus", **options: Any) -> None:
        super().__init__(auth, registry=registry, **options)
        registry.listen(self)
        self._bus = bus
        bus.serve(self)

    # --- what this process asks of others, and tells them

    async def _announce(self, notice: Broadcast) -> dict[str, Any]:
        # In a task, as the requests to other processes: it must not overtake a call that its agent has sent before.
        self._bus.publish(notice, self._tell(notice))
        return {}

    def _put_through(
        self, caller: str, target: Member, message: Message, end: TellEnd, pass_on: PassOn | None = None
    ) -> RelayAsk:
        if target.process == self.registry.process:
            return self._ask(caller, target, message, end, pass_on)
        answer: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        ask = self._file(caller, target, message, partial(_settle, answer), grace=_GRACE)
        seconds = self.limits.deadline(ask.waiter.event, message.request.get("timeout")) + _GRACE
        remote = RemoteRequest(caller, target, message, partial(self._mention, ask), seconds)
        do_later(self._serving, self._ask_elsewhere(ask, remote, answer, end))
        return ask

    async def _ask_elsewhere(
        self, ask: RelayAsk, remote: RemoteRequest, answer: "asyncio.Future[Answer | None]", end: TellEnd
    ) -> None:
        try:
            with sent_across(remote.message, remote.target.process):
                await self._bus.ask(remote, answer)
            answered, error = await answer, None
        except Exception as failure:
            # The boundary: the caller gets an answer in any case.
            answered, error = None, failure
        finally:
            self._bus.forget(remote)
            self._end(ask)
        end(answered, error)

    # --- what other processes ask of this one, and tell it: the inbox of the bus

    async def answer(self, remote: RemoteRequest, answer: "asyncio.Future[Answer | None]") -> Answer | None:
        """Ask a computer of this process for an agent of another process."""
        message, request = remote.message, remote.message.request
        try:
            with taken_across(message, self.registry.process):
                self._check_are_here(remote)
                message.body = without_foreign_stamp(message.take_body())
                ask = self._ask(remote.caller, remote.target, message, partial(_settle, answer), remote.pass_on)
                try:
                    return await answer
                finally:
                    self._end(ask)
        except NotInRoomError:
            # The caller has gone, or its process has. A computer that did not get the call ignores the cancellation.
            if message.event == TOOL_CALL_EVENT and remote.target.sid in self._clients:
                self._cancel(remote.target.sid, {"agent": request["agent"], "req_id": request["req_id"]})
            raise
        except SMCPError as error:
            peer = self._peer_in_log(self._clients.get(remote.caller))
            fields = {"session": remote.caller, "office": remote.target.office_id}
            log_refusal(self.admission.session_log, peer, message, remote.caller, error, fields)
            raise

    def _check_are_here(self, remote: RemoteRequest) -> None:
        """Raise unless the computer that another process has looked up is still in that office, and the agent, too."""
        target = remote.target
        if self._draining:
            raise InternalError("the server is shutting down")
        session = self.registry.session(target.sid) if target.sid in self._clients else None
        if session is None or session.member is None or session.member.office_id != target.office_id:
            raise offices.computer_gone()
        if self.registry.asker(remote.caller).office_id != target.office_id:
            raise ForbiddenError("the agent that asks is not in the office of this computer")

    def hear(self, notice: Broadcast, text: str) -> None:
        """Tell the members of this process what a member of another process has announced."""
        sender = notice.skip_sid
        if notice.agent_only:
            self._tell_agent(notice, text)
            return
        if self.rooms.is_behind(sender):
            # The sender's process refuses announcements by the state of its own rooms: it does not know ours.
            self.admission.session_log.warn(
                self._peer_in_log(None), "left out %s of %s: too much of it waits", notice.event, sender
            )
            return
        self.rooms.tell(notice.office_id, Notice(text, sender, notice.event, collapses=notice.collapses))

    # --- what becomes of the membership: the listener of the registry

    async def began(self, process: str) -> None:
        """The other processes are about to know this process by this name."""
        await self._bus.began(process)

    def ended(self, process: str) -> None:
        """Nobody is a member through this process any more: close every connection."""
        self._bus.ended(process)
        for sid in list(self._clients):
            self.lost(sid)

    def lost(self, sid: str) -> None:
        """Close the connection of a session that is not a member any more."""
        self.kick(sid, LOST_PLACE)

    def changed(self, changes: Sequence[MemberChange]) -> None:
        """Perform what follows from changes in any process: rooms, notices, calls that end."""
        for change in changes:
            rooms, notices = offices.effects_of(change)
            member = change.after or change.before
            assert member is not None
            before = change.before
            if before is not None and before.sid != member.sid and before.process == self.registry.process:
                self._retire(before)
            if member.process == self.registry.process:
                self._perform(rooms, ())
            elif change.left_office:
                # The member of another process has left. End its requests to computers of this process, and the
                # requests of this process to it. The other shell ends its own.
                self._fail_relays(f"{member.process}/{member.sid}")
                self._fail_relays(member.sid)
            for notice in notices:
                # When a process ends, thousands of members may go at once, most of them from offices without members
                # here.
                if not self._draining and self.registry.process in self.registry.holders(notice.office_id):
                    self.rooms.tell(notice.office_id, notice_of(self.namespace, notice))


def _settle(answer: "asyncio.Future[Answer | None]", answered: Answer | None, error: Exception | None) -> None:
    """A relay has ended; the future may have ended before."""
    if error is not None:
        fail(answer, error)
    elif not answer.done():
        answer.set_result(answered)

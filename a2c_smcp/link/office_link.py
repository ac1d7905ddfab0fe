"""A client's link to its office, for computers and agents alike: it joins, leaves, and joins again after a loss."""

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any

from a2c_smcp.errors import ConnectionLostError, NotInRoomError, RequestTimeoutError, SMCPError, error_from_reason
from a2c_smcp.link.connection import Connection
from a2c_smcp.link.interface import Handler, Joined, Left, LinkEvent, LinkOptions, Membership, Refused, RejoinFailed
from a2c_smcp.link.server_link import ServerLink
from a2c_smcp.packet_text import read_ack
from a2c_smcp.relay.passing import RETRY_SECONDS, Passing, passes
from a2c_smcp.smcp import JOIN_OFFICE_EVENT, LEAVE_OFFICE_EVENT, EnterOfficeReq
from a2c_smcp.utils.lazy_names import moved_names

__all__ = ["OfficeLink"]

# `Way` was here.
__getattr__ = moved_names(__name__, "link.transports")

logger = logging.getLogger(__name__)


class OfficeLink(ServerLink):
    """`async with OfficeLink(options, handlers) as link`. Handlers answer what the server sends; their result is acked.

    `on_event` hears of connections and memberships as they come and go. Every error that is sent to the server is
    made by `refused`, which may take secrets out. `resume` is the secret of a place that this client takes over.
    """

    def __init__(
        self,
        options: LinkOptions,
        handlers: Mapping[str, Handler],
        *,
        on_event: Callable[[LinkEvent], None] = lambda _: None,
        refused: Refused | None = None,
        resume: str | None = None,
    ) -> None:
        super().__init__(options, handlers, on_event, refused)
        self.membership: Membership | None = None
        """Where this client is, or will be again as soon as it can."""
        self._in_office = False
        self._was_in_office = False
        self._changing = asyncio.Lock()
        """Held for a join, a leave or a rejoin, so that they do not overtake each other."""
        self._has_let_go = False
        self._attempts: set[asyncio.Task[None]] = set()
        self.resume = resume or secrets.token_urlsafe(32)
        """With this secret a new connection of this client takes its place over, at any server process."""

    @property
    def joined(self) -> bool:
        """Whether the server has this client in its office right now."""
        return self._in_office and self.connected

    @property
    def _office(self) -> str | None:
        return super()._office or (self.membership.office_id if self.membership else None)

    def attend(self, membership: Membership) -> None:
        """Connect and join as soon as that works, and try for ever, also after refusals. Returns at once. `problem`
        says why it has not worked yet.
        """
        self._supervisor.begin()
        self.membership, self._attending = membership, True

    def keep_trying(self) -> None:
        """From now on no refusal is final: connect and join again until it works, as with `attend`."""
        self._attending = True

    def let_go(self) -> None:
        """Another process has this place, or is about to take it over. Requests that wait are still answered here. When
        the server ends this connection, no other one is opened. Close a link that has none.
        """
        self.membership, self._is_last, self._has_let_go = None, True, True

    async def join(self, membership: Membership) -> None:
        """Join an office, or raise the class of the refusal's code. From now on every reconnect joins it again.

        If the caller is cancelled, the join is taken back: the server may have done it.
        """
        self._supervisor.check_loop()
        given_up = asyncio.Event()
        before = self.membership
        joining = self._start(self._take_place(membership, given_up))
        try:
            await asyncio.shield(joining)
        except asyncio.CancelledError:
            given_up.set()
            if joining.done() and joining.exception() is None:
                self._start(self._take_back(membership, before))
            raise

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._attempts.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._attempts.discard(task)
        if not task.cancelled():
            task.exception()  # perhaps nobody waits for it any more

    async def _take_place(self, membership: Membership, given_up: asyncio.Event) -> None:
        """Join. Goes on when the caller stops waiting, because the server has been asked."""
        async with self._changing:
            if given_up.is_set():
                return
            try:
                await self._join(membership)
            except RequestTimeoutError:
                await self._withdraw(membership)
                raise
            if given_up.is_set():
                await self._withdraw(membership)
                return
            self.membership = membership
            self._enter()
        self._tell(Joined(membership, again=False))

    async def _take_back(self, membership: Membership, before: Membership | None) -> None:
        async with self._changing:
            if self.membership is membership:
                self.membership = before
                await self._withdraw(membership)

    async def _withdraw(self, membership: Membership) -> None:
        """Leave an office that nobody wants to be in any more, and go back to where this client was."""
        with suppress(SMCPError):
            await self.send(LEAVE_OFFICE_EVENT, {"office_id": membership.office_id})
        self._in_office = False
        if self.membership is not None:
            self._start(self._rejoin())

    async def leave(self) -> None:
        """Leave the office, if the client is in one. Without a connection, only give up coming back."""
        async with self._changing:
            membership, self.membership = self.membership, None
            if membership is None or not self.connected:
                return
            was_in, self._in_office = self._in_office, False
            args = await self.request(
                LEAVE_OFFICE_EVENT, {"office_id": membership.office_id}, self.options.membership_timeout
            )
        self._tell(Left(membership))
        try:
            _raise_refusal(args)
        except NotInRoomError:
            if was_in:
                raise  # otherwise the client had not come back yet

    def _enter(self) -> None:
        self._in_office = self._was_in_office = True
        self.problem = None

    async def _join(self, membership: Membership) -> None:
        if self._connection is None:
            raise ConnectionLostError("not connected to the server")
        await self._join_over(self._connection, membership)

    async def _join_over(self, connection: Connection, membership: Membership) -> None:
        request: EnterOfficeReq = {
            "role": membership.role,
            "name": membership.name,
            "office_id": membership.office_id,
            "resume": self.resume,
        }
        ack = await self.exchange(JOIN_OFFICE_EVENT, request, self.options.membership_timeout, connection)
        _raise_refusal(tuple(read_ack(ack)))

    # --- staying in the office

    async def _connect(self) -> Connection:
        connection = await super()._connect()
        self._in_office = False
        return connection

    async def _settle(self, connection: Connection) -> None:
        """Take the place in the office over. A rejoin that is under way goes on over this connection."""
        async with self._changing:
            if self.membership is not None and self._in_office:
                await self._join_over(connection, self.membership)

    async def _move(self, old: Connection) -> Connection | None:
        return None if self._has_let_go else await super()._move(old)

    async def _stay(self, connection: Connection) -> str:
        """Join again if there is an office to be in, until the connection drops."""
        rejoin = asyncio.create_task(self._rejoin()) if self.membership else None
        try:
            return await super()._stay(connection)
        finally:
            if rejoin is not None:
                rejoin.cancel()
                await asyncio.wait({rejoin})

    async def _rejoin(self) -> None:
        loop = asyncio.get_running_loop()
        started, reported = loop.time(), False
        while (membership := self.membership) is not None and not self._in_office:
            try:
                async with self._changing:
                    if self.membership is not membership or self._in_office:
                        continue  # joined or left while this waited its turn
                    again = self._was_in_office
                    await self._join(membership)
                    self._enter()
            except ConnectionLostError:
                return
            except SMCPError as error:
                self.problem = error
                passing = passes(error)
                final = not passing and not self._attending
                if not passing or (not reported and loop.time() - started >= self.options.rejoin_report_after):
                    reported = True
                    logger.warning("not %s the office: %s", "back in" if again else "in", error)
                    self._tell(RejoinFailed(membership, error, final=final))
                if final:
                    return
                await asyncio.sleep(self.options.rejoin_every if passing else RETRY_SECONDS[Passing.BY_A_PERSON])
            else:
                self._tell(Joined(membership, again=again))
                return


def _raise_refusal(args: tuple[Any, ...]) -> None:
    if not args or args[0] is not True:
        raise error_from_reason(args[1] if len(args) > 1 else None)

"""An agent's live view of its office: it performs what `view` decides. The functions that ask are handed in.

Only a few fetches run at a time, and each part of a computer is fetched at a pace that its cost allows. So no computer
slows down the views of the others.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from a2c_smcp.agent.pacing import Cost
from a2c_smcp.agent.requests import computers_in
from a2c_smcp.agent.types import Change
from a2c_smcp.agent.view import REFRESHES, ComputerView, Fetch, Later, OfficeView, Part, retry_delay
from a2c_smcp.errors import ConnectionLostError, SMCPError
from a2c_smcp.smcp import ENTER_OFFICE_NOTIFICATION, LEAVE_OFFICE_NOTIFICATION, SessionInfo

__all__ = ["FetchPlaces", "LiveView"]

logger = logging.getLogger(__name__)


class FetchPlaces:
    """Limits how many fetches run at a time: servers limit how many requests may wait.

    A fetch that takes longer than `patience` seconds is no longer counted: its computer is slow, and the others do not
    wait for it.
    """

    def __init__(self, number: int = 16, patience: float = 1.0) -> None:
        self._free = asyncio.Semaphore(number)
        self._patience = patience

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        await self._free.acquire()
        is_taken = True

        def give_back() -> None:
            nonlocal is_taken
            if is_taken:
                is_taken = False
                self._free.release()

        impatient = asyncio.get_running_loop().call_later(self._patience, give_back)
        try:
            yield
        finally:
            impatient.cancel()
            give_back()


class LiveView:
    """What an agent knows of its office.

    `list_room` and `get` ask the server and the computers; `tell` is called with each `Change`. Call `end` at the end.
    """

    def __init__(
        self,
        list_room: Callable[[], Awaitable[list[SessionInfo]]],
        get: Callable[[str, Part, Cost], Awaitable[Any]],
        tell: Callable[[Change], None],
    ) -> None:
        self.listing_error: SMCPError | None = None
        """Why the last attempt to list the office failed."""
        self.listed = asyncio.Event()
        """Set when the office was listed, or when the first attempt failed."""
        self._list_room = list_room
        self._get = get
        self._tell = tell
        self._view = OfficeView()
        self._is_listed = False
        self._moved = asyncio.Event()
        self._places = FetchPlaces()
        self._lister: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def computers(self) -> Mapping[str, ComputerView]:
        return self._view.computers

    # --- what happens

    def joined(self) -> None:
        """The agent is in its office, for the first time or again."""
        self._begin_listing()
        self._lister = self._start(self._list())

    def disconnected(self) -> None:
        """The connection was lost. Running fetches fail; the view stays until the office is listed again."""
        self._begin_listing()
        self.listed.set()

    def take_note(self, event: str, notice: Mapping[str, Any]) -> None:
        """A notification came."""
        computer = notice.get("computer")
        if computer is None:
            return
        if event == ENTER_OFFICE_NOTIFICATION:
            self._perform(self._view.enter(computer))
        elif event == LEAVE_OFFICE_NOTIFICATION:
            self._view.leave(computer)
            self._perform(())
        elif event in REFRESHES:
            self._perform(self._view.update(event, computer))

    def forget(self) -> None:
        """The agent has left the office."""
        for task in self._tasks:
            task.cancel()
        self._view.clear()
        self._is_listed = False
        self.listing_error = None
        self.listed.clear()

    # --- waiting

    async def complete(self, check: Callable[[], None]) -> None:
        """Wait until everything that is due now was fetched. `check` raises if waiting is useless."""
        since: int | None = None
        while True:
            check()
            if not self._is_listed:
                since = None
            else:
                since = since or self._view.now()
                if self._view.settled_since(since):
                    return
            await self._moved.wait()

    def wake(self) -> None:
        """Let the waiting callers check again whether waiting is useful."""
        self._moved.set()
        self._moved.clear()

    def end(self) -> set[asyncio.Task[None]]:
        """Cancel the running tasks and return them."""
        for task in self._tasks:
            task.cancel()
        return set(self._tasks)

    # --- listing

    def _begin_listing(self) -> None:
        if self._lister is not None:
            self._lister.cancel()
        self._view.begin_listing()
        self._is_listed = False
        self.listed.clear()

    async def _list(self) -> None:
        """List the office; try again until it works."""
        failures = 0
        while True:
            try:
                sessions = await self._list_room()
            except SMCPError as error:
                failures += 1
                self.listing_error = error
                logger.warning("cannot list the office: %s", error)
                self.listed.set()
                await asyncio.sleep(retry_delay(failures))
            else:
                self.listing_error = None
                self._is_listed = True
                self._perform(self._view.end_listing(computers_in(sessions)))
                self.listed.set()
                return

    # --- fetching

    async def _fetch(self, fetch: Fetch) -> None:
        cost = Cost()
        async with self._places.one():
            try:
                value = await self._get(fetch.computer, fetch.part, cost)
            except SMCPError as error:
                self._after_failure(fetch, error, cost.pause)
                return
        news, outcome = self._view.fetched(fetch, value, cost.pause)
        if news:
            self._tell(Change(fetch.computer, fetch.part))
        self._perform(outcome)

    def _after_failure(self, fetch: Fetch, error: SMCPError, pause: float) -> None:
        outcome = self._view.failed(fetch, error, pause)
        if outcome is None:
            return
        # The link already reports a lost connection, and a connection that this side closed is not news.
        level = logging.INFO if isinstance(error, ConnectionLostError) else logging.WARNING
        logger.log(level, "cannot fetch the %s of %s: %s", fetch.part.value, fetch.computer, error)
        self._tell(Change(fetch.computer, fetch.part, error))
        self._perform(outcome)

    async def _resume(self, later: Later) -> None:
        await asyncio.sleep(later.delay)
        self._perform(self._view.resume(later.fetch))

    def _perform(self, outcome: Later | Iterable[Fetch]) -> None:
        if isinstance(outcome, Later):
            self._start(self._resume(outcome))
        else:
            for fetch in outcome:
                self._start(self._fetch(fetch))
        self.wake()

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

"""The resources that an agent subscribed to. They are subscribed to again when their computer or the office is back."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeAlias

from a2c_smcp.errors import ConnectionLostError, NotFoundError, SMCPError, TooManyRequestsError
from a2c_smcp.smcp import ResourceUpdatedNotification

__all__ = ["MOST_SUBSCRIPTIONS", "Subscriptions"]

logger = logging.getLogger(__name__)

#: How many resources one agent may subscribe to.
MOST_SUBSCRIPTIONS: Final = 1000

_AskComputer: TypeAlias = Callable[[str, str, bool], Awaitable[None]]


class Subscriptions:
    """`ask` begins or ends a subscription at a computer. `tell` hears of a resource that has changed, or may have."""

    def __init__(
        self, ask: _AskComputer, tell: Callable[[ResourceUpdatedNotification], None], most: int = MOST_SUBSCRIPTIONS
    ) -> None:
        self._ask = ask
        self._tell = tell
        self._most = most
        self._uris: dict[str, dict[str, None]] = {}
        self._renewing: dict[str, asyncio.Task[None]] = {}
        self._refused: dict[str, dict[str, None]] = {}
        """What computers refused when they came back: the MCP server of the resource may not run yet."""

    def __len__(self) -> int:
        return sum(map(len, self._uris.values()))

    def has(self, computer: str | None, uri: str) -> bool:
        return uri in self._uris.get(computer or "", ())

    async def subscribe(self, computer: str, uri: str) -> None:
        """Raises `TooManyRequestsError` over the bound, and what the computer answers."""
        if self.has(computer, uri):
            return
        if len(self) >= self._most:
            raise TooManyRequestsError(f"this agent has {self._most} subscriptions; end some of them first")
        # Noted before the answer: a change may be told before it.
        self._uris.setdefault(computer, {})[uri] = None
        try:
            await self._ask(computer, uri, True)
        except BaseException:
            self._forget(computer, uri)
            raise

    async def unsubscribe(self, computer: str, uri: str) -> None:
        """End a subscription. Without one this does nothing. A computer that has gone has ended it already."""
        if not self.has(computer, uri):
            return
        self._forget(computer, uri)
        try:
            await self._ask(computer, uri, False)
        except NotFoundError as error:
            logger.info("a subscription at %s has ended already: %s", computer, error)

    def _forget(self, computer: str, uri: str) -> None:
        uris = self._uris.get(computer, {})
        uris.pop(uri, None)
        if not uris:
            self._uris.pop(computer, None)

    def clear(self) -> None:
        """The agent has left the office: the computers have ended everything."""
        self.end()
        self._uris.clear()
        self._refused.clear()

    def renew(self, computers: Iterable[str] | None = None) -> None:
        """These computers have come back, or the agent has (`None`: all of them): subscribe again there."""
        for computer in list(self._uris if computers is None else computers):
            if computer in self._uris:
                if (earlier := self._renewing.get(computer)) is not None:
                    earlier.cancel()
                self._refused.pop(computer, None)
                self._begin(computer, list(self._uris[computer]))

    def try_again(self, computer: str) -> None:
        """A computer shares something else now: subscribe there to what it refused when it came back."""
        if computer in self._renewing:
            self.renew([computer])
        elif refused := self._refused.pop(computer, None):
            self._begin(computer, list(refused))

    def _begin(self, computer: str, uris: list[str]) -> None:
        self._renewing[computer] = asyncio.create_task(self._renew(computer, uris))

    def gone(self, computer: str) -> None:
        """A computer has left the office."""
        self._refused.pop(computer, None)
        if (task := self._renewing.pop(computer, None)) is not None:
            task.cancel()

    def end(self) -> set[asyncio.Task[None]]:
        """Stop subscribing again. Returns the tasks that are about to end."""
        tasks = set(self._renewing.values())
        self._renewing.clear()
        for task in tasks:
            task.cancel()
        return tasks

    async def _renew(self, computer: str, uris: list[str]) -> None:
        try:
            for uri in uris:
                if not self.has(computer, uri):
                    continue  # ended meanwhile
                try:
                    await self._ask(computer, uri, True)
                except ConnectionLostError:
                    return  # the agent subscribes again when it is back
                except SMCPError as error:
                    self._refused.setdefault(computer, {})[uri] = None
                    logger.warning("could not subscribe again at %s: %s", computer, error)
                else:
                    self._tell({"computer": computer, "uri": uri})  # it may have changed in between
        finally:
            if self._renewing.get(computer) is asyncio.current_task():
                del self._renewing[computer]

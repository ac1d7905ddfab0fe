"""The one connection of a server process to NATS. Connecting is tried for ever; meanwhile nothing is kept for later."""

import asyncio
import logging
import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Self

from nats.aio.client import Client as NatsClient
from nats.errors import Error as NatsError

from a2c_smcp.errors import InternalError
from a2c_smcp.server.cluster import clock, tuning
from a2c_smcp.server.cluster.options import ClusterOptions

__all__ = ["OUT_OF_REACH", "NatsConnection", "end_tasks"]

logger = logging.getLogger(__name__)

OUT_OF_REACH = "NATS is out of reach"


class NatsConnection:
    """`async with NatsConnection(options)` begins to connect, and does not wait. `connected` waits.

    `client` is nats-py's. It stays the same over all reconnects, and makes its subscriptions again by itself.
    """

    def __init__(self, options: ClusterOptions) -> None:
        self.options = options
        self.client = NatsClient()
        self.on_write: Callable[[float], None] = lambda seconds: None
        """Is told how many seconds NATS took for each write."""
        self._up = asyncio.Event()
        self._connecting: asyncio.Task[None] | None = None
        self._complaint = ""
        self._lost_at = -math.inf

    async def __aenter__(self) -> Self:
        self._connecting = asyncio.create_task(self._connect())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._connecting is not None
        await end_tasks([self._connecting])
        # nats-py asserts that a client was connected, or tried to connect, before it is closed.
        with suppress(NatsError, OSError, TimeoutError, AssertionError):
            await self.client.close()

    @property
    def is_connected(self) -> bool:
        return self.client.is_connected

    @property
    def reconnects(self) -> int:
        """How often the connection was made again after it was lost."""
        return int(self.client.stats["reconnects"])

    def check(self) -> None:
        """Raise `InternalError` at once while NATS is out of reach."""
        if not self.is_connected:
            raise InternalError(OUT_OF_REACH)

    async def within_reach(self) -> None:
        """Wait while a connection that was just lost is made again, or raise `InternalError`. Another NATS server of a
        cluster takes it in a moment.
        """
        until = self._lost_at + tuning.TIMES.max_silence
        while not self.is_connected and clock.now() < until:  # noqa: ASYNC110 - nats-py tells of it a little later
            await asyncio.sleep(tuning.TIMES.look_for_room)
        self.check()

    async def connected(self) -> None:
        """Wait for the connection."""
        await self._up.wait()

    async def _connect(self) -> None:
        while True:
            try:
                await self.client.connect(
                    list(self.options.servers),
                    user_credentials=self.options.creds,
                    name="a2c server",
                    connect_timeout=tuning.TIMES.nats_connect,
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=tuning.TIMES.retry,  # type: ignore[arg-type]  # any number of seconds
                    ping_interval=tuning.TIMES.nats_ping,
                    max_outstanding_pings=2,
                    # Without a connection, publishing fails at once. Nothing is sent later.
                    pending_size=0,
                    error_cb=self._on_error,
                    disconnected_cb=self._on_disconnected,
                    reconnected_cb=self._on_connected,
                )
                break
            except Exception as error:
                # nats-py tries again by itself after errors that it knows. A bad credentials file can raise others.
                await self._on_error(error)
                await asyncio.sleep(tuning.TIMES.retry)
        await self._on_connected()

    async def _on_connected(self) -> None:
        logger.info("connected to NATS")
        self._complaint = ""
        self._up.set()

    async def _on_disconnected(self) -> None:
        self._up.clear()
        self._lost_at = clock.now()
        if not self.client.is_closed:
            logger.warning("the connection to NATS is lost; trying again")

    async def _on_error(self, error: Exception) -> None:
        complaint = f"{type(error).__name__}: {error}"
        # Connecting is tried twice a second, and fails in the same way as long as NATS is away.
        if complaint != self._complaint:
            self._complaint = complaint
            logger.warning("NATS: %s", complaint)


async def end_tasks(tasks: Iterable["asyncio.Task[Any]"]) -> None:
    """Cancel tasks, and wait until they have ended.

    nats-py waits with `asyncio.wait_for`. In Python 3.11 that forgets a cancellation which comes together with the
    result, so one cancellation is not enough.
    """
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=tuning.TIMES.retry)

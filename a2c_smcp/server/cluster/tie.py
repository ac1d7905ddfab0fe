"""What ties one server process to the others: the connection to NATS, and the membership over it."""

from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from a2c_smcp.server.cluster.connection import NatsConnection
from a2c_smcp.server.cluster.options import ClusterOptions
from a2c_smcp.server.cluster.registry import ClusterRegistry
from a2c_smcp.server.metrics import Metrics

__all__ = ["ClusterTie"]


class ClusterTie:
    """`async with ClusterTie(options)`: from then on it joins the others, as soon as NATS lets it."""

    def __init__(self, options: ClusterOptions) -> None:
        self.connection = NatsConnection(options)
        self.registry = ClusterRegistry(self.connection)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self.connection)
        await self._stack.enter_async_context(self.registry)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def measure(self, metrics: Metrics) -> None:
        """Show in the metrics how it goes."""
        metrics.gauge("a2c_processes", "Server processes that know each other.", lambda: len(self.registry.processes))
        metrics.gauge("a2c_lease_age_seconds", "Time since the last renewal.", lambda: self.registry.lease_age)

"""What ties one server process to the others: the connection to NATS, the membership and the bus over it."""

from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from a2c_smcp.server.cluster.connection import NatsConnection
from a2c_smcp.server.cluster.nats_bus import NatsBus
from a2c_smcp.server.cluster.options import ClusterOptions
from a2c_smcp.server.cluster.registry import ClusterRegistry
from a2c_smcp.server.metrics import Metrics

__all__ = ["ClusterTie"]


class ClusterTie:
    """`async with ClusterTie(options)`, after `measure`: from then on it joins the others, as soon as NATS lets it."""

    def __init__(self, options: ClusterOptions) -> None:
        self.connection = NatsConnection(options)
        self.registry = ClusterRegistry(self.connection)
        self.bus: NatsBus | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        assert self.bus is not None
        for part in (self.connection, self.bus, self.registry):
            await self._stack.enter_async_context(part)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def measure(self, metrics: Metrics) -> NatsBus:
        """Show in the metrics how it goes, and what crosses the bus, which is returned."""
        metrics.gauge("a2c_processes", "Server processes that know each other.", lambda: len(self.registry.processes))
        metrics.gauge("a2c_lease_age_seconds", "Time since the last renewal.", lambda: self.registry.lease_age)
        self.bus = NatsBus(self.connection, self.registry, self.connection.options.prefix, metrics)
        return self.bus

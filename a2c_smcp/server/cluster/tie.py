"""What ties one server process to the others: the connection to NATS, and the membership and the bus over it."""

import logging
from collections.abc import Collection
from contextlib import AsyncExitStack
from typing import Final, Self

from a2c_smcp.server.auth import AuthenticationProvider
from a2c_smcp.server.cluster import tuning
from a2c_smcp.server.cluster.cluster_switchboard import ClusterSwitchboard
from a2c_smcp.server.cluster.connection import NatsConnection
from a2c_smcp.server.cluster.nats_bus import NatsBus
from a2c_smcp.server.cluster.options import ClusterOptions
from a2c_smcp.server.cluster.orders import Obey
from a2c_smcp.server.cluster.registry import ClusterRegistry
from a2c_smcp.server.cluster.seal import FrameSeal
from a2c_smcp.server.limits import Limits
from a2c_smcp.server.metrics import Metrics

__all__ = ["ClusterTie"]

logger = logging.getLogger(__name__)

_NO_KEY: Final = (
    "there is no cluster key: everybody who may write to NATS can use every computer in the name of a server; "
    "give --cluster-key-file (see docs/scaling.md)"
)
_UNSIGNED: Final = (
    "messages without a signature are accepted: everybody who may write to NATS can use every computer in the name of "
    "a server; leave out --accept-unsigned when all servers have the key"
)


class ClusterTie:
    """Call `switchboard`, then enter it with `async with`: it joins the other processes as soon as NATS lets it."""

    def __init__(self, options: ClusterOptions) -> None:
        self.connection = NatsConnection(options)
        self.registry = ClusterRegistry(self.connection)
        self.bus: NatsBus | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        assert self.bus is not None
        options = self.connection.options
        if not options.keys or options.accept_unsigned:
            logger.warning(_UNSIGNED if options.keys else _NO_KEY)
        for part in (self.connection, self.bus, self.registry):
            await self._stack.enter_async_context(part)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    # The way to the other processes, for operators.

    def names(self) -> Collection[str]:
        return self.registry.processes

    async def give(self, process: str, order: bytes, seconds: float) -> bytes:
        assert self.bus is not None
        return await self.bus.orders.give(process, order, seconds)

    def obey(self, carry_out: Obey) -> None:
        """Let this carry out what operators at other processes order."""
        assert self.bus is not None
        self.bus.orders.obey = carry_out

    def switchboard(self, auth: AuthenticationProvider, limits: Limits, metrics: Metrics) -> ClusterSwitchboard:
        """The switchboard of this process. The metrics show the age of its lease, and what crosses the bus."""
        metrics.gauge("a2c_processes", "Server processes that know each other.", lambda: len(self.registry.processes))
        metrics.gauge("a2c_lease_age_seconds", "Time since the last renewal.", lambda: self.registry.lease_age)
        metrics.gauge("a2c_nats_connected", "Whether NATS is in reach: 1 or 0.", lambda: self.connection.is_connected)
        metrics.gauge("a2c_nats_reconnects", "How often NATS was reached again.", lambda: self.connection.reconnects)
        self.connection.on_write = metrics.nats_wrote
        options = self.connection.options
        seal = FrameSeal(
            options.keys,
            accept_unsigned=options.accept_unsigned,
            # A process that was stopped for longer than its lease has another name.
            longest_way=options.lease + tuning.TIMES.remembered_for_cuts,
        )
        self.bus = NatsBus(self.connection, self.registry, options.prefix, metrics, seal)
        return ClusterSwitchboard(auth, registry=self.registry, bus=self.bus, limits=limits, observer=metrics)

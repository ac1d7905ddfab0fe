"""What the server counts, for `GET /metrics`. Each application has a collector registry of its own.

Every label has a bounded set of values: a peer cannot add a line by what it sends.
"""

import platform
from collections.abc import Callable
from functools import cache
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector, generate_latest

from a2c_smcp import __version__
from a2c_smcp.server.port import DISCONNECT_REASONS
from a2c_smcp.server.registry import Registry
from a2c_smcp.smcp import PROTOCOL_VERSION

__all__ = ["Metrics"]

_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_SHORT: Final = tuple(bucket for bucket in _BUCKETS if bucket <= 10)


class Metrics:
    """An `Observer` and `BusObserver`. Renders what it has counted, and the counts of the registry, for Prometheus."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._collectors = collectors = CollectorRegistry()
        ProcessCollector(registry=collectors)  # CPU, memory and file descriptors, on Linux
        build = {"version": __version__, "protocol": PROTOCOL_VERSION, "python": platform.python_version()}
        Info("a2c_build", "What runs here.", registry=collectors).info(build)
        # Finding a child by its labels takes longer than counting. There are few children, so they are kept.
        self._relays_of = cache(self._histogram("a2c_relay", "Time until the answer.", "event", "outcome").labels)
        self._joins_of = cache(self._histogram("a2c_join", "Time of a join.", "outcome", buckets=_SHORT).labels)
        self._refusals = self._counter("a2c_refusals", "Requests and connections refused.", "code")
        disconnects = self._counter("a2c_disconnects", "Sessions that ended.", "reason")
        # All of them are there from the beginning, so that the first one is seen as an increase.
        self._disconnects = {reason: disconnects.labels(reason) for reason in (*sorted(DISCONNECT_REASONS), "other")}
        self.last_lag = 0.0
        self._lag = self._histogram("a2c_loop_lag", "How late the event loop is.", buckets=_SHORT)
        self._across_of = cache(
            self._counter("a2c_messages_across", "Messages between server processes.", "direction", "kind").labels
        )
        self._dropped_across = self._counter(
            "a2c_messages_dropped_across", "Messages in the name of server processes that were not acted on.", "reason"
        )
        self._seconds_across = self._histogram("a2c_across", "Time until another server process had answered.")
        self._nats_seconds = self._histogram("a2c_nats_write", "Time until NATS had taken a write.", buckets=_SHORT)
        members = Gauge("a2c_members", "Members of offices.", ["role"], registry=collectors)
        self._agents, self._computers = members.labels("agent"), members.labels("computer")
        self._sessions = Gauge("a2c_sessions", "Connections, in an office or not.", registry=collectors)
        self._offices = Gauge("a2c_offices", "Offices with at least one member.", registry=collectors)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self._collectors)

    def _histogram(self, name: str, text: str, *labels: str, buckets: tuple[float, ...] = _BUCKETS) -> Histogram:
        return Histogram(f"{name}_seconds", text, labels, buckets=buckets, registry=self._collectors)

    def gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        """Render one more number. `value` is called each time."""
        Gauge(name, text, registry=self._collectors).set_function(value)

    # --- what happens in this process

    def relayed(self, event: str, outcome: str, seconds: float) -> None:
        self._relays_of(event, outcome).observe(seconds)

    def joined(self, outcome: str, seconds: float) -> None:
        self._joins_of(outcome).observe(seconds)

    def refused(self, code: int) -> None:
        self._refusals.labels(str(code)).inc()

    def disconnected(self, reason: str) -> None:
        self._disconnects.get(reason, self._disconnects["other"]).inc()

    def lagged(self, seconds: float) -> None:
        """The event loop did something this much later than it should."""
        self.last_lag = seconds
        self._lag.observe(seconds)

    # --- what happens between processes

    def sent_across(self, kind: str) -> None:
        self._across_of("sent", kind).inc()

    def heard_across(self, kind: str) -> None:
        self._across_of("heard", kind).inc()

    def answered_across(self, seconds: float) -> None:
        self._seconds_across.observe(seconds)

    def dropped_across(self, reason: str) -> None:
        self._dropped_across.labels(reason).inc()

    def nats_wrote(self, seconds: float) -> None:
        """NATS has taken a write of this process, such as the renewal of its lease."""
        self._nats_seconds.observe(seconds)

    def render(self) -> bytes:
        counts = self._registry.counts()
        self._agents.set(counts.agents)
        self._computers.set(counts.computers)
        self._sessions.set(counts.sessions)
        self._offices.set(counts.offices)
        return generate_latest(self._collectors)

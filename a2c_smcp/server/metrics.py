"""What the server counts, for `GET /metrics`. Each application has a collector registry of its own."""

from collections.abc import Callable
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from a2c_smcp.server.registry import Registry

__all__ = ["Metrics"]

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Metrics:
    """An `Observer` and `BusObserver`. Renders what it has counted, and the counts of the registry, for Prometheus."""

    def __init__(self, registry: Registry) -> None:
        self._collectors = collectors = CollectorRegistry()
        relays = Counter("a2c_relays", "Requests passed on.", ["event", "outcome"], registry=collectors)
        seconds = Histogram(
            "a2c_relay_seconds", "Time until the answer.", ["event"], buckets=_BUCKETS, registry=collectors
        )
        # Finding a child by its labels takes longer than counting. There are few children, so they are kept.
        self._relays_of = cache(relays.labels)
        self._seconds_of = cache(seconds.labels)
        self._refusals = Counter("a2c_refusals", "Requests and connections refused.", ["code"], registry=collectors)
        across = Counter(
            "a2c_messages_across", "Messages between server processes.", ["direction", "kind"], registry=collectors
        )
        self._across_of = cache(across.labels)
        self._dropped_across = Counter(
            "a2c_messages_dropped_across",
            "Messages in the name of server processes that were not acted on.",
            ["reason"],
            registry=collectors,
        )
        self._seconds_across = Histogram(
            "a2c_across_seconds",
            "Time until another server process had answered.",
            buckets=_BUCKETS,
            registry=collectors,
        )
        self._registry = registry
        members = Gauge("a2c_members", "Members of offices.", ["role"], registry=collectors)
        self._agents, self._computers = members.labels("agent"), members.labels("computer")
        self._sessions = Gauge("a2c_sessions", "Connections, in an office or not.", registry=collectors)
        self._offices = Gauge("a2c_offices", "Offices with at least one member.", registry=collectors)

    def gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        """Render one more number. `value` is called each time."""
        Gauge(name, text, registry=self._collectors).set_function(value)

    def relayed(self, event: str, outcome: str, seconds: float) -> None:
        self._relays_of(event, outcome).inc()
        self._seconds_of(event).observe(seconds)

    def refused(self, code: int) -> None:
        self._refusals.labels(str(code)).inc()

    def sent_across(self, kind: str) -> None:
        self._across_of("sent", kind).inc()

    def heard_across(self, kind: str) -> None:
        self._across_of("heard", kind).inc()

    def answered_across(self, seconds: float) -> None:
        self._seconds_across.observe(seconds)

    def dropped_across(self, reason: str) -> None:
        self._dropped_across.labels(reason).inc()

    def render(self) -> bytes:
        counts = self._registry.counts()
        self._agents.set(counts.agents)
        self._computers.set(counts.computers)
        self._sessions.set(counts.sessions)
        self._offices.set(counts.offices)
        return generate_latest(self._collectors)

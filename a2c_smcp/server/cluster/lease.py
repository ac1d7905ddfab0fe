"""A process's right to act for its members, for some seconds after each renewal. Pure: the clock is handed in."""

__all__ = ["Lease"]


class Lease:
    """What NATS was told at the last renewal. NATS counts from when it heard that, this process from before it asked:
    so the lease ends here first.
    """

    __slots__ = ("_until", "process", "renewed_at", "revision", "seconds")

    def __init__(self, process: str, seconds: float, asked_at: float, revision: int) -> None:
        self.process = process
        self.seconds = seconds
        self.renew(asked_at, revision)

    def renew(self, asked_at: float, revision: int) -> None:
        """NATS has taken a renewal that was sent at this moment."""
        self.revision = revision
        self.renewed_at = asked_at
        # A tenth of a lease is not used, because clocks differ: NATS may think that it has ended.
        self._until = asked_at + self.seconds * 0.9

    def is_over(self, now: float) -> bool:
        return now >= self._until

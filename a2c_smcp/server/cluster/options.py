"""How a server process finds the others. Imports nothing of NATS."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

__all__ = ["ClusterOptions", "parse_keys", "parse_servers"]


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """The NATS servers that several server processes share, the keys, and how long a process may be silent.

    Raises `ValueError` if an option cannot work.
    """

    servers: tuple[str, ...]
    """Their URLs, `nats://` or `tls://`. A URL may have a user and a password in it."""
    creds: Path | None = None
    """A NATS credentials file."""
    prefix: str = "a2c"
    """The names of the bucket and the subjects begin with it. All processes of one system have the same prefix."""
    lease: int = 15
    """Seconds without a renewal after which a process counts as gone."""
    renewal: float = 2.0
    """Seconds between renewals."""
    keys: tuple[bytes, ...] = field(default=(), repr=False)
    """The keys that sign messages between processes. The first key signs, and all of them are accepted."""
    accept_unsigned: bool = False
    """Whether to accept messages without a signature, too, while some processes have no key yet."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", self.prefix):
            raise ValueError("the prefix must have 1 to 64 letters, digits, '-' or '_'")
        if not (self.lease >= 2 and 0 < self.renewal <= self.lease / 2):
            raise ValueError("the lease must have two or more whole seconds, and at least two renewals")
        if len(self.keys) > 4:  # every key is tried for a forged message
            raise ValueError("there can be 4 cluster keys at most")
        if any(len(key) < 32 for key in self.keys):
            raise ValueError("a cluster key must have 32 characters or more; `a2c server nats-setup` makes one")
        if self.accept_unsigned and not self.keys:
            raise ValueError("--accept-unsigned needs a cluster key; without one, everything is accepted")


def parse_servers(text: str) -> tuple[str, ...]:
    """The URLs of a list with commas. Raises `ValueError`, which names the first wrong one without its password."""
    servers = tuple(part.strip() for part in text.split(",") if part.strip())
    for server in servers:
        try:
            parts = urlsplit(server)
            usable = parts.scheme in ("nats", "tls") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            shown = server.rpartition("@")[2]
            raise ValueError(f"{shown!r} is not the address of a NATS server; an address looks like nats://host:4222")
    if not servers:
        raise ValueError("no address of a NATS server was given")
    return servers


def parse_keys(text: str) -> tuple[bytes, ...]:
    """The keys in the text of a file, one on each line. Empty lines and comments (`#`) do not count."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(line.encode() for line in lines if line and not line.startswith("#"))

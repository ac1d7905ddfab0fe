"""How a server process finds the others. Imports nothing of NATS."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

__all__ = ["ClusterOptions", "parse_keys", "parse_servers"]

#: Of a key that signs messages, in characters, and of such keys: more would only cost time at what is forged.
_SHORTEST_KEY: Final = 32
_MOST_KEYS: Final = 4


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """The NATS servers that several server processes share, and how long one of those may be silent.

    Raises `ValueError` for a prefix or times that cannot work.
    """

    servers: tuple[str, ...]
    """Their URLs, `nats://` or `tls://`; a user and a password may be in there."""
    creds: Path | None = None
    """A NATS credentials file."""
    prefix: str = "a2c"
    """What the names of the bucket and of the subjects begin with. Processes of one system have the same."""
    lease: int = 15
    """Seconds without a renewal after which a process counts as gone."""
    renewal: float = 2.0
    """Seconds between renewals."""
    keys: tuple[bytes, ...] = field(default=(), repr=False)
    """The keys that sign what processes send each other: the first one signs, each of them is accepted."""
    accept_unsigned: bool = False
    """Whether what is not signed is accepted as well, for the time in which some processes have no key yet."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", self.prefix):
            raise ValueError("the prefix must have 1 to 64 letters, digits, '-' or '_'")
        if not (self.lease >= 2 and 0 < self.renewal <= self.lease / 2):
            raise ValueError("the lease must have two whole seconds or more, and two renewals at least")
        if len(self.keys) > _MOST_KEYS:
            raise ValueError(f"there can be {_MOST_KEYS} cluster keys at most")
        if any(len(key) < _SHORTEST_KEY for key in self.keys):
            raise ValueError(
                f"a cluster key must have {_SHORTEST_KEY} characters or more; `a2c server nats-setup` makes one"
            )
        if self.accept_unsigned and not self.keys:
            raise ValueError("without a cluster key everything is accepted: --accept-unsigned needs one")


def parse_servers(text: str) -> tuple[str, ...]:
    """The URLs of a list with commas, or `ValueError` naming the first that is none; a password is never in there."""
    servers = tuple(part.strip() for part in text.split(",") if part.strip())
    for server in servers:
        try:
            parts = urlsplit(server)
            usable = parts.scheme in ("nats", "tls") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            shown = server.rpartition("@")[2]
            raise ValueError(f"{shown!r} is not the address of a NATS server; it looks like nats://host:4222")
    if not servers:
        raise ValueError("no address of a NATS server was given")
    return servers


def parse_keys(text: str) -> tuple[bytes, ...]:
    """The keys of a file: one a line; empty lines and comments (`#`) do not count."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(line.encode() for line in lines if line and not line.startswith("#"))

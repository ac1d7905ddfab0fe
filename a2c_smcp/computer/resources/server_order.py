"""In which order the windows and documents of several servers are shown. Pure."""

from collections.abc import Iterable, Sequence

from a2c_smcp.types import SERVER_NAME

__all__ = ["order_servers"]


def order_servers(used: Sequence[SERVER_NAME], servers: Iterable[SERVER_NAME]) -> list[SERVER_NAME]:
    """Each of `servers` once: first the recently used ones, then the others by name. `used` begins with the oldest."""
    rank = {name: position for position, name in enumerate(dict.fromkeys(reversed(used)))}
    return sorted(set(servers), key=lambda name: (rank.get(name, len(rank)), name))

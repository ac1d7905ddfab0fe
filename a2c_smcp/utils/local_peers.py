"""Who is at the other end of a local socket, as the system says it."""

import socket
import struct
import sys
from dataclasses import dataclass
from typing import Final

__all__ = ["LocalPeer", "local_peer"]

_LINUX: Final = struct.Struct("3i")
#: `struct xucred` of macOS and FreeBSD: version, user, groups. Python does not have the numbers of the option.
_BSD: Final = struct.Struct("2Ih2x16I")
_SOL_LOCAL: Final = 0
_LOCAL_PEERCRED: Final = 1


@dataclass(frozen=True, slots=True)
class LocalPeer:
    """A process at the other end of a local socket."""

    user: int
    process: int | None
    """`None` where the system tells only the user."""


def local_peer(connected: socket.socket) -> LocalPeer | None:
    """Who is there; `None` on a system that does not tell. Raises `OSError` if the socket is closed."""
    if hasattr(socket, "SO_PEERCRED"):
        process, user, _ = _LINUX.unpack(connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _LINUX.size))
        return LocalPeer(user, process)
    if sys.platform == "darwin" or sys.platform.startswith("freebsd"):
        found = connected.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _BSD.size)
        return LocalPeer(struct.unpack_from("2I", found)[1], None)
    return None

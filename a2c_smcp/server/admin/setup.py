"""How `a2c server` opens its doors for operators, from its options."""

import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from a2c_smcp.server.admin.everywhere import ClusterAdmin
from a2c_smcp.server.admin.here import OperatorKeys
from a2c_smcp.server.admin.listening import AdminDoor, default_socket, local_door, port_door
from a2c_smcp.server.admin.surface import AdminGuard, AdminSurface
from a2c_smcp.server.key_sources import ServerKeys
from a2c_smcp.server.switchboard import Switchboard
from a2c_smcp.web.hosts import is_loopback

__all__ = ["NO_SOCKET", "AdminOptions", "AdminProblem", "admin_doors", "operator_keys"]

logger = logging.getLogger(__name__)

#: What `--admin-socket` says instead of a path, to have none.
NO_SOCKET: Final = "none"


class AdminProblem(ValueError):  # noqa: N818 - what the person at the terminal reads
    """Options that cannot work together. The text says what to do."""


@dataclass(frozen=True, slots=True)
class AdminOptions:
    """Where operators come in."""

    socket: str | None = None
    """A path, or `none`; `None` is a place that `a2c server admin` finds by itself."""
    host: str = ""
    """The address of the admin port; empty if there is none."""
    port: int = 0
    key: str = ""
    """The admin key, for the port."""
    allowed_hosts: tuple[str, ...] = ()

    def check(self, tls: bool) -> None:
        """Raise `AdminProblem` if the port would not be safe."""
        if not self.host:
            if self.key:
                raise AdminProblem("--admin-key-file needs --admin HOST:PORT")
            return
        if not self.key:
            raise AdminProblem("--admin needs --admin-key-file: everybody who reaches the port could end the server")
        if not self.key.isascii() or len(self.key) < 16:
            raise AdminProblem("the admin key must have at least 16 characters, all of them ASCII")
        if not tls and not is_loopback(self.host):
            raise AdminProblem(
                f"the admin port on {self.host} needs TLS, or others read its key: give --tls-cert, or bind 127.0.0.1"
            )


def operator_keys(keys: ServerKeys, switchboard: Switchboard) -> OperatorKeys:
    """What operators may do with the keys of a server."""

    async def revoke(fingerprints: Collection[str]) -> None:
        keys.door.revoke(fingerprints)
        ended = await switchboard.check_grants(keys.door.current)
        logger.warning("an operator has revoked the key %s; %d sessions ended", ", ".join(fingerprints), ended)

    return OperatorKeys(keys.listed, revoke)


@contextmanager
def admin_doors(
    options: AdminOptions, admin: ClusterAdmin, port: int, tls: dict[str, Any] | None
) -> Iterator[Sequence[AdminDoor]]:
    """The doors of a server on this port, which listen inside the block. Raises `OSError` if one cannot be opened."""
    with ExitStack() as stack:
        doors: list[AdminDoor] = []
        local = _local(options, admin, port)
        if local is not None:
            doors.append(local)
            stack.callback(local.close)
        if options.host:
            guard = AdminGuard(options.key, (*options.allowed_hosts, options.host))
            door = port_door(options.host, options.port, lambda: AdminSurface(admin, guard), tls)
            doors.append(door)
            stack.callback(door.close)
        yield doors


def _local(options: AdminOptions, admin: ClusterAdmin, port: int) -> AdminDoor | None:
    if options.socket == NO_SOCKET:
        return None
    if options.socket is not None:
        return local_door(Path(options.socket), lambda: AdminSurface(admin, None))
    if (path := default_socket(port)) is None:
        return None
    try:
        return local_door(path, lambda: AdminSurface(admin, None))
    except OSError as error:
        # Nobody asked for this socket by name, and the server works without it.
        logger.warning("no admin socket: %s", error)
        return None

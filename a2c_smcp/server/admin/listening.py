"""Where operators come in: a local socket that only its owner may open, and a port. Served beside the server itself."""

import asyncio
import logging
import os
import socket
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from a2c_smcp.server.admin.surface import AdminSurface
from a2c_smcp.utils.local_peers import local_peer
from a2c_smcp.utils.run_folder import LONGEST_SOCKET_PATH, NoRunFolderError, run_folder
from a2c_smcp.utils.system import IS_UNIX
from a2c_smcp.web.http_surface import SurfaceConfig
from a2c_smcp.web.uvicorn_server import GracefulServer, listen

__all__ = ["AdminDoor", "default_socket", "local_door", "port_door"]

logger = logging.getLogger(__name__)

#: How long a stop waits for requests that are being answered, in seconds.
_CLOSE_SECONDS: Final = 1


def default_socket(port: int) -> Path | None:
    """Where a server on this port has its local socket; `None` if this user or this system has no place for it."""
    if not IS_UNIX:
        return None
    name = f"server-{port}.sock"
    try:
        return run_folder(len(name)) / name
    except NoRunFolderError as error:
        logger.info("no admin socket: %s", error)
        return None


@dataclass(slots=True, eq=False)
class AdminDoor:
    """One listening socket for operators. It is served inside `async with`, and closed after it."""

    listener: socket.socket
    make: Callable[[], AdminSurface]
    where: str
    """Its address, for people."""
    path: Path | None = None
    inode: int = 0
    """Of the file at `path`."""
    tls: dict[str, Any] | None = None
    _server: GracefulServer | None = None
    _serving: "asyncio.Task[None] | None" = None

    async def __aenter__(self) -> Self:
        ready = asyncio.Event()
        config = SurfaceConfig(
            self.make(),
            lifespan="off",
            timeout_graceful_shutdown=_CLOSE_SECONDS,
            admits=None if self.path is None else _is_ours,
            **(self.tls or {}),
        )
        self._server = GracefulServer(config, ready=ready.set, ending=_nothing, signals=False)
        self._serving = asyncio.create_task(self._server.serve([self.listener]), name="admin")
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait({waiting, self._serving}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._serving.done():
            self._serving.result()
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        assert self._serving is not None
        self._server.should_exit = True
        await asyncio.wait({self._serving})
        self.close()

    def close(self) -> None:
        """Close the socket, and take its file away unless another server has put its own there."""
        with suppress(OSError):
            if self.path is not None and self.path.lstat().st_ino == self.inode:
                self.path.unlink()
        self.listener.close()


def _is_ours(connected: socket.socket) -> bool:
    """Whether the process at the other end is of this user, or of root. The mode of the socket may have been changed
    after it was made.
    """
    try:
        peer = local_peer(connected)
    except OSError:
        return False
    if peer is None or peer.user in (0, os.geteuid()):
        return True
    logger.warning("refused user %d at the admin socket", peer.user)
    return False


async def _nothing() -> None:
    pass


def local_door(path: Path, make: Callable[[], AdminSurface]) -> AdminDoor:
    """A door at a local socket that only this user may open. Raises `OSError` if it cannot be made, for instance
    because another server has it.
    """
    if not IS_UNIX:
        raise OSError("this system has no local sockets that only one user may open; use --admin HOST:PORT")
    address = os.fspath(path)
    if len(os.fsencode(address)) > LONGEST_SOCKET_PATH:
        raise OSError(f"{address} is too long for a socket: {LONGEST_SOCKET_PATH} bytes at most")
    _remove_dead(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        before = os.umask(0o177)
        try:
            listener.bind(address)
        finally:
            os.umask(before)
        listener.listen(64)
        inode = path.lstat().st_ino
    except OSError as error:
        listener.close()
        raise OSError(error.errno, f"the admin socket {path} cannot be made: {error.strerror}") from None
    return AdminDoor(listener, make, address, path, inode)


def _remove_dead(path: Path) -> None:
    """Remove the socket of a server that was killed. Raises `OSError` if something else is there, or a server lives."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise FileExistsError(f"{path} exists, and is not a socket")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(2)
        try:
            probe.connect(os.fspath(path))
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            return
    raise FileExistsError(f"another server has the admin socket {path}")


def port_door(host: str, port: int, make: Callable[[], AdminSurface], tls: dict[str, Any] | None) -> AdminDoor:
    """A door at a port. Raises `OSError` if it cannot listen there."""
    listener = listen(host, port)
    name = f"[{host}]" if ":" in host else host
    scheme = "https" if tls else "http"
    return AdminDoor(listener, make, f"{scheme}://{name}:{listener.getsockname()[1]}", tls=tls)

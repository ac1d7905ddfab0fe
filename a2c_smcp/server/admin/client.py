"""The operator's side: one request to a running server, over its local socket or its admin port."""

import http.client
import json
import os
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from a2c_smcp.errors import ConnectionLostError, error_from_payload
from a2c_smcp.server.admin.paths import API_PATH, KEY_HEADER
from a2c_smcp.utils.run_folder import NoRunFolderError, run_folder
from a2c_smcp.utils.system import IS_UNIX

__all__ = ["AdminClient", "live_sockets"]

#: A server answers within the deadline for its other processes. This is for a server that hangs.
_SECONDS: Final = 15.0
#: Bytes of an answer.
_MOST: Final = 64 * 1024 * 1024


def live_sockets() -> list[Path]:
    """The admin sockets of this user's servers that run on this machine. Systems without local sockets have none."""
    if not IS_UNIX:
        return []
    try:
        folder = run_folder(len("server-65535.sock"))
    except NoRunFolderError:
        return []
    return [path for path in sorted(folder.glob("server-*.sock")) if _is_alive(path)]


def _is_alive(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(2)
        try:
            probe.connect(os.fspath(path))
        except OSError:
            return False
    return True


class _LocalConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=_SECONDS)
        self._path = os.fspath(path)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_SECONDS)
        self.sock.connect(self._path)


@dataclass(frozen=True, slots=True)
class AdminClient:
    """Reaches a server at a `socket`, or at a `url` with a `key`. `ca` has certificates to trust."""

    socket: Path | None = None
    url: str = ""
    key: str = ""
    ca: Path | None = None

    def get(self, operation: str, **query: Any) -> dict[str, Any]:
        """What an operation answers. Raises `SMCPError`: `ConnectionLostError` if nobody answers."""
        given = {name: value for name, value in query.items() if value is not None}
        return self._exchange("GET", f"{operation}?{urlencode(given)}" if given else operation)

    def post(self, operation: str, **body: Any) -> dict[str, Any]:
        return self._exchange("POST", operation, json.dumps(body).encode())

    def _exchange(self, method: str, operation: str, body: bytes | None = None) -> dict[str, Any]:
        where = str(self.socket or self.url)
        try:
            status, answer = self._ask(method, f"{API_PATH}{operation}", body)
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise ConnectionLostError(f"no server answers at {where}: {reason}") from None
        try:
            found = json.loads(answer)
        except ValueError:
            found = None
        if (error_given := error_from_payload(found)) is not None:
            raise error_given
        if status != 200 or not isinstance(found, dict):
            raise ConnectionLostError(f"{where} is not the admin door of a server: it answers {status}")
        return found

    def _ask(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        connection = self._connection()
        try:
            connection.request(method, path, body, self._headers(body is not None))
            response = connection.getresponse()
            return response.status, response.read(_MOST)
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        if self.socket is not None:
            return _LocalConnection(self.socket)
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        if parts.scheme == "https":
            context = ssl.create_default_context(cafile=None if self.ca is None else os.fspath(self.ca))
            return http.client.HTTPSConnection(host, parts.port, timeout=_SECONDS, context=context)
        return http.client.HTTPConnection(host, parts.port, timeout=_SECONDS)

    def _headers(self, writes: bool) -> Mapping[str, str]:
        headers = {KEY_HEADER: self.key} if self.key else {}
        if writes:
            parts = urlsplit(self.url or "http://localhost")
            headers |= {"content-type": "application/json", "origin": f"{parts.scheme}://{parts.netloc}"}
        return headers

"""The certificate of a server, which may be replaced while the server runs. Connections that are open keep theirs."""

import asyncio
import hashlib
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["ServerCertificate"]


class ServerCertificate:
    """A certificate and its key. `options` are for the web servers that show it."""

    def __init__(self, cert: Path, key: Path) -> None:
        self.files = (cert, key)
        self._digest = self._digest_of_file()
        self._shown: list[_ShownContext] = []

    @property
    def options(self) -> dict[str, Any]:
        cert, key = self.files
        return {"ssl_certfile": cert, "ssl_keyfile": key, "ssl_context_factory": self._make}

    def _make(self, config: Any, default: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
        shown = _ShownContext(default)
        self._shown.append(shown)
        return shown.first

    async def read_again(self) -> str | None:
        """Show what is in the files from now on. Returns what has changed, in words. Raises `OSError` if the files do
        not fit together; nothing changes then.
        """
        made = [await asyncio.to_thread(shown.make) for shown in self._shown]
        for shown, context in zip(self._shown, made, strict=True):
            shown.current = context
        digest, self._digest = self._digest, await asyncio.to_thread(self._digest_of_file)
        return None if digest == self._digest else "there is a new certificate"

    def _digest_of_file(self) -> bytes:
        return hashlib.sha256(self.files[0].read_bytes()).digest()


class _ShownContext:
    """The context that one web server has, and the one that new connections get."""

    def __init__(self, make: Callable[[], ssl.SSLContext]) -> None:
        self.make = make
        self.first = self.current = make()
        # A new certificate cannot simply be loaded into a context: if its key is of another type, the old one is shown
        # beside it.
        self.first.sni_callback = self._on_hello

    def _on_hello(self, connection: ssl.SSLSocket | ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        connection.context = self.current

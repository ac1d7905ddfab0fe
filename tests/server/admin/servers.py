"""A server with doors for operators, in this process, and what a client or an operator does there."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from a2c_smcp.server.admin.client import AdminClient
from a2c_smcp.server.admin.here import Controls
from a2c_smcp.server.admin.setup import AdminOptions, admin_doors, operator_keys
from a2c_smcp.server.app import ServerApp, create_app
from a2c_smcp.server.key_sources import KeySources, ServerKeys
from a2c_smcp.server.uvicorn_parts import GuardedConfig
from tests.server.harness import serving

ADMIN_KEY = "the-admin-key-of-these-tests"


@dataclass(frozen=True)
class Attended:
    """A running server, and the ways in for operators."""

    url: str
    app: ServerApp
    local: AdminClient
    port: AdminClient
    controls: Controls

    @property
    def namespace(self) -> Any:
        return self.app.namespace

    def url_for(self, number: int) -> str:
        return self.url


@contextlib.contextmanager
def attended(folder: Path, keys: KeySources, **options: Any) -> Iterator[Attended]:
    held = ServerKeys(keys, keys.load(), "x-api-key")
    app = create_app(held.auth, **options)
    controls = Controls(operator_keys(held, app.namespace))
    wanted = AdminOptions(str(folder / "a.sock"), "127.0.0.1", 0, ADMIN_KEY)
    wanted.check(tls=False)
    with admin_doors(wanted, app.admin(controls), 0, None) as doors:
        app.beside += doors
        local, port = doors
        with serving(GuardedConfig(app, timeout_graceful_shutdown=1)) as url:
            yield Attended(
                url, app, AdminClient(socket=local.path), AdminClient(url=port.where, key=ADMIN_KEY), controls
            )

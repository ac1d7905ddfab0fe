"""`a2c server`: options, the listening socket, and a clean exit."""

import asyncio
import logging
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from a2c_smcp.server.app import ServerApp, create_app
from a2c_smcp.server.auth import APIKeyAuthentication, AuthenticationProvider, Key, OpenAuthentication, load_keys
from a2c_smcp.server.cluster.options import ClusterOptions, parse_keys, parse_servers
from a2c_smcp.server.draining import DrainTimes
from a2c_smcp.server.limits import Limits
from a2c_smcp.server.uvicorn_parts import GuardedConfig
from a2c_smcp.terminal.screen import say
from a2c_smcp.utils.distribution import install_command
from a2c_smcp.utils.secret_files import exposure
from a2c_smcp.web.hosts import is_loopback
from a2c_smcp.web.uvicorn_server import GracefulServer, listen

__all__ = ["ServerOptions", "UsageProblem", "serve"]

logger = logging.getLogger(__name__)


class UsageProblem(ValueError):  # noqa: N818 - what the person at the terminal reads
    """Options that cannot work together. The text says what to do."""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    host: str
    port: int
    api_keys: tuple[str, ...]
    keys_file: Path | None
    api_key_header: str
    tls_cert: Path | None
    tls_key: Path | None
    ping_interval: float
    ping_timeout: float
    forwarded_allow_ips: str
    allowed_hosts: tuple[str, ...]
    limits: Limits
    nats: str | None = None
    nats_creds: Path | None = None
    nats_prefix: str = "a2c"
    nats_lease: int = 15
    cluster_keys: tuple[str, ...] = ()
    cluster_key_file: Path | None = None
    accept_unsigned: bool = False
    drain: DrainTimes = field(default_factory=DrainTimes)


def serve(options: ServerOptions) -> None:
    """Serve until a signal ends it. Raises `UsageProblem`, `KeyFileError` or `OSError` before anything is served."""
    auth = _authentication(options)
    app = create_app(
        auth,
        limits=options.limits,
        cluster=_cluster(options),
        ping_interval=options.ping_interval,
        ping_timeout=options.ping_timeout,
    )
    with listen(options.host, options.port) as listener:
        scheme = "https" if options.tls_cert else "http"
        host = f"[{options.host}]" if ":" in options.host else options.host
        address = f"{scheme}://{host}:{listener.getsockname()[1]}"
        open_to_all = " (no API key: every program on this machine)" if isinstance(auth, OpenAuthentication) else ""
        GracefulServer(
            _config(app, options),
            ready=_Readiness(app, f"on {address}{open_to_all}").tell,
            ending=lambda: app.drain(options.drain, tell=lambda text: say(f"a2c server {text}", err=True)),
            hurry=app.draining.hurry,
            hang_up=_keep_running,
        ).run([listener])


class _Readiness:
    """Says when the server is ready: at once, or when NATS lets it."""

    def __init__(self, app: ServerApp, where: str) -> None:
        self._app = app
        self._where = where
        self._waiting: asyncio.Task[None] | None = None

    def tell(self) -> None:
        self._waiting = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        # A process that joins others takes a moment, which is worth no line.
        for _ in range(40):
            if self._app.not_ready() is None:
                break
            await asyncio.sleep(0.05)
        else:
            say(f"a2c server listens {self._where}, but is not ready: {self._app.not_ready()}", err=True)
        while self._app.not_ready() is not None:  # noqa: ASYNC110 - a process is asked, not told
            await asyncio.sleep(0.05)
        say(f"a2c server ready {self._where}", err=True)


def _keep_running() -> None:
    logger.warning("SIGHUP: this server reads its keys and certificates only at its start; it goes on as before")


def _authentication(options: ServerOptions) -> AuthenticationProvider:
    if not all(options.api_keys):
        raise UsageProblem("an API key must not be empty")
    keys: list[Key | str] = list(options.api_keys)
    if options.keys_file:
        listed = load_keys(options.keys_file)
        _warn_if_exposed(options.keys_file, secret=any(key.key for key in listed))
        keys += listed
    if keys:
        return APIKeyAuthentication(keys, header=options.api_key_header)
    if not is_loopback(options.host):
        raise UsageProblem(
            f"refusing to serve {options.host} without an API key: everybody who reaches it could use every computer. "
            "Give --api-key-file, A2C_API_KEY or --keys, or bind 127.0.0.1."
        )
    return OpenAuthentication(options.allowed_hosts)


def _warn_if_exposed(file: Path, *, secret: bool = True) -> None:
    if (warning := exposure(file, secret=secret)) is not None:
        logger.warning("%s", warning)


def _cluster(options: ServerOptions) -> ClusterOptions | None:
    if options.nats is None:
        for name, value in (("nats-creds", options.nats_creds), ("accept-unsigned", options.accept_unsigned)):
            if value:
                raise UsageProblem(f"--{name} needs --nats")
        return None
    if find_spec("nats") is None:
        raise UsageProblem(f"--nats needs the extra cluster: {install_command('cluster')}")
    if options.nats_creds is not None:
        options.nats_creds.open("rb").close()  # must raise now: connecting is tried for ever, without an error
        _warn_if_exposed(options.nats_creds)
    try:
        return ClusterOptions(
            parse_servers(options.nats),
            options.nats_creds,
            options.nats_prefix,
            options.nats_lease,
            # Seven renewals in a lease of 15 s, because NATS may need up to 7 s to elect a leader.
            renewal=min(2.0, options.nats_lease / 5),
            keys=_cluster_keys(options),
            accept_unsigned=options.accept_unsigned,
        )
    except ValueError as error:
        raise UsageProblem(str(error)) from None


def _cluster_keys(options: ServerOptions) -> tuple[bytes, ...]:
    keys = tuple(key.encode() for key in options.cluster_keys)
    if (file := options.cluster_key_file) is None:
        return keys
    if not (of_file := parse_keys(file.read_text("utf-8"))):
        raise UsageProblem(f"{file} has no cluster key in it")
    _warn_if_exposed(file)
    return (*of_file, *keys)


def _config(app: ServerApp, options: ServerOptions) -> GuardedConfig:
    if (options.tls_cert is None) != (options.tls_key is None):
        raise UsageProblem("--tls-cert and --tls-key belong together")
    return GuardedConfig(
        app,
        ssl_certfile=options.tls_cert,
        ssl_keyfile=options.tls_key,
        proxy_headers=True,
        forwarded_allow_ips=options.forwarded_allow_ips,
        timeout_graceful_shutdown=2,
    )

"""`a2c server`: options, the listening socket, and a clean exit."""

import asyncio
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from a2c_smcp.errors import BadRequestError
from a2c_smcp.oidc.token_rules import load_rules
from a2c_smcp.record.retention import Retention
from a2c_smcp.record.schema import RecordFileError, open_for_writing
from a2c_smcp.record.writer import RecordWriter
from a2c_smcp.server.admin.here import Controls
from a2c_smcp.server.admin.setup import AdminOptions, AdminProblem, admin_doors, operator_keys
from a2c_smcp.server.app import ServerApp, create_app
from a2c_smcp.server.auth import AuthenticationProvider, OpenAuthentication
from a2c_smcp.server.certificates import ServerCertificate
from a2c_smcp.server.cluster.options import ClusterOptions, parse_keys, parse_servers
from a2c_smcp.server.draining import DrainTimes
from a2c_smcp.server.key_sources import KeySources, ServerKeys
from a2c_smcp.server.limits import Limits
from a2c_smcp.server.limits_file import changed_limits, load_limits
from a2c_smcp.server.token_auth import OidcAuthentication
from a2c_smcp.server.uvicorn_parts import GuardedConfig
from a2c_smcp.terminal.screen import say
from a2c_smcp.utils.distribution import install_command
from a2c_smcp.utils.logs import say_in_json
from a2c_smcp.utils.reloading import FileReloads, ReloadPart
from a2c_smcp.utils.secret_files import exposure
from a2c_smcp.web.hosts import is_loopback
from a2c_smcp.web.uvicorn_server import GracefulServer, listen

__all__ = ["ServerOptions", "UsageProblem", "serve"]

logger = logging.getLogger(__name__)


#: What the first line says about a server without a key.
_OPEN: Final = "no API key: every program on this machine"


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
    api_key_files: tuple[Path, ...] = ()
    admin: AdminOptions = field(default_factory=AdminOptions)
    limits_file: Path | None = None
    oidc: str | None = None
    oidc_audiences: tuple[str, ...] = ()
    oidc_rules: Path | None = None
    oidc_client_id: str | None = None
    oidc_scopes: tuple[str, ...] = ()
    record: Path | None = None
    record_days: float = 90.0
    record_size: int = 1024
    """MiB."""


def serve(options: ServerOptions) -> None:
    """Serve until a signal ends it. Raises `UsageProblem`, `KeyFileError`, `RulesFileError`, `LimitsFileError` or
    `OSError` before anything is served.
    """
    try:
        options.admin.check(tls=options.tls_cert is not None)
    except AdminProblem as problem:
        raise UsageProblem(str(problem)) from None
    keys, certificate, limits = _keys(options), _certificate(options), _limits(options)
    auth = _authentication(options, keys)
    app = create_app(
        auth,
        limits=limits,
        cluster=_cluster(options),
        ping_interval=options.ping_interval,
        ping_timeout=options.ping_timeout,
    )
    with _recording(options, app), listen(options.host, options.port) as listener:
        scheme = "https" if options.tls_cert else "http"
        host = f"[{options.host}]" if ":" in options.host else options.host
        address = f"{scheme}://{host}:{listener.getsockname()[1]}"
        reloads = FileReloads(_reload_parts(options, app, keys, certificate, auth))
        controls = Controls(None if keys is None else operator_keys(keys, app.switchboard), reloads.reload)
        tls = None if certificate is None else certificate.options
        with admin_doors(options.admin, app.admin(controls), listener.getsockname()[1], tls) as doors:
            app.beside += (reloads, *doors)
            notes = [
                *([_OPEN] if isinstance(auth, OpenAuthentication) else []),
                *(f"admin {door.where}" for door in doors),
            ]
            where = f"on {address} ({'; '.join(notes)})" if notes else f"on {address}"
            server = GracefulServer(
                _config(app, options, tls),
                ready=_Readiness(app, where).tell,
                ending=lambda: app.drain(options.drain, tell=partial(_announce, "stopping")),
                hurry=app.draining.hurry,
                hang_up=reloads.ask,
            )
            controls.end = partial(setattr, server, "should_exit", True)
            server.run([listener])


@contextmanager
def _recording(options: ServerOptions, app: ServerApp) -> Iterator[None]:
    """Record while inside, if the options say so."""
    if (file := options.record) is None:
        yield
        return
    try:
        open_for_writing(file).close()
    except (OSError, sqlite3.Error, RecordFileError) as error:
        raise UsageProblem(f"--record {file} cannot be written: {error}") from None
    record = RecordWriter(file, Retention(days=options.record_days, bytes=options.record_size * 2**20))
    app.switchboard.record_into(record)
    try:
        yield
    finally:
        record.close()


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
            _announce("not ready", f"listens {self._where}, but is not ready: {self._app.not_ready()}")
        while self._app.not_ready() is not None:  # noqa: ASYNC110 - a process is asked, not told
            await asyncio.sleep(0.05)
        _announce("ready", f"ready {self._where}")


def _announce(event: str, text: str) -> None:
    """Tell the person or the program that has started the server. This does not depend on the level of the log."""
    text = f"a2c server {text}"
    if not say_in_json(logger, text, event=event):
        say(text, err=True)


def _reload_parts(
    options: ServerOptions,
    app: ServerApp,
    keys: ServerKeys | None,
    certificate: ServerCertificate | None,
    auth: AuthenticationProvider,
) -> list[ReloadPart]:
    parts = []
    if isinstance(auth, OidcAuthentication) and options.oidc_rules is not None:
        read_rules = partial(_read_rules, options.oidc_rules, auth, app)
        parts.append(ReloadPart("rules for tokens", (options.oidc_rules,), read_rules))
    if keys is not None and keys.sources.files:
        parts.append(ReloadPart("keys", keys.sources.files, partial(keys.read_again, app.switchboard)))
    if certificate is not None:
        parts.append(ReloadPart("certificates", certificate.files, certificate.read_again))
    if (file := options.limits_file) is not None:

        async def read_limits() -> str | None:
            before, after = app.switchboard.limits, await asyncio.to_thread(load_limits, file, options.limits)
            app.switchboard.change_limits(after)
            return changed_limits(before, after)

        parts.append(ReloadPart("limits", (file,), read_limits))
    return parts


async def _read_rules(file: Path, auth: OidcAuthentication, app: ServerApp) -> str | None:
    """Read the rules again, and end the sessions that they do not allow any more."""
    rules = await asyncio.to_thread(load_rules, file)
    if rules == auth.rules:
        return None
    auth.use_rules(rules)
    ended = await app.switchboard.check_grants(auth.current)
    return f"the rules for tokens, {ended} sessions ended"


def _authentication(options: ServerOptions, keys: ServerKeys | None) -> AuthenticationProvider:
    """Who may come in: with keys, with tokens, or everybody on this machine."""
    if options.oidc is None:
        if options.oidc_audiences or options.oidc_rules or options.oidc_client_id or options.oidc_scopes:
            raise UsageProblem("--oidc-audience, --oidc-rules, --oidc-client-id and --oidc-scope need --oidc")
        return OpenAuthentication(options.allowed_hosts) if keys is None else keys.auth
    if not all(options.oidc_audiences) or not options.oidc_audiences:
        raise UsageProblem(
            "--oidc needs --oidc-audience, the name that the issuer knows this server by: otherwise tokens for other "
            "programs would open it"
        )
    rules = None if options.oidc_rules is None else load_rules(options.oidc_rules)
    if options.oidc_rules is not None and (warning := exposure(options.oidc_rules, secret=False)) is not None:
        logger.warning("%s", warning)
    ring = () if keys is None else keys.auth
    try:
        auth = OidcAuthentication(
            options.oidc,
            options.oidc_audiences,
            rules=rules,
            keys=ring,
            client_id=options.oidc_client_id,
            scopes=options.oidc_scopes,
        )
    except BadRequestError as error:
        raise UsageProblem(f"--oidc: {error.message}") from None
    if keys is not None:
        keys.door = auth
    return auth


def _limits(options: ServerOptions) -> Limits:
    return options.limits if options.limits_file is None else load_limits(options.limits_file, options.limits)


def _certificate(options: ServerOptions) -> ServerCertificate | None:
    if (options.tls_cert is None) != (options.tls_key is None):
        raise UsageProblem("--tls-cert and --tls-key belong together")
    if options.tls_cert is None or options.tls_key is None:
        return None
    return ServerCertificate(options.tls_cert, options.tls_key)


def _keys(options: ServerOptions) -> ServerKeys | None:
    """The keys of the server; `None` if it has none, and lets in who has a token, or everybody on this machine."""
    if not all(options.api_keys):
        raise UsageProblem("an API key must not be empty")
    sources = KeySources(options.api_keys, options.api_key_files, options.keys_file)
    loaded = sources.load()
    for warning in loaded.warnings:
        logger.warning("%s", warning)
    if loaded.keys:
        return ServerKeys(sources, loaded, options.api_key_header)
    if not is_loopback(options.host) and options.oidc is None:
        raise UsageProblem(
            f"refusing to serve {options.host} without an API key: everybody who reaches it could use every computer. "
            "Give --api-key-file, A2C_API_KEY, --keys or --oidc, or bind 127.0.0.1."
        )
    return None


def _warn_if_exposed(file: Path) -> None:
    if (warning := exposure(file)) is not None:
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


def _config(app: ServerApp, options: ServerOptions, tls: dict[str, Any] | None) -> GuardedConfig:
    return GuardedConfig(
        app,
        **(tls or {}),
        proxy_headers=True,
        forwarded_allow_ips=options.forwarded_allow_ips,
        timeout_graceful_shutdown=2,
    )

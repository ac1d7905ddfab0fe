"""What `a2c doctor --nats` checks: the address, JetStream, and what this user may do. Changes nothing in NATS."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from nats.aio.client import Client as NatsClient
from nats.errors import Error as NatsError
from nats.js import api
from nats.js.errors import APIError

from a2c_smcp.errors import InternalError
from a2c_smcp.server.cluster import tuning
from a2c_smcp.server.cluster.bucket import LARGEST_MESSAGE, Bucket, WrongRevisionError
from a2c_smcp.server.cluster.connection import NatsConnection
from a2c_smcp.server.cluster.options import ClusterOptions

__all__ = ["NatsFinding", "examine_nats"]

NatsFinding: TypeAlias = tuple[str, str]
"""What was checked, and what to do about it. The second text is empty if all is well."""


async def examine_nats(options: ClusterOptions) -> list[NatsFinding]:
    """Check every address. Then check the rest over an address that answers."""
    findings = [await _address(options, server) for server in options.servers]
    well = [server for server, (_, advice) in zip(options.servers, findings, strict=True) if not advice]
    if well:
        findings += await _service(replace(options, servers=(well[0],)))
    return findings


@asynccontextmanager
async def _connected(options: ClusterOptions, server: str, complaints: list[str]) -> AsyncIterator[NatsClient]:
    async def complain(error: Exception) -> None:
        complaints.append(str(error))

    client = NatsClient()
    try:
        async with asyncio.timeout(tuning.TIMES.nats_check):
            await client.connect(
                server,
                user_credentials=options.creds,
                allow_reconnect=False,
                # 0 would mean for ever.
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                error_cb=complain,
            )
        yield client
    finally:
        with suppress(NatsError, OSError):
            await client.close()


async def _address(options: ClusterOptions, server: str) -> NatsFinding:
    shown = _without_password(server)
    complaints: list[str] = []
    try:
        async with _connected(options, server, complaints) as client:
            version, largest = client.connected_server_version, client.max_payload
    except Exception as error:
        # Any error is a finding: of the network, of TLS, of credentials that do not parse.
        why = next(filter(None, complaints), "") or str(error) or type(error).__name__
        if "authorization" in why.lower() or "authentication" in why.lower():
            return f"{shown} answers, but refuses the credentials", "give the right ones with --nats-creds"
        return f"{shown} does not answer: {why}", "start nats-server, or name another with --nats"
    if (version.major, version.minor) < (2, 11):
        return f"{shown} is {version}", "NATS 2.11 or newer is needed"
    if largest < LARGEST_MESSAGE:
        return f"{shown} takes messages of {largest} bytes only", f"set its max_payload to {LARGEST_MESSAGE} or more"
    return f"{shown} answers, version {version.major}.{version.minor}.{version.patch}", ""


async def _service(options: ClusterOptions) -> list[NatsFinding]:
    complaints: list[str] = []
    async with _connected(options, options.servers[0], complaints) as client:
        js = client.jetstream(timeout=tuning.TIMES.nats_check)
        try:
            await js.account_info()
        except (NatsError, APIError, TimeoutError):
            return [_jetstream(complaints)]
        findings: list[NatsFinding] = [("JetStream is on", "")]
        findings += [
            _may(what, await _outcome(trying), complaints)
            for what, trying in (
                (f"the bucket {options.prefix}-members", _bucket(client, options)),
                (f"messages below {options.prefix}.p", _messages(client, options)),
            )
        ]
        return findings


def _jetstream(complaints: list[str]) -> NatsFinding:
    if complaints:
        return f"JetStream may not be used: {complaints[-1]}", "allow this user $JS.API.> and _INBOX.>"
    return "JetStream does not answer", "start nats-server with -js, and enable it for this account"


async def _outcome(trying: Awaitable[str]) -> str | Exception:
    try:
        return await trying
    except (NatsError, APIError, InternalError, TimeoutError) as error:
        return error


def _may(what: str, outcome: str | Exception, complaints: list[str]) -> NatsFinding:
    if isinstance(outcome, str):
        return f"{what}: {outcome}", ""
    why = complaints[-1] if complaints else str(outcome) or type(outcome).__name__
    return f"{what} cannot be used: {why}", "allow this user the subjects that docs/scaling.md lists"


async def _bucket(client: NatsClient, options: ClusterOptions) -> str:
    # The bucket's own code, over the connection of this check.
    connection = NatsConnection(options)
    connection.client = client
    bucket = Bucket(connection)
    try:
        info = await client.jetstream(timeout=tuning.TIMES.nats_check).stream_info(bucket.stream)
    except APIError:
        # NATS refuses a request whose two names differ. The refusal shows that this user may make streams.
        request = json.dumps({"name": "another"}).encode()
        await client.request(f"$JS.API.STREAM.CREATE.{bucket.stream}", request, timeout=tuning.TIMES.nats_check)
        return "not there yet; the first server makes it"
    with suppress(WrongRevisionError):
        # No key has this revision, so the write is refused. The refusal shows that this user may write.
        await bucket.write("doctor", b"", 2**62)
    watch = await bucket.watch(lambda entry, pending: None, lambda: None)
    await watch.close()
    return f"can be read and written; copies: {_copies(info)}"


def _copies(info: api.StreamInfo) -> int:
    return info.config.num_replicas or 1


async def _messages(client: NatsClient, options: ClusterOptions) -> str:
    subject = f"{options.prefix}.p.{secrets.token_urlsafe(16)}.m"
    heard: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def hear(message: Any) -> None:
        if not heard.done():
            heard.set_result(message)

    await client.subscribe(subject, cb=hear)
    await client.publish(subject, b"")
    async with asyncio.timeout(tuning.TIMES.nats_check):
        await heard
    return "sent and received"


def _without_password(server: str) -> str:
    parts = urlsplit(server)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

"""The ways to a NATS server: TLS, a user and a password, a credentials file."""

import base64
import hashlib
import json
import time
from pathlib import Path
from typing import Any

import nkeys
import pytest
from nacl.signing import SigningKey

from a2c_smcp.errors import InternalError
from a2c_smcp.server.cluster.connection import NatsConnection
from a2c_smcp.server.cluster.options import ClusterOptions
from tests.certificates import self_signed
from tests.nats_server import free_ports, running_nats
from tests.server.cluster.processes import registry

pytestmark = pytest.mark.usefixtures("patient")


async def test_it_is_entered_without_nats_and_says_at_once_that_nats_is_out_of_reach() -> None:
    async with NatsConnection(ClusterOptions((f"nats://127.0.0.1:{free_ports(1)[0]}",))) as connection:
        assert not connection.is_connected
        with pytest.raises(InternalError, match="NATS is out of reach"):
            connection.check()


async def test_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = self_signed(tmp_path, "127.0.0.1")
    with running_nats(tmp_path / "nats", ["--tls", "--tlscert", pair.cert, "--tlskey", pair.key]) as nats:
        options = ClusterOptions((nats.url.replace("nats://", "tls://"),))
        monkeypatch.setenv("SSL_CERT_FILE", pair.cert)
        async with registry(options) as here:
            await here.join("s1", "agent", "a", "o")


# --- credentials as NATS's own tool makes them


def _token(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


class _Key:
    """A key of NATS: an operator's, an account's or a user's."""

    def __init__(self, kind: int) -> None:
        self.raw = SigningKey.generate()
        self.seed = nkeys.encode_seed(bytes(self.raw), kind)
        self.public = nkeys.from_seed(bytearray(self.seed)).public_key.decode()

    def issue(self, subject: "_Key", name: str, **claims: Any) -> str:
        header = _token(json.dumps({"typ": "JWT", "alg": "ed25519-nkey"}).encode())
        body = {"iat": int(time.time()), "iss": self.public, "sub": subject.public, "name": name, "nats": claims}
        body["jti"] = base64.b32encode(hashlib.sha256(json.dumps(body).encode()).digest()).decode().rstrip("=")
        text = f"{header}.{_token(json.dumps(body).encode())}"
        return f"{text}.{_token(self.raw.sign(text.encode()).signature)}"


def _written(folder: Path) -> tuple[Path, Path]:
    """A server's configuration, and a credentials file that it accepts."""
    operator, account, system, user = (
        _Key(kind)
        for kind in (
            *(nkeys.PREFIX_BYTE_OPERATOR, nkeys.PREFIX_BYTE_ACCOUNT),
            *(nkeys.PREFIX_BYTE_ACCOUNT, nkeys.PREFIX_BYTE_USER),
        )
    )
    limits = {"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "conn": -1, "leaf": -1}
    storage = {"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1}
    accounts = {
        account.public: operator.issue(account, "office", type="account", version=2, limits={**limits, **storage}),
        system.public: operator.issue(system, "SYS", type="account", version=2, limits=limits),
    }
    config = folder / "nats.conf"
    config.write_text(
        f"operator: {operator.issue(operator, 'op', type='operator', version=2)}\n"
        f"system_account: {system.public}\nresolver: MEMORY\nresolver_preload: {json.dumps(accounts)}\n"
    )
    token = account.issue(user, "server", type="user", version=2, subs=-1, data=-1, payload=-1)
    creds = folder / "server.creds"
    creds.write_text(
        f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{user.seed.decode()}\n------END USER NKEY SEED------\n"
    )
    return config, creds


async def test_a_credentials_file(tmp_path: Path) -> None:
    config, creds = _written(tmp_path)
    with running_nats(tmp_path / "nats", ["--config", str(config)]) as nats:
        async with registry(ClusterOptions((nats.url,), creds)) as here:
            await here.join("s1", "agent", "a", "o")
        async with registry(ClusterOptions((nats.url,)), ready=False) as stranger:
            with pytest.raises(InternalError, match="NATS"):
                await stranger.join("s1", "agent", "a", "o")

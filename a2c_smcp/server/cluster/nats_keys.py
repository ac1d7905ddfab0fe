"""Who may do what in NATS, as signed tokens: an operator, its accounts, and users with only the subjects they need.
Pure.

The tokens are the same as those of `nsc`, NATS's own tool: JWTs that are signed with Ed25519 (`ed25519-nkey`).
"""

import base64
import hashlib
import json
from dataclasses import dataclass
from typing import Any, Final

import nkeys

__all__ = ["Account", "Operator", "Permissions", "new_seed", "server_permissions"]

_PREFIXES: Final = {
    "operator": nkeys.PREFIX_BYTE_OPERATOR,
    "account": nkeys.PREFIX_BYTE_ACCOUNT,
    "user": nkeys.PREFIX_BYTE_USER,
}
_NO_LIMIT: Final = -1


@dataclass(frozen=True, slots=True)
class Permissions:
    """The subjects that a user may publish to, and subscribe to."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]


def server_permissions(prefix: str) -> Permissions:
    """What an `a2c server` with this prefix needs, and nothing else. The server cannot delete the stream of the
    bucket. It can empty the stream, because a server deletes keys.
    """
    stream = f"KV_{prefix}-members"
    return Permissions(
        (
            "$JS.API.INFO",
            *(f"$JS.API.STREAM.{what}.{stream}" for what in ("INFO", "CREATE", "UPDATE", "MSG.GET")),
            f"$JS.API.CONSUMER.CREATE.{stream}",
            f"$JS.API.CONSUMER.DELETE.{stream}.*",
            f"$KV.{prefix}-members.>",
            f"{prefix}.p.>",
        ),
        ("_INBOX.>", f"{prefix}.p.>"),
    )


def new_seed(kind: str, randomness: bytes) -> str:
    """The secret of an `operator`, `account` or `user`, from 32 bytes that nobody can guess."""
    return str(nkeys.encode_seed(randomness, _PREFIXES[kind]).decode())


class _Signer:
    """A key pair that signs tokens."""

    def __init__(self, seed: str) -> None:
        self.seed = seed
        self._pair = nkeys.from_seed(bytearray(seed.encode()))
        self.public = str(self._pair.public_key.decode())

    def _token(self, name: str, subject: str, issued_at: int, claims: dict[str, Any]) -> str:
        body = {"iat": issued_at, "iss": self.public, "name": name, "sub": subject, "nats": {**claims, "version": 2}}
        digest = hashlib.sha512(json.dumps(body, sort_keys=True).encode()).digest()[:32]
        body["jti"] = base64.b32encode(digest).decode().rstrip("=")
        head = {"typ": "JWT", "alg": "ed25519-nkey"}
        text = f"{_encoded(json.dumps(head).encode())}.{_encoded(json.dumps(body).encode())}"
        return f"{text}.{_encoded(self._pair.sign(text.encode()))}"


class Operator(_Signer):
    """The key pair that NATS servers trust."""

    def token(self, name: str, system_account: str, issued_at: int) -> str:
        return self._token(name, self.public, issued_at, {"type": "operator", "system_account": system_account})

    def account_token(self, name: str, account: str, issued_at: int, *, streams: int = 0) -> str:
        """The token of an account that may have this many streams of any size."""
        storage = {"mem_storage": _NO_LIMIT, "disk_storage": _NO_LIMIT, "streams": streams, "consumer": _NO_LIMIT}
        counts = dict.fromkeys(("subs", "data", "payload", "imports", "exports", "conn", "leaf"), _NO_LIMIT)
        limits = {**counts, "wildcards": True, **(storage if streams else {})}
        return self._token(name, account, issued_at, {"type": "account", "limits": limits})


class Account(_Signer):
    """The key pair of an account. Its users share subjects and streams, and do not see those of other accounts."""

    def credentials(self, name: str, user_seed: str, permissions: Permissions, issued_at: int) -> str:
        """The text of a user's credentials file, with the secret."""
        claims = {
            "type": "user",
            "pub": {"allow": list(permissions.publish)},
            "sub": {"allow": list(permissions.subscribe)},
            **dict.fromkeys(("subs", "data", "payload"), _NO_LIMIT),
        }
        token = self._token(name, _Signer(user_seed).public, issued_at, claims)
        return (
            f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{user_seed}\n------END USER NKEY SEED------\n"
        )


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")

"""Credentials: who may connect, and what a key allows. Of offices it knows only the patterns that a key names."""

import hashlib
import hmac
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from a2c_smcp.errors import UnauthorizedError
from a2c_smcp.server.offices import Grant
from a2c_smcp.server.port import Newcomer
from a2c_smcp.types import Role
from a2c_smcp.utils.validation import Patterns, sentence
from a2c_smcp.web.hosts import AllowedHosts

__all__ = [
    "DEFAULT_HEADER",
    "APIKeyAuthentication",
    "AuthenticationProvider",
    "Credentials",
    "Key",
    "KeyFileError",
    "OpenAuthentication",
    "SyncAPIKeyAuthentication",
    "SyncAuthenticationProvider",
    "SyncOpenAuthentication",
    "credentials_of",
    "load_keys",
]

DEFAULT_HEADER = "x-api-key"


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client showed when it connected."""

    headers: Mapping[str, str] = field(repr=False)
    """The HTTP headers of the connection, by their names in lower case."""
    token: str | None = field(repr=False)
    """The token of `auth={"token": …}` in the Socket.IO connect, if there is one."""
    address: str
    """The client's address. Behind a trusted proxy it is the address that the proxy gives."""


class AuthenticationProvider(Protocol):
    """Decides who may connect to an asyncio server. For credentials of your own, write a class with this method."""

    async def authenticate(self, credentials: Credentials) -> Grant:
        """Return what the credentials allow, or raise `UnauthorizedError`. Called once for each connection."""
        ...


class SyncAuthenticationProvider(Protocol):
    """Decides who may connect to a threaded server."""

    def authenticate(self, credentials: Credentials) -> Grant:
        """Return what the credentials allow, or raise `UnauthorizedError`. Several threads may call it at once."""
        ...


def credentials_of(newcomer: Newcomer, auth: object) -> Credentials:
    """The credentials of a client. `auth` is what its CONNECT packet carries."""
    token = auth.get("token") if isinstance(auth, Mapping) else None
    return Credentials(newcomer.headers, token if isinstance(token, str) else None, newcomer.address)


class Key(BaseModel):
    """One `[[keys]]` entry: a secret, or its hash, and what it allows."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: str = Field(min_length=1)
    key: str | None = Field(default=None, min_length=1, repr=False)
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-fA-F]{64}$")
    roles: frozenset[Role] = frozenset({"agent", "computer"})
    offices: tuple[str, ...] = ("*",)
    names: Patterns | None = None

    @model_validator(mode="after")
    def _one_secret(self) -> "Key":
        if (self.key is None) == (self.sha256 is None):
            raise ValueError("give either key or sha256")
        return self

    @property
    def digest(self) -> bytes:
        """The SHA-256 of the secret."""
        return bytes.fromhex(self.sha256) if self.sha256 else _digest(self.key or "")

    @property
    def grant(self) -> Grant:
        """What the key allows."""
        return Grant(self.name, self.roles, self.offices, self.fingerprint, names=self.names)

    @property
    def fingerprint(self) -> str:
        """Tells this key from others, for logs and operators. Nobody can find the key from it."""
        return hashlib.sha256(b"a2c key fingerprint " + self.digest).hexdigest()[:12]


class KeyFileError(ValueError):
    """A keys file cannot be used. The text names the file, the entry and the field."""


class _KeyFile(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    keys: tuple[Key, ...] = Field(min_length=1)


def load_keys(path: Path) -> tuple[Key, ...]:
    """Read a TOML file of `[[keys]]` for `APIKeyAuthentication`. Raises `KeyFileError`, which names file and field.

    An entry has a `name`, either `key` or `sha256`, and optionally `roles`, `offices` and `names`, as in `Grant`.
    """
    try:
        return _KeyFile.model_validate(tomllib.loads(path.read_text("utf-8"))).keys
    except OSError as error:
        raise KeyFileError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise KeyFileError(f"{path}: not TOML: {error}") from None
    except ValidationError as error:
        raise KeyFileError(f"{path}: {sentence(error, 'file')}") from None


class _KeyRing:
    """Finds the key that was shown. The time that this takes does not tell which key it is, or how much was right."""

    def __init__(self, keys: Iterable[Key | str], *, header: str = DEFAULT_HEADER) -> None:
        self._header = header.lower()
        self._keys: list[tuple[bytes, Grant]] = []
        self._revoked: set[str] = set()
        self.replace(keys)

    def replace(self, keys: Iterable[Key | str]) -> None:
        """Accept these keys from now on, and no others. Raises `ValueError` if there is none, and changes nothing.

        Sessions that are connected stay: `SMCPNamespace.check_grants` ends those whose key is gone.
        """
        made = [key if isinstance(key, Key) else Key(name="api-key", key=key) for key in keys]
        if not made:
            raise ValueError("an API key check needs at least one key")
        self._keys = [(key.digest, key.grant) for key in made]
        # Of a key that is listed twice, the first entry counts, as in `grant`.
        self._by_fingerprint = {grant.fingerprint: grant for _, grant in reversed(self._keys)}

    def revoke(self, fingerprints: Iterable[str]) -> None:
        """Accept the keys with these fingerprints no more, even if `replace` brings them again."""
        self._revoked.update(fingerprints)

    def is_revoked(self, fingerprint: str) -> bool:
        return fingerprint in self._revoked

    def grants(self) -> list[Grant]:
        """What the keys allow, those that were revoked included."""
        return [grant for _, grant in self._keys]

    def current(self, grant: Grant) -> Grant | None:
        """What the key of an earlier grant allows now; `None` if it is not accepted any more."""
        if grant.fingerprint in self._revoked:
            return None
        return self._by_fingerprint.get(grant.fingerprint)

    def grant(self, credentials: Credentials) -> Grant:
        shown = [secret for secret in (credentials.headers.get(self._header), credentials.token) if secret]
        if not shown:
            raise UnauthorizedError(f"no credentials: send the header {self._header} or auth={{'token': …}}")
        found = None
        for secret in shown:
            digest = _digest(secret)
            for candidate, grant in self._keys:
                if hmac.compare_digest(digest, candidate) and found is None:
                    found = grant
        if found is None or found.fingerprint in self._revoked:
            raise UnauthorizedError("the API key is not known here")
        return found


class APIKeyAuthentication(_KeyRing):
    """Lets clients in that show one of `keys`, in the `header` or in the `auth` token.

    A key is a text, which allows everything, or an entry of `load_keys`. Raises `ValueError` if there is no key.
    """

    async def authenticate(self, credentials: Credentials) -> Grant:
        """Return what the shown key allows, or raise `UnauthorizedError`."""
        return self.grant(credentials)


class SyncAPIKeyAuthentication(_KeyRing):
    """`APIKeyAuthentication` for the threaded server."""

    def authenticate(self, credentials: Credentials) -> Grant:
        """Return what the shown key allows, or raise `UnauthorizedError`."""
        return self.grant(credentials)


class _OpenDoor:
    def __init__(self, allowed_hosts: Iterable[str] = ()) -> None:
        self.hosts = AllowedHosts(allowed_hosts)

    def grant(self, credentials: Credentials) -> Grant:
        given = credentials.headers
        self.hosts.check(*([given[name]] if name in given else [] for name in ("host", "origin")))
        return Grant()


class OpenAuthentication(_OpenDoor):
    """Lets every client in without a key, if `Host` and `Origin` are loopback names or among `allowed_hosts`.

    For loopback and tests. The check of names keeps web pages out: a web site can let its own name resolve to this
    machine, but the browser then sends that name.
    """

    async def authenticate(self, credentials: Credentials) -> Grant:
        """Allow everything, or raise `ForbiddenError` for another host name."""
        return self.grant(credentials)


class SyncOpenAuthentication(_OpenDoor):
    """`OpenAuthentication` for the threaded server."""

    def authenticate(self, credentials: Credentials) -> Grant:
        """Allow everything, or raise `ForbiddenError` for another host name."""
        return self.grant(credentials)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()

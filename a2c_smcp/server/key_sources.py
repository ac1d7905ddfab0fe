"""Where the keys of a server come from: options, files with one key, and a file of keys. They can be read again."""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from a2c_smcp.errors import BadRequestError
from a2c_smcp.server.auth import APIKeyAuthentication, Key, KeyFileError, load_keys
from a2c_smcp.server.offices import Grant
from a2c_smcp.server.switchboard import Switchboard
from a2c_smcp.server.token_auth import OidcAuthentication
from a2c_smcp.utils.secret_files import exposure, key_in

__all__ = ["KeySources", "LoadedKeys", "ServerKeys"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoadedKeys:
    keys: tuple[Key, ...]
    sources: dict[str, str]
    """Where the key with each fingerprint comes from, for people."""
    warnings: tuple[str, ...]
    """Which files others may read or change, and what to do about it."""


@dataclass(frozen=True, slots=True)
class KeySources:
    """What the command line names."""

    given: tuple[str, ...] = field(default=(), repr=False)
    key_files: tuple[Path, ...] = ()
    """Files with one key each, which may do everything."""
    keys_file: Path | None = None
    """A TOML file of keys, and what each of them allows."""

    @property
    def files(self) -> tuple[Path, ...]:
        return (*self.key_files, *(() if self.keys_file is None else (self.keys_file,)))

    def load(self) -> LoadedKeys:
        """Read all keys. Raises `KeyFileError` if a file cannot be used."""
        found = list(self._found())
        warnings = [exposure(file) for file in self.key_files]
        if self.keys_file is not None:
            of_file = [key for key, source in found if source == str(self.keys_file)]
            warnings.append(exposure(self.keys_file, secret=any(key.key for key in of_file)))
        return LoadedKeys(
            tuple(key for key, _ in found),
            {key.fingerprint: source for key, source in reversed(found)},
            tuple(warning for warning in warnings if warning is not None),
        )

    def _found(self) -> Iterator[tuple[Key, str]]:
        for text in self.given:
            yield Key(name="api-key", key=text), "an option"
        for file in self.key_files:
            try:
                yield Key(name="api-key", key=key_in(file)), str(file)
            except BadRequestError as error:
                raise KeyFileError(error.message) from None
        if self.keys_file is not None:
            for key in load_keys(self.keys_file):
                yield key, str(self.keys_file)


class ServerKeys:
    """The keys that a server accepts now. `auth` checks them."""

    def __init__(self, sources: KeySources, loaded: LoadedKeys, header: str) -> None:
        self.sources = sources
        self.auth = APIKeyAuthentication(loaded.keys, header=header)
        self._came_from = loaded.sources
        self.door: APIKeyAuthentication | OidcAuthentication = self.auth
        """What clients pass: the keys alone, or tokens beside them."""

    def listed(self) -> list[tuple[Grant, str, bool]]:
        """What each key allows, where it comes from, and whether it was revoked."""
        return [
            (grant, self._came_from[grant.fingerprint], self.auth.is_revoked(grant.fingerprint))
            for grant in self.auth.grants()
        ]

    async def read_again(self, switchboard: Switchboard) -> str | None:
        """Read the keys again, and end the sessions whose keys do not allow them any more. Returns what has changed.
        Raises `KeyFileError`, and changes nothing.
        """
        loaded = await asyncio.to_thread(self.sources.load)
        for warning in loaded.warnings:
            logger.warning("%s", warning)
        before = {grant.fingerprint: grant for grant in self.auth.grants()}
        self.auth.replace(loaded.keys)
        self._came_from = loaded.sources
        ended = await switchboard.check_grants(self.door.current)
        return _difference(before, {grant.fingerprint: grant for grant in self.auth.grants()}, ended)


def _difference(before: dict[str, Grant], after: dict[str, Grant], ended: int) -> str | None:
    """What has become of the keys, in words; `None` if nothing has."""
    changed = [after[each].name for each in before if each in after and before[each] != after[each]]
    added = [grant.name for fingerprint, grant in after.items() if fingerprint not in before]
    removed = [grant.name for fingerprint, grant in before.items() if fingerprint not in after]
    parts = [
        f"{len(names)} keys {what} ({', '.join(names[:10])})"
        for what, names in (("added", added), ("removed", removed), ("changed", changed))
        if names
    ]
    if ended:
        parts.append(f"{ended} sessions ended")
    return ", ".join(parts) or None

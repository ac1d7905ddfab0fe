"""Looks up what rules must know about a call before it is decided: where links lead, whether a file system folds case,
and which addresses a host has. In threads, and with a deadline: what is not known by then is unknown.
"""

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, TypeVar

import anyio
import anyio.to_thread

from a2c_smcp.computer.rules.conditions import Known
from a2c_smcp.computer.rules.deciding import RuledCall, names_to_resolve, paths_to_resolve
from a2c_smcp.computer.rules.rule import Rule

__all__ = ["FindAddresses", "LookUp", "Needed", "Resolve", "addresses_of", "known_now", "needed_for", "real_paths"]

Found = TypeVar("Found")
#: Where each path leads after all links; `None` if nobody can say.
Resolve: TypeAlias = Callable[[Sequence[str]], Mapping[str, str | None]]
#: The addresses of each name; `None` if nobody can say.
FindAddresses: TypeAlias = Callable[[Sequence[str]], Mapping[str, tuple[str, ...] | None]]

_MOST_THREADS: Final = 8


def real_paths(paths: Sequence[str]) -> dict[str, str | None]:
    """Where each path leads after all links; `None` if nobody can say. Blocking, perhaps for long."""
    found: dict[str, str | None] = {}
    for path in paths:
        try:
            found[path] = os.path.realpath(path)
        except (OSError, ValueError):  # half a character
            found[path] = None
    return found


def addresses_of(names: Sequence[str]) -> dict[str, tuple[str, ...] | None]:
    """The addresses of each name by this computer's resolver. Blocking, perhaps for long. A name without an address may
    have one for the tool's server, so nobody can say.
    """
    found: dict[str, tuple[str, ...] | None] = {}
    for name in names:
        try:
            infos = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            found[name] = None
        else:
            found[name] = tuple(dict.fromkeys(str(info[4][0]) for info in infos))
    return found


def folds_case(path: str) -> bool:
    """Whether the file system takes upper and lower case for the same at a path: a part of it that exists is the same
    file by another name. Blocking.
    """
    path = os.path.realpath(path)
    while True:
        folder, name = os.path.split(path)
        if not name:
            return False
        other = name.swapcase()
        try:
            if other != name and os.path.samestat(os.lstat(path), os.lstat(os.path.join(folder, other))):
                return True
        except (OSError, ValueError):
            pass  # it does not exist, or not by this name
        path = folder


@dataclass(frozen=True, slots=True)
class Needed:
    """What must be looked up before a call can be decided."""

    paths: Sequence[str] = ()
    names: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.paths or self.names)


def needed_for(rules: Sequence[Rule], call: RuledCall) -> Needed:
    return Needed(paths_to_resolve(rules, call), names_to_resolve(rules, call))


def known_now(rules: Sequence[Rule], call: RuledCall) -> Known:
    """Everything about a call. Blocking, for as long as it takes."""
    needed = needed_for(rules, call)
    paths, folding = _resolved(real_paths, needed.paths)
    return Known(paths.get, folding.__contains__, addresses_of(needed.names).get)


class LookUp:
    """Paths and names have threads of their own: a dead network drive must not stop the names, nor the other way."""

    def __init__(self, resolve: Resolve, find_addresses: FindAddresses, seconds: float) -> None:
        self._resolve = resolve
        self._find_addresses = find_addresses
        self._seconds = seconds
        # A thread that waits for a dead network drive keeps its place. It must not take one that others need.
        self._paths = anyio.CapacityLimiter(_MOST_THREADS)
        self._names = anyio.CapacityLimiter(_MOST_THREADS)

    async def known(self, needed: Needed, is_denied: Callable[[Known], bool]) -> Known:
        """What is known in time. A path or a name that is not is unknown: no `allow` takes it, and every `deny`.

        No name is looked up if the call `is_denied` without that: a question to a name server tells others of the call.
        """
        known = Known(lambda _: None)
        if needed.paths:
            nothing: tuple[Mapping[str, str | None], frozenset[str]] = {}, frozenset()
            found = await self._in_time(lambda: _resolved(self._resolve, needed.paths), self._paths, nothing)
            known = Known(found[0].get, found[1].__contains__)
        if not needed.names or is_denied(known):
            return known
        unknown: Mapping[str, tuple[str, ...] | None] = {}
        addresses = await self._in_time(lambda: self._find_addresses(needed.names), self._names, unknown)
        return replace(known, addresses=addresses.get)

    async def _in_time(self, find: Callable[[], Found], limiter: anyio.CapacityLimiter, otherwise: Found) -> Found:
        with anyio.move_on_after(self._seconds):
            return await anyio.to_thread.run_sync(find, abandon_on_cancel=True, limiter=limiter)
        return otherwise


def _resolved(resolve: Resolve, paths: Sequence[str]) -> tuple[Mapping[str, str | None], frozenset[str]]:
    return resolve(paths), frozenset(path for path in paths if folds_case(path))

"""What one server process tells operators about itself, and does for them. Every answer is bounded."""

import asyncio
import os
import socket
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest, nsmallest
from typing import Any, Final

from a2c_smcp import __version__
from a2c_smcp.errors import BadRequestError, NotFoundError
from a2c_smcp.server.admin.rows import (
    MOST_ROWS,
    SHOWN_AT_TOP,
    KeyRow,
    MemberRow,
    MembersPage,
    OfficeRow,
    OfficesPage,
    ProcessRow,
    ToolRow,
    TopView,
    member_order,
)
from a2c_smcp.server.call_tally import Tally
from a2c_smcp.server.clients import Client
from a2c_smcp.server.offices import Grant
from a2c_smcp.server.switchboard import Switchboard
from a2c_smcp.utils.text import printable

__all__ = ["Controls", "OperatorKeys", "ProcessAdmin"]

#: Sessions that are looked at in one turn of the event loop.
_SLICE: Final = 500


@dataclass(frozen=True, slots=True)
class OperatorKeys:
    """The keys of a server, as an operator may see and end them."""

    listed: Callable[[], Sequence[tuple[Grant, str, bool]]]
    """What each key allows, where it comes from, and whether it was revoked."""
    revoke: Callable[[Collection[str]], Awaitable[None]]
    """Accept the keys with these fingerprints no more, and end their sessions."""


def _nothing_to_reload() -> Awaitable[list[str]]:
    raise NotFoundError("this server has no files to read again")


def _cannot_end() -> None:
    raise NotFoundError("this server is ended by the program that it is a part of")


@dataclass(slots=True)
class Controls:
    """What the command around a server lets operators do."""

    keys: OperatorKeys | None = None
    reload: Callable[[], Awaitable[list[str]]] = field(default=_nothing_to_reload)
    """Read the files again. Returns what has changed, and what is wrong, in sentences."""
    end: Callable[[], None] = field(default=_cannot_end)
    """Begin to end this process, as SIGTERM does."""
    ready: Callable[[], str | None] = field(default=lambda: None)
    """Why this process takes no new clients now; `None` if it does."""
    lag: Callable[[], float] = field(default=lambda: 0.0)


class ProcessAdmin:
    """The operations on one process. Raises `SMCPError` for an operation that cannot be done."""

    def __init__(self, switchboard: Switchboard, controls: Controls) -> None:
        self._switchboard = switchboard
        self._controls = controls
        self._host = f"{socket.gethostname()}:{os.getpid()}"
        self._since = time.time()
        self._operations: Mapping[str, Callable[[Mapping[str, Any]], Awaitable[Any]]] = {
            "top": self._top,
            "processes": self._processes,
            "offices": self._offices,
            "members": self._members,
            "find": self._find,
            "kick": self._kick,
            "drain": self._drain,
            "reload": self._reload,
            "keys": self._keys,
            "revoke": self._revoke,
        }

    @property
    def process(self) -> str:
        """The name of this process. In a cluster it is the one that the others know."""
        return str(getattr(self._switchboard.registry, "process", "")) or self._host

    async def do(self, operation: str, given: Mapping[str, Any]) -> Any:
        """Do one operation here. The arguments are what `requests` has checked."""
        if (act := self._operations.get(operation)) is None:
            raise BadRequestError(f"this server process does not know the operation {operation[:50]!r}")
        return await act(given)

    # --- looking

    async def _members(self, given: Mapping[str, Any]) -> MembersPage:
        limit, after = _limit(given), given.get("after")
        office, name = given.get("office"), given.get("name")

        def wanted(client: Client) -> bool:
            record = client.record
            if office is not None and record.office != office:
                return False
            if name is not None and record.name != name:
                return False
            return after is None or self._order(client) > after

        first: list[Client] = []
        for clients in self._slices():
            first = nsmallest(limit + 1, [*first, *filter(wanted, clients)], key=self._order)
            await asyncio.sleep(0)
        rows = [self._row(client) for client in first[:limit]]
        return {"members": rows, "next": member_order(rows[-1]) if len(first) > limit else None}

    async def _offices(self, given: Mapping[str, Any]) -> OfficesPage:
        limit, after = _limit(given), given.get("after") or ""
        found: dict[str, OfficeRow] = {}
        for clients in self._slices():
            for client in clients:
                record = client.record
                if record.office > after:
                    row = found.setdefault(record.office, _office_row(record.office))
                    if record.role == "agent":
                        row["agent"] = record.name
                    else:
                        row["computers"] += 1
            await asyncio.sleep(0)
        names = nsmallest(limit + 1, found)
        now = time.monotonic()
        for name in names:
            _count(found[name], self._switchboard.tally.office(name), now)
        rows = [found[name] for name in names[:limit]]
        return {"offices": rows, "next": names[limit - 1] if len(names) > limit else None}

    async def _processes(self, given: Mapping[str, Any]) -> list[ProcessRow]:
        return [self._process_row()]

    async def _top(self, given: Mapping[str, Any]) -> TopView:
        now, tally = time.monotonic(), self._switchboard.tally
        offices = []
        for name, counted in tally.busiest_offices(SHOWN_AT_TOP, now):
            row = _office_row(name)
            _count(row, counted, now)
            offices.append(row)
        tools = [
            ToolRow(
                office=name.office,
                computer=printable(name.computer),
                tool=printable(name.tool),
                calls=counted.calls,
                failed=counted.failed,
                per_minute=round(counted.per_minute(now), 2),
                mean=round(counted.mean, 4),
                slowest=round(counted.slowest, 4),
            )
            for name, counted in tally.slowest_tools(SHOWN_AT_TOP)
        ]
        queues: list[tuple[int, Client]] = []
        for clients in self._slices():
            waiting = ((client.line.queued_bytes, client) for client in clients)
            queues = nlargest(SHOWN_AT_TOP, [*queues, *waiting], key=lambda pair: pair[0])
            await asyncio.sleep(0)
        rows = [self._row(client) for queued, client in queues if queued]
        return {"processes": [self._process_row()], "offices": offices, "tools": tools, "queues": rows}

    async def _find(self, given: Mapping[str, Any]) -> MembersPage:
        """The sessions that a text names: by the session itself, or as `NAME/OFFICE`. Names may have slashes in them,
        so the text is not cut in two.
        """
        found: list[MemberRow] = []
        for clients in self._slices():
            found += [self._row(client) for client in clients if _is_named(client, given["target"])]
            await asyncio.sleep(0)
        return {"members": found[:MOST_ROWS], "next": None}

    async def _keys(self, given: Mapping[str, Any]) -> list[KeyRow]:
        if self._controls.keys is None:
            return []
        sessions: dict[str, int] = {}
        for clients in self._slices():
            for client in clients:
                fingerprint = client.record.grant.fingerprint
                sessions[fingerprint] = sessions.get(fingerprint, 0) + 1
            await asyncio.sleep(0)
        return [
            KeyRow(
                name=key.name,
                fingerprint=key.fingerprint,
                roles=sorted(key.roles),
                offices=list(key.offices[:100]),
                names=None if key.names is None else list(key.names[:100]),
                source=source,
                state="revoked" if is_revoked else "valid",
                sessions=sessions.get(key.fingerprint, 0),
                processes=1,
            )
            for key, source, is_revoked in list(self._controls.keys.listed())[:MOST_ROWS]
        ]

    # --- acting

    async def _kick(self, given: Mapping[str, Any]) -> int:
        return int(self._switchboard.kick(given["session"]))

    async def _drain(self, given: Mapping[str, Any]) -> bool:
        if given.get("process") not in (None, self.process, self._host):
            return False
        self._controls.end()
        return True

    async def _reload(self, given: Mapping[str, Any]) -> dict[str, list[str]]:
        return {self._host: await self._controls.reload()}

    async def _revoke(self, given: Mapping[str, Any]) -> list[str]:
        """Revoke the keys of this name or fingerprint. Returns their fingerprints."""
        if (keys := self._controls.keys) is None:
            return []
        found = {key.fingerprint for key, _, _ in keys.listed() if given["key"] in (key.name, key.fingerprint)}
        if found:
            await keys.revoke(found)
        return sorted(found)

    # --- rows

    def _slices(self) -> Iterator[list[Client]]:
        """All sessions, in parts. Wait a turn of the loop after each part."""
        clients = list(self._switchboard.clients)
        return (clients[start : start + _SLICE] for start in range(0, len(clients), _SLICE))

    def _order(self, client: Client) -> list[str]:
        record = client.record
        return [record.office, record.role or "", record.name, self.process, client.sid]

    def _row(self, client: Client) -> MemberRow:
        record, line = client.record, client.line
        return {
            "session": client.sid,
            "office": record.office,
            "role": record.role or "",
            "name": record.name,
            "key": record.grant.name,
            "bound": record.grant.bound,
            "fingerprint": record.grant.fingerprint,
            "address": record.address[:64],
            "version": record.version,
            "process": self.process,
            "host": self._host,
            "since": round(record.since, 3),
            "calls": record.calls,
            "received": line.received_bytes,
            "sent": line.sent_bytes,
            "queued": line.queued_bytes,
        }

    def _process_row(self) -> ProcessRow:
        switchboard = self._switchboard
        counts = switchboard.registry.counts()
        return {
            "process": self.process,
            "host": self._host,
            "version": __version__,
            "since": round(self._since, 3),
            "ready": self._controls.ready() or "ready",
            "sessions": counts.sessions,
            "offices": counts.offices,
            "pending": switchboard.pending_relays,
            "queued": sum(switchboard.queued_bytes()),
            "lag": round(self._controls.lag(), 4),
        }


def _limit(given: Mapping[str, Any]) -> int:
    return min(int(given.get("limit", MOST_ROWS)), MOST_ROWS)


def _is_named(client: Client, target: str) -> bool:
    record = client.record
    return target == client.sid or (bool(record.office) and target == f"{record.name}/{record.office}")


def _office_row(name: str) -> OfficeRow:
    return {"office": name, "agent": "", "computers": 0, "calls": 0, "failed": 0, "per_minute": 0.0}


def _count(row: OfficeRow, counted: Tally | None, now: float) -> None:
    if counted is not None:
        row["calls"], row["failed"] = counted.calls, counted.failed
        row["per_minute"] = round(counted.per_minute(now), 2)

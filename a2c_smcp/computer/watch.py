"""What MCP's change notifications mean for the Desktop and the Finder, and when to announce it.

Pure: no sockets, no clock. The shell lists and reads resources; this compares what was listed before and after, over
all servers, and says which channel to announce and which documents to read again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, TypeAlias

from a2c_smcp.computer.utils.dpe_uri import is_dpe_uri, try_parse_dpe_uri
from a2c_smcp.smcp import UPDATE_DESKTOP_EVENT, UPDATE_FINDER_EVENT
from a2c_smcp.types import SERVER_NAME
from a2c_smcp.utils.window_uri import is_window_uri

__all__ = ["ANNOUNCE_SECONDS", "Announcements", "Channel", "DocumentRef", "ListChange", "Watch", "channel_of"]

#: A host and a `doc_ref`; `None` for all documents of that host.
DocumentRef: TypeAlias = tuple[str, str | None]

#: How far apart two announcements of one channel are at least.
ANNOUNCE_SECONDS: Final = 0.1


class Channel(Enum):
    """What an agent sees besides tools; the value is the event that announces a change."""

    DESKTOP = UPDATE_DESKTOP_EVENT
    FINDER = UPDATE_FINDER_EVENT


def channel_of(uri: str) -> Channel | None:
    """The channel that a resource belongs to by its scheme, valid or not; `None` for every other resource.

    A `ResourceUpdated` of a channel's URI is announced at once, without comparing anything.
    """
    if is_window_uri(uri):
        return Channel.DESKTOP
    return Channel.FINDER if is_dpe_uri(uri) else None


@dataclass(frozen=True, slots=True)
class ListChange:
    """What a new list of one server's resources means."""

    announce: frozenset[Channel]
    added: frozenset[str] = frozenset()
    """URIs of either channel that this server did not list before: to be subscribed to, and documents to be read."""
    removed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Watch:
    """The URIs of either channel that each server lists. A value: every change returns a new one."""

    listed: Mapping[SERVER_NAME, frozenset[str]] = field(default_factory=dict)
    # Derived, because ten thousand documents may say one after another that they were updated.
    _documents: Mapping[SERVER_NAME, Mapping[DocumentRef, frozenset[str]]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def uris(self, channel: Channel) -> frozenset[str]:
        """What all servers list together."""
        return frozenset(uri for uris in self.listed.values() for uri in uris if channel_of(uri) is channel)

    def relist(self, server: SERVER_NAME, uris: Iterable[str]) -> tuple["Watch", ListChange]:
        """After a server started, or its list changed. A server without `resources.subscribe` lists nothing."""
        ours = frozenset(uri for uri in uris if channel_of(uri) is not None)
        return self._changed(server, {**self.listed, server: ours})

    def drop(self, server: SERVER_NAME) -> tuple["Watch", ListChange]:
        """After a server stopped, died or was removed."""
        return self._changed(server, {name: uris for name, uris in self.listed.items() if name != server})

    def stale_documents(self, server: SERVER_NAME, uri: str) -> frozenset[str]:
        """The listed documents to read again after this server said that a `dpe://` URI was updated.

        A document for itself, its pages and its elements; for a server's catalogue, all documents of that host.
        """
        updated = try_parse_dpe_uri(uri)
        return frozenset() if updated is None else self.documents(server, (updated.host, updated.doc_ref))

    def documents(self, server: SERVER_NAME, ref: DocumentRef) -> frozenset[str]:
        """The URIs under which this server lists a document, or all documents of a host."""
        return self._documents.get(server, {}).get(ref, frozenset())

    def _changed(self, server: SERVER_NAME, listed: Mapping[SERVER_NAME, frozenset[str]]) -> tuple["Watch", ListChange]:
        before = self.listed.get(server, frozenset())
        after = listed.get(server, frozenset())
        new = Watch(listed, {**self._documents, server: _by_ref(after)})
        announce = frozenset(channel for channel in Channel if self.uris(channel) != new.uris(channel))
        return new, ListChange(announce, added=after - before, removed=before - after)


def _by_ref(uris: Iterable[str]) -> dict[DocumentRef, frozenset[str]]:
    found: dict[DocumentRef, set[str]] = {}
    for uri in uris:
        if (document := try_parse_dpe_uri(uri)) is not None and document.level == 1:
            found.setdefault((document.host, document.doc_ref), set()).add(uri)
            found.setdefault((document.host, None), set()).add(uri)
    return {ref: frozenset(listed) for ref, listed in found.items()}


@dataclass(frozen=True, slots=True)
class Announcements:
    """When one channel is to be announced: the first change at once, then one in 100 ms, the last never lost.

    The shell calls `change` for every change, and sends when `due` has come, calling `sent` just before, so that a
    change during the sending is not lost either.
    """

    due: float | None = None
    """When to send; `None` when there is nothing to say."""
    last: float | None = None

    def change(self, now: float) -> "Announcements":
        if self.due is not None:
            return self
        return replace(self, due=now if self.last is None else max(now, self.last + ANNOUNCE_SECONDS))

    def sent(self, now: float) -> "Announcements":
        return Announcements(due=None, last=now)

"""What MCP's change notifications mean for the Desktop and the Finder, and when to announce it.

Pure: no sockets, no clock. The shell lists and reads resources; this compares what was listed before and after, over
all servers, and says which channel to announce and which documents to read again.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeAlias

from a2c_smcp.smcp import UPDATE_DESKTOP_EVENT, UPDATE_FINDER_EVENT
from a2c_smcp.types import SERVER_NAME
from a2c_smcp.utils.dpe_uri import document_ref, document_uri, is_dpe_uri, try_parse_dpe_uri
from a2c_smcp.utils.window_uri import is_window_uri

__all__ = ["ANNOUNCE_SECONDS", "Channel", "DocumentRef", "Listed", "Watch", "channel_of"]

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


class Listed:
    """What one server lists for either channel, `add`ed a few at a time: a hundred thousand at once take a second.

    Not to be changed once it is with a `Watch`.
    """

    def __init__(self, uris: Iterable[str] = ()) -> None:
        self.channels: Mapping[Channel, set[str]] = {channel: set() for channel in Channel}
        self._hosts: dict[str, set[str]] = {}
        """The documents of each host that anything is listed of."""
        self._documents: dict[DocumentRef, str | set[str]] = {}
        """The URIs of each document; mostly it has one."""
        self._implied: dict[DocumentRef, str] = {}
        """The URIs of documents of which a page or an element is listed."""
        self._others: set[int] = set()
        self.add(uris)

    def add(self, uris: Iterable[str]) -> None:
        for uri in uris:
            channel = channel_of(uri)
            if channel is None:
                self._others.add(hash(uri))
                continue
            self.channels[channel].add(uri)
            if channel is not Channel.FINDER:
                continue
            if (ref := document_ref(uri)) is not None:
                self._hosts.setdefault(ref[0], set()).add(uri)
                self._add_document(ref, uri)
            elif (part := try_parse_dpe_uri(uri)) is not None:
                self._hosts.setdefault(part.host, set())
                if (document := document_uri(uri)) is not None:
                    self._implied.setdefault((part.host, part.doc_ref), document)

    def add_others(self, hashes: Iterable[int]) -> None:
        """The hashes of URIs that are of no channel."""
        self._others.update(hashes)

    def _add_document(self, ref: DocumentRef, uri: str) -> None:
        known = self._documents.setdefault(ref, uri)
        if isinstance(known, set):
            known.add(uri)
        elif known != uri:
            self._documents[ref] = {known, uri}

    def documents(self, ref: DocumentRef) -> Set[str]:
        """The URIs of a document, or of all documents of a host. One that is not listed itself has its parts' URI."""
        host, doc_ref = ref
        if doc_ref is not None:
            found = self._documents.get(ref) or self._implied.get(ref)
            return frozenset({found} if isinstance(found, str) else found or ())
        implied = {uri for known, uri in self._implied.items() if known[0] == host and known not in self._documents}
        listed = self._hosts.get(host, frozenset[str]())
        return listed | implied if implied else listed

    def names_host(self, host: str) -> bool:
        """Whether anything of this host is listed, at any level."""
        return host in self._hosts

    def lists_other(self, uri: str) -> bool:
        """Whether this URI, which is of no channel, is listed."""
        return hash(uri) in self._others

    @property
    def uris(self) -> frozenset[str]:
        return frozenset().union(*self.channels.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Listed) and self.channels == other.channels

    def __contains__(self, uri: str) -> bool:
        return any(uri in uris for uris in self.channels.values())


_NOTHING: Final = Listed()


@dataclass(frozen=True, slots=True)
class Watch:
    """What each server lists for either channel. A value: every change returns a new one."""

    listed: Mapping[SERVER_NAME, Listed] = field(default_factory=dict)

    def uris(self, channel: Channel) -> frozenset[str]:
        """What all servers list together."""
        return frozenset().union(*(listed.channels[channel] for listed in self.listed.values()))

    def relist(self, server: SERVER_NAME, listed: Listed) -> tuple["Watch", frozenset[Channel]]:
        """After a server started, or its list changed: what is watched now, and the channels to announce.

        A server without `resources.subscribe` lists nothing.
        """
        return self._changed({**self.listed, server: listed})

    def drop(self, server: SERVER_NAME) -> tuple["Watch", frozenset[Channel]]:
        """After a server stopped, died or was removed: what is watched now, and the channels to announce."""
        return self._changed({name: listed for name, listed in self.listed.items() if name != server})

    def lists(self, server: SERVER_NAME, uri: str) -> bool:
        """Whether this server lists this window or document."""
        return uri in self.listed.get(server, _NOTHING)

    def lists_other(self, server: SERVER_NAME, uri: str) -> bool:
        """Whether this server lists this resource, which is neither a window nor a document."""
        return self.listed.get(server, _NOTHING).lists_other(uri)

    def names_host(self, server: SERVER_NAME, host: str) -> bool:
        """Whether this server lists anything of this host: its catalogue, a document, a page or an element."""
        return self.listed.get(server, _NOTHING).names_host(host)

    def stale_documents(self, server: SERVER_NAME, uri: str) -> Set[str]:
        """The listed documents to read again after this server said that a `dpe://` URI was updated.

        A document for itself, its pages and its elements; for a server's catalogue, all documents of that host.
        """
        updated = try_parse_dpe_uri(uri)
        return frozenset() if updated is None else self.documents(server, (updated.host, updated.doc_ref))

    def documents(self, server: SERVER_NAME, ref: DocumentRef) -> Set[str]:
        """The URIs under which this server lists a document, or all documents of a host; for a document of which only
        parts are listed, the URI that those parts begin with.
        """
        return self.listed.get(server, _NOTHING).documents(ref)

    def _changed(self, listed: Mapping[SERVER_NAME, Listed]) -> tuple["Watch", frozenset[Channel]]:
        new = Watch(listed)
        return new, frozenset(channel for channel in Channel if self.uris(channel) != new.uris(channel))

"""What MCP's change notifications mean for the Desktop and the Finder. Pure: no sockets, no clock.

The caller lists and reads resources. This module compares the lists of all servers before and after, and says which
channel has changed and which documents must be read again.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeAlias

from a2c_smcp.smcp import UPDATE_DESKTOP_EVENT, UPDATE_FINDER_EVENT
from a2c_smcp.types import SERVER_NAME
from a2c_smcp.utils.dpe_uri import document_ref, document_uri, is_dpe_uri, try_parse_dpe_uri
from a2c_smcp.utils.window_uri import is_window_uri

__all__ = ["Channel", "DocumentRef", "Listed", "Watch", "channel_of"]

#: A host and a `doc_ref`; with `None`, all documents of that host.
DocumentRef: TypeAlias = tuple[str, str | None]


class Channel(Enum):
    """What an agent sees besides tools. The value is the event that announces a change."""

    DESKTOP = UPDATE_DESKTOP_EVENT
    FINDER = UPDATE_FINDER_EVENT


def channel_of(uri: str) -> Channel | None:
    """The channel of a resource, by its URI's scheme; `None` if the resource belongs to no channel. The rest of the
    URI may be invalid.
    """
    if is_window_uri(uri):
        return Channel.DESKTOP
    return Channel.FINDER if is_dpe_uri(uri) else None


class Listed:
    """What one server lists for both channels. `add` a few URIs at a time: a hundred thousand at once take a second.

    Do not change it once a `Watch` has it.
    """

    def __init__(self, uris: Iterable[str] = ()) -> None:
        self.channels: Mapping[Channel, set[str]] = {channel: set() for channel in Channel}
        self._hosts: dict[str, set[str]] = {}
        """The listed documents of each host. Empty if only catalogues, pages or elements of the host are listed."""
        self._documents: dict[DocumentRef, str | set[str]] = {}
        """The URI of each document, or a set of URIs if it has several."""
        self._implied: dict[DocumentRef, str] = {}
        """The URIs of documents that are known because one of their pages or elements is listed."""
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
        """Add resources of neither channel, by the hashes of their URIs."""
        self._others.update(hashes)

    def _add_document(self, ref: DocumentRef, uri: str) -> None:
        known = self._documents.setdefault(ref, uri)
        if isinstance(known, set):
            known.add(uri)
        elif known != uri:
            self._documents[ref] = {known, uri}

    def documents(self, ref: DocumentRef) -> Set[str]:
        """The URIs of a document, or of all documents of a host.

        If only parts of a document are listed, its URI is the one that these parts begin with.
        """
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
        """Whether this URI, which belongs to neither channel, is listed."""
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
    """What each server lists for both channels. A value: every change returns a new one."""

    listed: Mapping[SERVER_NAME, Listed] = field(default_factory=dict)

    def uris(self, channel: Channel) -> frozenset[str]:
        """The URIs that all servers together list for a channel."""
        return frozenset().union(*(listed.channels[channel] for listed in self.listed.values()))

    def relist(self, server: SERVER_NAME, listed: Listed) -> tuple["Watch", frozenset[Channel]]:
        """A server has started, or its list has changed. Returns the new watch, and the channels to announce."""
        return self._changed({**self.listed, server: listed})

    def drop(self, server: SERVER_NAME) -> tuple["Watch", frozenset[Channel]]:
        """A server has stopped, has died or was removed. Returns the new watch, and the channels to announce."""
        return self._changed({name: listed for name, listed in self.listed.items() if name != server})

    def of(self, server: SERVER_NAME) -> Listed:
        """What this server lists."""
        return self.listed.get(server, _NOTHING)

    def stale_documents(self, server: SERVER_NAME, uri: str) -> Set[str]:
        """The listed documents to read again after this server said that a `dpe://` URI was updated.

        For a document, a page or an element: that document. For a catalogue: all documents of its host.
        """
        updated = try_parse_dpe_uri(uri)
        return frozenset() if updated is None else self.of(server).documents((updated.host, updated.doc_ref))

    def _changed(self, listed: Mapping[SERVER_NAME, Listed]) -> tuple["Watch", frozenset[Channel]]:
        new = Watch(listed)
        return new, frozenset(channel for channel in Channel if self.uris(channel) != new.uris(channel))

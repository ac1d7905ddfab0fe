"""Decides which MCP server a resource is read from, and what a failed reading means. Pure: reads nothing.

An agent may read windows and documents that are shown, what a server shares, and what a tool gave it a link to.
"""

import logging
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from mcp_types import INVALID_PARAMS

from a2c_smcp.computer.mcp_clients.mcp_error import MCPError
from a2c_smcp.computer.resources.shared_lists import SharedItems
from a2c_smcp.computer.resources.uri_templates import MatchedUri
from a2c_smcp.computer.watching.announcements import Watch
from a2c_smcp.errors import (
    DocumentNotFoundError,
    ElementNotFoundError,
    ForbiddenError,
    InternalError,
    InvalidDPEURIError,
    NotFoundError,
    PageOutOfRangeError,
    SMCPError,
    error_from_payload,
)
from a2c_smcp.types import SERVER_NAME
from a2c_smcp.utils.dpe_uri import ParsedDPEUri, parse_dpe_uri
from a2c_smcp.utils.text import cut
from a2c_smcp.utils.window_uri import WindowURI

__all__ = ["Readable", "Target", "find_target", "refusal"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Target:
    """Where a resource is to be read."""

    server: SERVER_NAME
    document: ParsedDPEUri | None = None
    """`None` for a window, and for any other resource."""
    listed: Set[str] = frozenset()
    """The URIs under which the server lists that document; empty if it does not."""


@dataclass(frozen=True, slots=True)
class Readable:
    """What an agent may read."""

    watch: Watch
    """The windows and documents that are shown, and what else servers list."""
    shared: Mapping[SERVER_NAME, SharedItems] = field(default_factory=dict)
    """What servers share besides."""
    linked: Collection[SERVER_NAME] = ()
    """The servers whose tools gave the agent a link to the resource."""


def find_target(uri: str, readable: Readable, order: Iterable[SERVER_NAME]) -> Target:
    """The server to ask; if several list the resource, the first in this order. Raises an error if no server can be
    asked.
    """
    order = list(order)
    try:
        match uri.partition(":")[0]:
            case "window":
                return _find_window(uri, readable.watch, order)
            case "dpe":
                return _find_document(uri, parse_dpe_uri(uri), readable.watch, order)
        raise InvalidDPEURIError(uri, "neither a window:// nor a dpe:// URI, nor the URI of a resource that is shared")
    except (SMCPError, ValueError):
        if (server := _find_shared(uri, readable, order)) is not None:
            return Target(server)
        raise


def _find_shared(uri: str, readable: Readable, order: Iterable[SERVER_NAME]) -> SERVER_NAME | None:
    """The server that shares a resource: one that lists it, one that gave a link to it, or the one whose template fits
    best. Raises `ForbiddenError` if servers list it, and none shares it.
    """
    shared = {server: items for server in order if (items := readable.shared.get(server)) is not None}
    for server, items in shared.items():
        if items.lists(uri):
            return server
    for server in order:
        if server in readable.linked:
            return server
    matched = MatchedUri(uri)
    fits = {server: items.fit(matched) for server, items in shared.items()}
    best = max(fits, key=lambda server: fits[server], default=None)
    if best is not None and fits[best]:
        return best
    if any(readable.watch.of(server).lists_other(uri) for server in order):
        raise ForbiddenError("this computer does not share this resource")
    return None


def _find_window(uri: str, watch: Watch, order: Iterable[SERVER_NAME]) -> Target:
    WindowURI.parse(uri)
    for server in order:
        if uri in watch.of(server):
            return Target(server)
    raise NotFoundError("no MCP server lists this window", {"uri": cut(uri, 500)})


def _find_document(raw: str, uri: ParsedDPEUri, watch: Watch, order: list[SERVER_NAME]) -> Target:
    """The server to ask for a document. The first of these that exists: a server that lists exactly this URI; one
    that lists its document; one that lists parts of that document; one that lists anything of that host.
    """
    known = {} if uri.doc_ref is None else {name: watch.of(name).documents((uri.host, uri.doc_ref)) for name in order}

    def distance(server: SERVER_NAME) -> int:
        if raw in watch.of(server):
            return 0
        listed = known.get(server, frozenset())
        if any(document in watch.of(server) for document in listed):
            return 1
        return 2 if listed else 3

    hosts = [server for server in order if watch.of(server).names_host(uri.host)]
    if not hosts:
        raise _document_not_found(uri, uri.host)
    server = min(hosts, key=distance)
    if len(hosts) > 1 and distance(server) == 3:
        logger.warning("MCP servers %s all list documents of %s; %s is asked", hosts, cut(uri.host), server)
    return Target(server, uri, known.get(server, frozenset()))


def refusal(target: Target, error: MCPError, page_count: int = 0) -> SMCPError:
    """The error that the agent gets when the MCP server answered with one."""
    if target.document is not None and 4201 <= error.code <= 4203:
        details = {**_details(target.document, error.code), **(error.data if isinstance(error.data, dict) else {})}
        passed_on = error_from_payload({"error": {"code": error.code, "message": error.message, "details": details}})
        assert passed_on is not None
        return passed_on
    if _says_not_found(error):
        return _not_found(target, page_count)
    return InternalError(
        f"Server {target.server} failed to read the resource",
        {"server_name": target.server, "mcp_code": error.code, "mcp_message": cut(error.message, 500)},
    )


def _says_not_found(error: MCPError) -> bool:
    """Whether the error says that there is no such resource. Servers say it in several ways."""
    resource_not_found = -32002
    return error.code in (resource_not_found, INVALID_PARAMS) or error.message.startswith("Unknown resource")


def _not_found(target: Target, page_count: int) -> SMCPError:
    document = target.document
    if document is None:
        return NotFoundError(f"Server {target.server} does not have this resource")
    if target.listed and document.page_index is not None:
        return PageOutOfRangeError(document.page_index, page_count)
    if target.listed and document.element_id is not None:
        return ElementNotFoundError(document.element_id)
    return _document_not_found(document)


def _document_not_found(uri: ParsedDPEUri, unserved_host: str | None = None) -> DocumentNotFoundError:
    return DocumentNotFoundError(uri.doc_ref if uri.doc_ref is not None else uri.host, unserved_host)


def _details(uri: ParsedDPEUri, code: int) -> dict[str, Any]:
    """The details of an error code, for servers that give no details."""
    match code:
        case DocumentNotFoundError.default_code:
            return {"doc_ref": uri.doc_ref}
        case PageOutOfRangeError.default_code:
            return {"page_index": uri.page_index}
        case _:
            return {"element_id": uri.element_id}

"""Resources and templates of computers as a host lists them, and the contents that it reads. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import mcp_types as types
from pydantic import ValidationError

from a2c_smcp.agent.for_models.addresses import SCHEME, Addresses, desktop_address
from a2c_smcp.errors import InternalError
from a2c_smcp.mcp_server.resources import Contents
from a2c_smcp.office_mcp.shared_lists import ResourceLists
from a2c_smcp.smcp import DPEDocumentSummary
from a2c_smcp.utils.strangers_words import told
from a2c_smcp.utils.text import cut, printable, well_formed

__all__ = ["OWN_TEMPLATES", "listed_resources", "listed_template", "read_contents"]

_LONGEST_NAME: Final = 500
_DOCUMENT: Final = f"{SCHEME}{{computer}}/dpe/{{host}}/{{doc_ref}}"
#: The office's own templates, where it has several computers: name, template, description.
OWN_TEMPLATES: Final = (
    ("desktop", f"{SCHEME}{{computer}}/desktop", "What the programs of a computer show"),
    ("document", _DOCUMENT, "A document of a computer: what it is, and with ?depth=pages its pages"),
    ("page", f"{_DOCUMENT}/pages/{{page_index}}", "A page of a document, numbered from 0"),
    ("element", f"{_DOCUMENT}/elements/{{element_id}}", "An element of a document: a table, a paragraph"),
)


def listed_resources(
    computer: str,
    addresses: Addresses,
    windows: Sequence[str],
    documents: Sequence[DPEDocumentSummary],
    shared: ResourceLists,
) -> list[types.Resource]:
    """What a computer has: its desktop, its windows, its documents, and what else it shares. A window or a document
    that its MCP server lists keeps what it has there.
    """
    found = {"": _resource(desktop_address(computer), "desktop", _own(addresses, computer), "What its programs show")}
    for uri in windows:
        found[uri] = _shown(uri, uri, None, None, computer, addresses, shared)
    for each in documents:
        found[each["uri"]] = _shown(
            each["uri"], each["title"], each.get("summary"), "application/json", computer, addresses, shared
        )
    for uri, entry in shared.resources.items():
        if uri not in found:
            found[uri] = _listed(entry.resource, computer, addresses)
    return list(found.values())


def _own(addresses: Addresses, computer: str) -> str | None:
    """The computer to be named in a title: none, if there is only one."""
    return computer if addresses.only is None else None


def _shown(
    uri: str,
    name: str,
    description: str | None,
    mime_type: str | None,
    computer: str,
    addresses: Addresses,
    shared: ResourceLists,
) -> types.Resource:
    if (entry := shared.resources.get(uri)) is not None:
        return _listed(entry.resource, computer, addresses)
    return _resource(addresses.of(computer, uri), name, _own(addresses, computer), description, mime_type)


def _resource(
    uri: str, name: str, computer: str | None, description: str | None, mime_type: str | None = "text/plain"
) -> types.Resource:
    shown = _titled(name, computer)
    about = told(description) if description else None
    return types.Resource(uri=uri, name=shown, title=shown, description=about, mime_type=mime_type)


def _listed(resource: types.Resource, computer: str, addresses: Addresses) -> types.Resource:
    if addresses.only is not None:
        return resource.model_copy(update=_described(resource.description))
    shown = _titled(resource.title or resource.name, computer)
    changes = {"uri": addresses.of(computer, resource.uri), "name": shown, "title": shown}
    return resource.model_copy(update=changes | _described(resource.description))


def listed_template(template: types.ResourceTemplate, computer: str, addresses: Addresses) -> types.ResourceTemplate:
    """A template of a computer's MCP server as a host lists it."""
    if addresses.only is not None:
        return template.model_copy(update=_described(template.description))
    shown = _titled(template.title or template.name, computer)
    changes = {"uri_template": addresses.of(computer, template.uri_template), "name": shown, "title": shown}
    return template.model_copy(update=changes | _described(template.description))


def _titled(name: str, computer: str | None) -> str:
    shown = cut(name, _LONGEST_NAME)
    return printable(shown if computer is None else f"{shown} ({computer})")


def _described(description: str | None) -> dict[str, str]:
    return {"description": told(description)} if description else {}


def read_contents(
    items: Sequence[Mapping[str, Any]], computer: str, asked: str, addresses: Addresses
) -> list[Contents]:
    """The contents that a computer sent, under their addresses. Raises `InternalError` if they are not MCP's."""
    try:
        return [_contents(item, computer, asked, addresses) for item in items]
    except ValidationError:
        raise InternalError("the computer sent contents that are not MCP's") from None


def _contents(item: Mapping[str, Any], computer: str, asked: str, addresses: Addresses) -> Contents:
    own = item.get("uri")
    known: dict[str, Any] = {**item, "uri": addresses.of(computer, own) if isinstance(own, str) else asked}
    if isinstance(text := item.get("text"), str):
        return types.TextResourceContents.model_validate({**known, "text": well_formed(text)})
    return types.BlobResourceContents.model_validate({**known, "blob": item.get("blob")})

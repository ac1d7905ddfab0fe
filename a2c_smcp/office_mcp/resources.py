"""Windows and documents of an office as MCP resources: `a2c://<computer>/…`."""

import asyncio
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import mcp_types as types
from pydantic import ValidationError

from a2c_smcp.agent.requests import page_of, read_document
from a2c_smcp.agent.view import Part
from a2c_smcp.errors import InternalError, SMCPError
from a2c_smcp.mcp_server.changes import Changes
from a2c_smcp.mcp_server.resources import Completions, Contents, Listing, UnknownResourceError
from a2c_smcp.office_mcp.addresses import (
    SCHEME,
    address_of,
    desktop_address,
    is_address,
    parse_address,
)
from a2c_smcp.office_mcp.watching import WatchedOffice, window_uri
from a2c_smcp.utils.dpe_uri import document_ref
from a2c_smcp.utils.text import cut, harmless, in_log, printable, well_formed

__all__ = ["OfficeResources"]

logger = logging.getLogger(__name__)

_LONGEST_NAME: Final = 500
_MOST_COMPLETIONS: Final = 100
_PAGES_TO_COMPLETE_FROM: Final = 5
_DOCUMENT: Final = f"{SCHEME}{{computer}}/dpe/{{host}}/{{doc_ref}}"


class OfficeResources:
    """The windows and documents of an office as a `ResourceRoom`."""

    def __init__(self, office: WatchedOffice) -> None:
        self._office = office

    def announce_to(self, changes: Changes) -> None:
        """From now on, tell clients about changes in the office."""

        def update(computer: str, part: Part) -> None:
            if part is Part.DESKTOP:
                changes.updated(desktop_address(computer))
                changes.updated(_windows_topic(computer))
            else:
                changes.updated(_documents_topic(computer))

        self._office.on_resources = changes.resources_changed
        self._office.on_update = update

    # --- a room of resources

    def owns(self, uri: str) -> bool:
        return is_address(uri)

    def topic(self, uri: str) -> str:
        """A computer announced that its windows or documents changed, but not which."""
        address = parse_address(uri)
        if address is None or address.uri is None:
            return uri
        topic = _documents_topic if address.uri.startswith("dpe://") else _windows_topic
        return topic(address.computer)

    async def listing(self, offset: int, limit: int) -> Listing:
        await self._office.ready()
        self._office.resources_given = True
        found = await asyncio.gather(*(self._resources(computer) for computer in self._office.computers))
        everything = [resource for resources in found for resource in resources]
        return Listing(everything[offset : offset + limit], offset + limit < len(everything))

    async def read(self, uri: str) -> Sequence[Contents]:
        address = parse_address(uri)
        if address is None or (self._office.only not in (None, address.computer)):
            raise UnknownResourceError(uri)
        await self._office.usable()
        agent = self._office.agent
        if address.uri is None:
            windows = await agent.get_desktop(address.computer)
            text = well_formed("\n\n".join(windows))
            return [types.TextResourceContents(uri=uri, text=text, mime_type="text/plain")]
        return [_contents(item, uri) for item in await agent.read_resource(address.computer, address.uri)]

    async def templates(self) -> Sequence[types.ResourceTemplate]:
        kinds = {
            "desktop": (f"{SCHEME}{{computer}}/desktop", "What the programs of a computer show"),
            "document": (_DOCUMENT, "A document of a computer: what it is, and with ?depth=pages its pages"),
            "page": (f"{_DOCUMENT}/pages/{{page_index}}", "A page of a document, numbered from 0"),
            "element": (f"{_DOCUMENT}/elements/{{element_id}}", "An element of a document: a table, a paragraph"),
        }
        return [
            types.ResourceTemplate(name=name, uri_template=template, description=description)
            for name, (template, description) in kinds.items()
        ]

    async def complete(self, template: str, name: str, typed: str, known: Mapping[str, str]) -> Completions:
        if name == "computer":
            return _first(self._office.computers, typed)
        if (computer := known.get("computer") or self._office.only) not in self._office.computers:
            return Completions()
        assert computer is not None
        documents = await self._office.documents(computer)
        refs = {ref: document for document in documents["documents"] if (ref := document_ref(document["uri"]))}
        if name == "host":
            return _first(dict.fromkeys(host for host, _ in refs), typed)
        host = known.get("host")
        if name == "doc_ref":
            return _first((ref for its_host, ref in refs if host in (None, its_host)), typed)
        document = next((found for (its, ref), found in refs.items() if known.get("doc_ref") == ref), None)
        if document is None:
            return Completions()
        if name == "page_index":
            return _first(map(str, range(document["page_count"])), typed)
        return _first(await self._elements(computer, document["uri"], document["page_count"]), typed)

    # ---

    async def _resources(self, computer: str) -> list[types.Resource]:
        """The resources of a computer. A list that cannot be read now is left out."""
        windows, documents = await asyncio.gather(
            self._office.desktop(computer), self._office.documents(computer), return_exceptions=True
        )
        found = [_resource(desktop_address(computer), "desktop", computer, "What its programs show", "text/plain")]
        if isinstance(windows, SMCPError):
            logger.warning("the windows of %s are not listed: %s", in_log(computer), printable(cut(str(windows))))
        elif isinstance(windows, BaseException):
            raise windows
        else:
            uris = [window_uri(window) for window in windows]
            found += [
                _resource(address, uri, computer, None, None)
                for uri in uris
                if (address := address_of(computer, uri)) is not None
            ]
        if isinstance(documents, SMCPError):
            logger.warning("the documents of %s are not listed: %s", in_log(computer), printable(cut(str(documents))))
        elif isinstance(documents, BaseException):
            raise documents
        else:
            found += [
                _resource(address, each["title"], computer, each.get("summary"), "application/json")
                for each in documents["documents"]
                if (address := address_of(computer, each["uri"])) is not None
            ]
        return found

    async def _elements(self, computer: str, uri: str, pages: int) -> list[str]:
        """The ids of the elements on the first pages of a document."""
        ids: list[str] = []
        for number in range(min(pages, _PAGES_TO_COMPLETE_FROM)):
            page = read_document(await self._office.agent.read_resource(computer, page_of(uri, number, "json", None)))
            elements = page.get("elements") if isinstance(page, dict) else None
            ids += [str(element["element_id"]) for element in elements or () if "element_id" in element]
        return list(dict.fromkeys(ids))


def _windows_topic(computer: str) -> str:
    return f"{SCHEME}{json.dumps(computer)}/windows"


def _documents_topic(computer: str) -> str:
    return f"{SCHEME}{json.dumps(computer)}/documents"


def _resource(uri: str, name: str, computer: str, description: str | None, mime_type: str | None) -> types.Resource:
    shown = printable(f"{cut(name, _LONGEST_NAME)} ({computer})")
    return types.Resource(
        uri=uri,
        name=shown,
        title=shown,
        description=harmless(cut(description)) if description else None,
        mime_type=mime_type,
    )


def _contents(item: Mapping[str, Any], uri: str) -> Contents:
    """The contents from a computer, under the requested address and without the `_meta` of its server."""
    known: dict[str, Any] = {"uri": uri, "mimeType": item.get("mimeType")}
    try:
        if isinstance(text := item.get("text"), str):
            return types.TextResourceContents.model_validate({**known, "text": well_formed(text)})
        return types.BlobResourceContents.model_validate({**known, "blob": item.get("blob")})
    except ValidationError:
        raise InternalError("the computer sent contents that are not MCP's") from None


def _first(values: Iterable[str], typed: str) -> Completions:
    found = list(islice((value for value in values if value.startswith(typed)), _MOST_COMPLETIONS + 1))
    return Completions(found[:_MOST_COMPLETIONS], len(found) > _MOST_COMPLETIONS)

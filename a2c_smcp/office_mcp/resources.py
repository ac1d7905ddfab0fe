"""The resources of an office's computers as MCP resources: windows, documents, and whatever else they share."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

import mcp_types as types

from a2c_smcp.agent.bounds import AnswerTooLargeError
from a2c_smcp.agent.for_models.addresses import SCHEME, desktop_address
from a2c_smcp.agent.for_models.meta import own_result_meta
from a2c_smcp.agent.for_models.watching import WatchedOffice, window_uri
from a2c_smcp.agent.requests import page_of, read_document
from a2c_smcp.agent.view import Part
from a2c_smcp.errors import InvalidDPEURIError, NotFoundError, PayloadTooLargeError, RequestTimeoutError, SMCPError
from a2c_smcp.mcp_server.changes import Changes
from a2c_smcp.mcp_server.passed_meta import request_meta
from a2c_smcp.mcp_server.resources import Completions, Contents, Listing, UnknownResourceError
from a2c_smcp.office_mcp.listed_resources import OWN_TEMPLATES, listed_resources, listed_template, read_contents
from a2c_smcp.office_mcp.prompts import completions
from a2c_smcp.office_mcp.shared_lists import SharedLists
from a2c_smcp.office_mcp.subscriptions import HostSubscriptions
from a2c_smcp.utils.dpe_uri import document_ref, is_dpe_uri
from a2c_smcp.utils.text import cut, in_log, printable, well_formed
from a2c_smcp.utils.window_uri import is_window_uri

__all__ = ["OfficeResources"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: Seconds that the lists of all computers wait for the windows and documents of one.
_PATIENCE: Final = 3.0
_MOST_COMPLETIONS: Final = 100
_PAGES_TO_COMPLETE_FROM: Final = 5


class OfficeResources:
    """The resources of an office as a `ResourceRoom`."""

    def __init__(self, office: WatchedOffice, shared: SharedLists) -> None:
        self._office = office
        self._shared = shared
        self._subscriptions = HostSubscriptions(office.agent)

    def announce_to(self, changes: Changes) -> None:
        """From now on, tell clients about changes in the office."""
        office = self._office

        def update(computer: str, part: Part) -> None:
            if part is Part.DESKTOP:
                changes.updated(desktop_address(computer))
                changes.updated(_windows_topic(computer))
            else:
                changes.updated(_documents_topic(computer))

        def listed() -> None:
            if office.resources_given:
                changes.resources_changed()

        def updated(notice: Mapping[str, Any]) -> None:
            changes.updated(office.addresses.of(notice.get("computer", ""), notice["uri"]))

        office.on_resources = changes.resources_changed
        office.on_update = update
        self._shared.on_resources = listed
        office.agent.on("resource_updated")(updated)
        changes.on_wanted = self._want

    def _want(self, topic: str, wanted: bool) -> None:
        address = self._office.addresses.parse(topic)
        # Computers announce changes of windows and documents to everybody.
        if address is not None and address.uri is not None and not _is_shown(address.uri):
            self._subscriptions.want(address, wanted)

    # --- a room of resources

    def owns(self, uri: str) -> bool:
        return self._office.addresses.is_address(uri)

    def topic(self, uri: str) -> str:
        """A computer announces that its windows or documents changed, but not which."""
        address = self._office.addresses.parse(uri)
        if address is None or address.uri is None or not _is_shown(address.uri):
            return uri
        topic = _documents_topic if is_dpe_uri(address.uri) else _windows_topic
        return topic(address.computer)

    async def listing(self, offset: int, limit: int) -> Listing:
        await self._office.ready()
        self._office.resources_given = True
        found = await asyncio.gather(*(self._resources(computer) for computer in self._office.computers))
        everything = [resource for resources in found for resource in resources]
        return Listing(everything[offset : offset + limit], offset + limit < len(everything))

    async def read(self, uri: str) -> types.ReadResourceResult:
        address = self._office.addresses.parse(uri)
        if address is None:
            raise UnknownResourceError(uri)
        await self._office.usable()
        if address.uri is None:
            windows = await self._office.agent.get_desktop(address.computer)
            text = well_formed("\n\n".join(windows))
            desktop: Contents = types.TextResourceContents(uri=uri, text=text, mime_type="text/plain")
            return types.ReadResourceResult(contents=[desktop])
        try:
            items, meta = await self._read(address.computer, address.uri)
        except (NotFoundError, InvalidDPEURIError):
            if _is_shown(address.uri) or address.computer not in self._office.computers:
                raise
            raise UnknownResourceError(uri) from None
        contents = read_contents(items, address.computer, uri, self._office.addresses)
        return types.ReadResourceResult(contents=contents, _meta=own_result_meta(meta))

    async def _read(self, computer: str, uri: str) -> tuple[Sequence[Mapping[str, Any]], Mapping[str, Any] | None]:
        """The contents and the `_meta` of a resource. What does not fit into one message comes in parts, and without
        the `_meta` of the result.
        """
        agent = self._office.agent
        try:
            answer = await agent.read_resource_result(computer, uri, meta=dict(request_meta()) or None)
        except AnswerTooLargeError:
            raise
        except PayloadTooLargeError:
            return await agent.read_large_resource(computer, uri), None
        return answer["contents"], answer.get("meta")

    # --- templates

    async def templates(self) -> Sequence[types.ResourceTemplate]:
        await self._office.usable()
        found = [
            types.ResourceTemplate(name=name, uri_template=template, description=description)
            for name, template, description in OWN_TEMPLATES
            if self._office.only is None
        ]
        computers = list(self._office.computers)
        lists = await asyncio.gather(*map(self._shared.resources, computers))
        for computer, shared in zip(computers, lists, strict=True):
            found += [listed_template(each.template, computer, self._office.addresses) for each in shared.templates]
        return found

    async def complete(self, template: str, name: str, typed: str, known: Mapping[str, str]) -> Completions:
        address = self._office.addresses.parse(template)
        if address is not None and address.computer in self._office.computers:
            for each in (await self._shared.resources(address.computer)).templates:
                if each.template.uri_template == address.uri:
                    ref = {"type": "ref/resource", "uri": address.uri}
                    argument, context = {"name": name, "value": typed}, {"arguments": dict(known)} if known else None
                    found = await self._office.agent.complete(address.computer, each.server, ref, argument, context)
                    return completions(found)
        return await self._complete_document(name, typed, known)

    async def _complete_document(self, name: str, typed: str, known: Mapping[str, str]) -> Completions:
        """Values for the office's own templates."""
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
        windows, documents, shared = await asyncio.gather(
            _in_time(self._office.desktop(computer)),
            _in_time(self._office.documents(computer)),
            self._shared.resources(computer),
            return_exceptions=True,
        )
        for what, found in (("windows", windows), ("documents", documents), ("resources", shared)):
            if isinstance(found, SMCPError):
                logger.warning("the %s of %s are not listed: %s", what, in_log(computer), printable(cut(str(found))))
            elif isinstance(found, BaseException):
                raise found
        assert not isinstance(shared, BaseException)
        return listed_resources(
            computer,
            self._office.addresses,
            [] if isinstance(windows, BaseException) else [window_uri(window) for window in windows],
            [] if isinstance(documents, BaseException) else documents["documents"],
            shared,
        )

    async def _elements(self, computer: str, uri: str, pages: int) -> list[str]:
        """The ids of the elements on the first pages of a document."""
        ids: list[str] = []
        for number in range(min(pages, _PAGES_TO_COMPLETE_FROM)):
            page = read_document(await self._office.agent.read_resource(computer, page_of(uri, number, "json", None)))
            elements = page.get("elements") if isinstance(page, dict) else None
            ids += [str(element["element_id"]) for element in elements or () if "element_id" in element]
        return list(dict.fromkeys(ids))


async def _in_time(reading: Awaitable[T]) -> T:
    """One computer that does not answer must not hold up the lists of all."""
    try:
        async with asyncio.timeout(_PATIENCE):
            return await reading
    except TimeoutError:
        raise RequestTimeoutError(f"not within {_PATIENCE:g} s") from None


def _is_shown(uri: str) -> bool:
    """Whether a URI is that of a window or a document."""
    return is_window_uri(uri) or is_dpe_uri(uri)


def _windows_topic(computer: str) -> str:
    return f"{SCHEME}{json.dumps(computer)}/windows"


def _documents_topic(computer: str) -> str:
    return f"{SCHEME}{json.dumps(computer)}/documents"


def _first(values: Iterable[str], typed: str) -> Completions:
    found = list(islice((value for value in values if value.startswith(typed)), _MOST_COMPLETIONS + 1))
    return Completions(found[:_MOST_COMPLETIONS], len(found) > _MOST_COMPLETIONS)

"""The office's own tools: which computers there are, what shows on them, their documents and the contents of these."""

import asyncio
import json
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, TypeAlias

import mcp_types as types

from a2c_smcp.agent.for_models.addresses import SCHEME
from a2c_smcp.agent.for_models.model_answers import answered, unusable_office
from a2c_smcp.agent.for_models.search import SearchIndex
from a2c_smcp.agent.for_models.search_text import words
from a2c_smcp.agent.for_models.sizing import MODEL_SIZE, text_piece
from a2c_smcp.agent.for_models.tool_directory import MOST_TOOLS
from a2c_smcp.agent.for_models.watching import WatchedOffice, window_uri
from a2c_smcp.agent.requests import document_pages_uri, element_of, page_of, read_document
from a2c_smcp.agent.server_infos import servers_not_running
from a2c_smcp.agent.view import Part
from a2c_smcp.errors import BadRequestError, NotFoundError, PageOutOfRangeError, SMCPError
from a2c_smcp.smcp import DPEDocumentSummary
from a2c_smcp.utils.dpe_uri import IMAGE_SIDES, is_dpe_uri, with_image
from a2c_smcp.utils.strangers_words import quoted_as_seen, told_on_line
from a2c_smcp.utils.text import cut, on_one_line, printable

__all__ = [
    "OwnAnswer",
    "OwnTool",
    "context_tools",
    "document_line",
    "own_tool",
    "ranked_documents",
    "shown_windows",
]

#: Answers a call of an own tool: it gets the arguments.
OwnAnswer: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[types.CallToolResult]]

_COMPUTER: Final = {"type": "string", "description": "The name of the computer; list_computers has them."}


@dataclass(frozen=True, slots=True)
class _OwnToolBounds:
    """How much is searched and shown in one answer."""

    found: int = 20  # documents of one computer
    looked_at: int = 200  # documents of one computer that a search ranks
    keywords: int = 100  # of a search; a computer takes no more
    keyword_characters: int = 10_000  # of all keywords
    summary: int = 300  # characters
    note: int = 1000  # characters
    pages: int = 50  # of a document; each takes a request, and may be empty
    schemas: int = 10  # tools of one computer whose schemas are shown in part


_MOST: Final = _OwnToolBounds()
#: Seconds that a computer has to tell the states of its MCP servers.
_STATES_SECONDS: Final = 2.0
#: Characters that a window gets at least. If fewer are left, the rest of the windows is only named.
_LEAST_WINDOW: Final = 500


@dataclass(frozen=True, slots=True)
class OwnTool:
    """A tool of the office itself, and the method that answers it; `None` if it runs another tool."""

    tool: types.Tool
    answer: OwnAnswer | None


def own_tool(
    name: str,
    title: str,
    description: str,
    arguments: Mapping[str, Any],
    answer: OwnAnswer | None = None,
    *,
    required: Sequence[str] = (),
    read_only: bool = True,
) -> OwnTool:
    schema = {"type": "object", "properties": dict(arguments), "required": list(required)}
    annotations = types.ToolAnnotations(
        read_only_hint=read_only, destructive_hint=not read_only, open_world_hint=not read_only
    )
    tool = types.Tool(name=name, title=title, description=description, input_schema=schema, annotations=annotations)
    return OwnTool(tool, answer)


def context_tools(office: WatchedOffice) -> list[OwnTool]:
    """The tools that are always there."""
    reader = _Reader(office)
    which = {} if office.only is not None else {"computer": _COMPUTER}
    offset = {"type": "integer", "minimum": 0}
    return [
        own_tool(
            "list_computers",
            "List the computers",
            "Who is in the office, and what is wrong when tools are missing: no server, no computer, tools that are "
            "still starting. Call it first when a tool that you expect is not there.",
            {},
            reader.list_computers,
        ),
        own_tool(
            "see_desktop",
            "See what is on a desktop",
            "What the programs of a computer show right now, as text, the most important window first. Each line of a "
            "window begins with >.",
            {
                **which,
                "window": {"type": "string", "description": "One window only, whole, by its URI: window://…"},
                "offset": {**offset, "description": "With window: go on at this character."},
            },
            reader.see_desktop,
        ),
        own_tool(
            "find_documents",
            "Find documents",
            "Documents of the computers by words in their titles, keywords and summaries; without a query all of them, "
            "the newest first. read_document reads what it finds.",
            {
                "query": {"type": "string", "description": "Words to look for."},
                **which,
                "file_type": {"type": "string", "description": "Only this type, such as pdf."},
                "offset": {**offset, "description": "Skip this many documents."},
            },
            reader.find_documents,
        ),
        own_tool(
            "read_document",
            "Read a document",
            "What is in a document, as Markdown, from one page on as far as it fits into one answer; the end of the "
            "answer says how to go on. Or one element of it, such as a table.",
            {
                "document": {"type": "string", "description": "Its URI, as find_documents gives it."},
                **which,
                "page": {**offset, "description": "The first page to read, counted from 0."},
                "pages": {"type": "integer", "minimum": 1, "description": "Read at most this many pages."},
                "element": {"type": "string", "description": "The id of one element, instead of pages."},
                "format": {"type": "string", "enum": ["markdown", "text", "json"], "default": "markdown"},
                "image": {
                    "type": "integer",
                    "minimum": IMAGE_SIDES[0],
                    "maximum": IMAGE_SIDES[1],
                    "description": "Also look at the page or the element: a picture with this many pixels on its "
                    "longest side, such as 1200. Only one page is read then.",
                },
                "offset": {**offset, "description": "Go on at this character of the page or element."},
            },
            reader.read_document,
            required=["document"],
        ),
    ]


class _Reader:
    def __init__(self, office: WatchedOffice) -> None:
        self._office = office
        self._agent = office.agent

    # --- computers

    async def list_computers(self, _: Mapping[str, Any]) -> types.CallToolResult:
        await self._office.ready_once()
        office, views = self._agent.office_id, self._office.computers
        if (problem := self._agent.problem) is not None:
            text = unusable_office(problem, "call list_computers again")
            if last := [f"{name}: {len(tools)} tools" for name, tools in self._office.remembered.items()]:
                text += f" The tools in the list are those of the last time ({cut(', '.join(last))}). A call waits for "
                text += "the office, and fails if it does not come back soon."
            return answered(text)
        if self._office.only is not None and not views:
            return answered(f"The computer {self._office.only} is not in the office {office} now.")
        if not views:
            text = f"The office {office} is empty: no computer is in it. One joins with: a2c computer run --office "
            return answered(f"{text}{office} --url … --name … --config …")
        lines = [f"In the office {office}:"]
        down = await servers_not_running(self._agent, views, _STATES_SECONDS)
        for name, view in views.items():
            if (error := view.failures.get(Part.TOOLS)) is not None and not view.tools:
                lines.append(f"- {name}: its tools cannot be listed: {on_one_line(error.message)}")
            elif not view.tools:
                lines.append(f"- {name}: no tools; its MCP servers may be starting")
            else:
                called = "" if self._office.only is not None else f", called {self._office.label(name)}__…"
                more = f" (of which the first {MOST_TOOLS} are used)" if len(view.tools) > MOST_TOOLS else ""
                lines.append(f"- {name}: {len(view.tools)} tools{more}{called}")
            lines += [f"  - its MCP server {line}" for line in down[name]]
            lines += await self._left_out(name)
        return answered("\n".join(lines))

    async def _left_out(self, computer: str) -> list[str]:
        """A line about the tools whose schemas are shown without what some hosts cannot read."""
        found = (await self._office.listed_directory()).left_out.get(computer, {})
        if not found:
            return []
        shown = [f"{cut(name, 100)} ({', '.join(what)})" for name, what in islice(found.items(), _MOST.schemas)]
        more = f", and {len(found) - _MOST.schemas} more" if len(found) > _MOST.schemas else ""
        names = on_one_line("; ".join(shown))
        return [f"  - schemas that are shown without what some hosts cannot read: {names}{more}"]

    # --- windows

    async def see_desktop(self, arguments: Mapping[str, Any]) -> types.CallToolResult:
        await self._office.usable()
        window, offset = arguments.get("window"), arguments.get("offset") or 0
        if window:
            computer, uri = self._place(window, arguments.get("computer"))
            return answered(await self._window(computer, uri, offset))
        return await self._of_each(arguments.get("computer"), self._desktop)

    async def _desktop(self, computer: str, room: int) -> str:
        return shown_windows(await self._agent.get_desktop(computer), room)

    async def _of_each(self, computer: str | None, read: Callable[[str, int], Awaitable[str]]) -> types.CallToolResult:
        """Read one computer, or all of them at the same time. `read` gets the number of characters that it may use."""
        names = list(self._office.computers)
        if computer or self._office.only is not None or len(names) == 1:
            names = [self._office.computer(computer)]
        if not names:
            self._office.computer(None)  # raises the reason
        room = MODEL_SIZE // len(names)
        found = await asyncio.gather(*(read(name, room) for name in names), return_exceptions=True)
        parts = []
        for name, outcome in zip(names, found, strict=True):
            if isinstance(outcome, SMCPError):
                outcome = on_one_line(outcome.message)
            elif isinstance(outcome, BaseException):
                raise outcome
            parts.append(f"# {printable(name)}\n\n{outcome}")
        return answered("\n\n".join(parts))

    async def _window(self, computer: str, uri: str, offset: int) -> str:
        windows = await self._agent.get_desktop(computer, window=uri)
        if not windows:
            raise NotFoundError(f"{computer} has no window {cut(uri, 200)} now; see_desktop without it shows all.")
        return _quoted_piece(windows[0], offset, MODEL_SIZE, "see_desktop with window")

    # --- documents

    async def find_documents(self, arguments: Mapping[str, Any]) -> types.CallToolResult:
        await self._office.usable()
        query, offset = arguments.get("query") or "", arguments.get("offset") or 0
        file_type = arguments.get("file_type")
        return await self._of_each(
            arguments.get("computer"), lambda name, room: self._documents(name, query, file_type, offset, room)
        )

    async def _documents(self, computer: str, query: str, file_type: str | None, offset: int, room: int) -> str:
        keywords = _keywords(query) or None
        if keywords is None:
            page = await self._agent.get_finder(computer, None, file_type, offset, _MOST.found)
            documents, total = list(page["documents"]), page.get("total_count", 0)
        else:
            page = await self._agent.get_finder(computer, keywords, file_type, 0, _MOST.looked_at)
            ranked = ranked_documents(page["documents"], query)
            documents, total = ranked[offset : offset + _MOST.found], len(ranked)
        note = [f"[{printable(cut(page['note'], _MOST.note))}]"] if page.get("note") and not offset else []
        if not documents:
            return "\n".join(["no documents" + (f" for {query!r}" if query else ""), *note])
        lines, room = list[str](), room - sum(map(len, note))
        for document in documents:
            line = document_line(self._office.addresses.of(computer, document["uri"]), document)
            if lines and len(line) > room:
                break
            lines.append(line)
            room -= len(line)
        if (end := offset + len(lines)) < total:
            lines.append(f"[{total - end} more: find_documents with computer={computer!r} and offset={end}]")
        return "\n".join([*lines, *note])

    async def read_document(self, arguments: Mapping[str, Any]) -> types.CallToolResult:
        await self._office.usable()
        computer, uri = self._place(arguments["document"], arguments.get("computer"), document=True)
        form, offset = arguments.get("format") or "markdown", arguments.get("offset") or 0
        first, most, image = arguments.get("page"), arguments.get("pages"), arguments.get("image")
        element = arguments.get("element")
        if element is not None or image is not None:
            part = page_of(uri, first or 0, form, None) if element is None else element_of(uri, str(element), form)
            contents = await self._agent.read_resource(computer, part if image is None else with_image(part, image))
            where = f"page={first or 0}" if element is None else f"element={element!r}"
            return _shown(contents, offset, where)
        facts = {} if first is not None or offset else await self._facts(computer, uri)
        return answered(await self._pages(computer, uri, first or 0, most, form, offset, facts))

    async def _facts(self, computer: str, uri: str) -> Mapping[str, Any]:
        found = read_document(await self._agent.read_resource(computer, document_pages_uri(uri, 0, 1)))
        return found if isinstance(found, Mapping) else {}

    async def _pages(
        self, computer: str, uri: str, page: int, most: int | None, form: str, offset: int, facts: Mapping[str, Any]
    ) -> str:
        """As many pages as fit. The first one follows a description of the document."""
        start, count = _head(facts), facts.get("page_count")
        parts, room, read = [start] if start else [], MODEL_SIZE - len(start), 0
        most = min(most or _MOST.pages, _MOST.pages)
        while read < most and page != count:
            if room <= 0:
                parts.append(f"[page {page} and what follows: read_document with page={page}]")
                break
            try:
                contents = await self._agent.read_resource(computer, page_of(uri, page, form, None))
            except PageOutOfRangeError:
                if read == 0 and (page or not start):
                    raise
                break
            piece = text_piece(_text(contents), offset, room)
            if read and piece.next is not None:
                parts.append(f"[page {page} and what follows: read_document with page={page}]")
                break
            parts.append(f"[page {page}]\n{piece.text}")
            if piece.next is not None:
                parts.append(piece.note(f"page={page}", " on this page"))
                break
            room -= len(parts[-1])
            read, page, offset = read + 1, page + 1, 0
            if read == most and page != count:
                parts.append(f"[what follows, if anything does: read_document with page={page}]")
        return "\n\n".join(parts) if parts else "The document is empty."

    # ---

    def _place(self, uri: str, computer: str | None, *, document: bool = False) -> tuple[str, str]:
        """The computer and the URI that are meant: an address names both."""
        if uri.startswith(SCHEME):
            address = self._office.addresses.parse(uri)
            if address is None or address.uri is None:
                raise BadRequestError(f"{cut(uri, 200)} is neither a window nor a document")
            return self._office.computer(address.computer), address.uri
        if document and not is_dpe_uri(uri):
            raise BadRequestError(f"{cut(uri, 200)!r} is not the URI of a document: use one that find_documents gives")
        return self._office.computer(computer), uri


def shown_windows(windows: Sequence[str], room: int) -> str:
    """As many windows as fit into `room` characters. Each gets an equal share of what is left: short windows leave more
    to the others. They are quoted: a window may show what looks like a heading of ours, or like a window of another
    computer.
    """
    if not windows:
        return "nothing shows"
    parts, left_out = list[str](), list[str]()
    for number, window in enumerate(windows):
        share = max(room // (len(windows) - number), _LEAST_WINDOW)
        if room < _LEAST_WINDOW and parts:
            left_out.append(window_uri(window))
            continue
        how = f"see_desktop with window={printable(cut(window_uri(window), 300))!r}"
        parts.append(_quoted_piece(window, 0, min(share, room), how))
        room -= len(parts[-1])
    if left_out:
        parts.append(f"[left out, see_desktop with window shows them: {cut(printable(', '.join(left_out)))}]")
    return "\n\n".join(parts)


def _quoted_piece(text: str, offset: int, most: int, how: str) -> str:
    """As much of a window's text as fits when it is quoted, and below it the note about the rest."""
    piece = text_piece(text, offset, _fitting(text[offset:], most))
    return "\n".join(filter(None, [quoted_as_seen(piece.text), piece.note(how)]))


def _fitting(text: str, most: int) -> int:
    """How many characters of a text fit. One character may be shown as several."""
    return bisect_right(range(1, min(most, len(text)) + 1), most, key=lambda end: len(quoted_as_seen(text[:end])))


def _keywords(query: str) -> list[str]:
    """The keywords to ask a computer for: as much of the query as it accepts."""
    keywords, room = list[str](), _MOST.keyword_characters
    for word in dict.fromkeys([*query.split(), *words(query)]):
        room -= len(word)
        if room < 0 or len(keywords) == _MOST.keywords:
            break
        keywords.append(word)
    return keywords


def ranked_documents(
    documents: Sequence[DPEDocumentSummary], query: str, *, only_matches: bool = False
) -> list[DPEDocumentSummary]:
    """The documents, best match first. A match inside another word comes last; `only_matches` leaves it out."""
    index = SearchIndex(
        [
            {document["title"]: 3.0, " ".join(document.get("keywords") or ()): 2.0, document.get("summary") or "": 1.0}
            for document in documents
        ]
    )
    best = index.best(query, len(documents))
    rest = [] if only_matches else sorted(set(range(len(documents))) - set(best))
    return [documents[number] for number in (*best, *rest)]


def document_line(uri: str, document: DPEDocumentSummary) -> str:
    """A document in one line, and its summary in another. Strangers write all of it, so none of it may begin
    another line.
    """
    kind, changed = (cut(str(document.get(name) or ""), 40) for name in ("file_type", "last_modified"))
    facts = ", ".join(filter(None, [kind, f"{document.get('page_count') or 0} pages", changed]))
    line = printable(f"- {cut(document['title'], _MOST.summary)} ({facts}): {uri}")
    summary = " ".join((document.get("summary") or "").split())
    return f"{line}\n  {printable(cut(summary, _MOST.summary))}" if summary else line


def _head(facts: Mapping[str, Any]) -> str:
    names = ("title", "file_type", "page_count", "last_modified", "keywords", "summary")
    return "\n".join(f"{name}: {told_on_line(_plain(facts[name]))}" for name in names if facts.get(name))


def _text(contents: Sequence[Mapping[str, Any]]) -> str:
    return "\n\n".join(item["text"] for item in contents if isinstance(item.get("text"), str))


def _shown(contents: Sequence[Mapping[str, Any]], offset: int, where: str) -> types.CallToolResult:
    """Cut the texts to a piece; pictures stay whole."""
    blobs: list[types.ContentBlock] = [
        types.ImageContent(type="image", data=item["blob"], mime_type=item["mimeType"])
        for item in contents
        if isinstance(item.get("blob"), str) and str(item.get("mimeType", "")).startswith("image/")
    ]
    text = text_piece(_text(contents), offset).with_note(f"read_document with {where}")
    result = answered(text)
    return result if not blobs else types.CallToolResult(content=[*(result.content if text else ()), *blobs])


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

"""The tools of all computers at one moment: by name, by words, and as MCP lists them. Pure."""

import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Final

import mcp_types as types
from pydantic import TypeAdapter, ValidationError

from a2c_smcp.agent.for_models.addresses import Addresses
from a2c_smcp.agent.for_models.meta import tool_meta
from a2c_smcp.agent.for_models.search import SearchIndex
from a2c_smcp.agent.for_models.search_text import is_mostly_cjk
from a2c_smcp.agent.for_models.search_words import CHANGING, DELETING
from a2c_smcp.agent.for_models.sizing import MODEL_SIZE
from a2c_smcp.agent.for_models.tool_names import tool_names
from a2c_smcp.results import ANNOTATION_KEY, ICONS_KEY, META_KEY, SERVER_KEY, TITLE_KEY
from a2c_smcp.smcp import SMCPTool
from a2c_smcp.terminal.suggestions import near_names
from a2c_smcp.utils.bounded import BoundedDict
from a2c_smcp.utils.json_sizes import json_or_none
from a2c_smcp.utils.limited_log import LimitedLog
from a2c_smcp.utils.readable_schemas import ReadableSchema, composed_schema, input_schema, outline, output_schema
from a2c_smcp.utils.strangers_words import told, told_in_schema, told_on_line
from a2c_smcp.utils.text import as_one_line, cut, in_log, printable

__all__ = ["MOST_TOOLS", "FoundTools", "ListedTool", "OfficeTool", "SchemaNews", "ToolDirectory", "described"]

logger = logging.getLogger(__name__)

#: How many tools of one computer are used. More are a mistake or an attack.
MOST_TOOLS: Final = 5000


@dataclass(frozen=True, slots=True)
class _DirectoryBounds:
    """Limits on the texts of strangers that are shown and searched; in characters, unless a comment says otherwise."""

    names: int = 200  # names in one answer
    near: int = 30  # tools that a weak search also names
    title: int = 200
    description: int = 1000
    brief: int = 100  # of a description on one line
    annotations: int = 10_000
    icons: int = 20_000
    meta: int = 20_000
    indexed: int = 4000  # of one text, for a search
    indexed_of_a_computer: int = 1_000_000  # of all texts of one computer
    shown_of_a_tool: int = 4000  # of schemas and descriptions, on average over the tools of a computer
    room_for_tools: int = 64  # tools: a computer with fewer gets the room of so many
    description_at_least: int = 200  # also if no room is left


_MOST: Final = _DirectoryBounds()
#: How many bytes of UTF-8 the tools of one search take.
SEARCH_BYTES: Final = 3600
#: A search is weak if no tool has more than this share of its words.
_WEAK: Final = 0.5
#: A question has no verb that tools have. These are the verbs of tools that answer one.
_ANSWERING: Final = ("get", "list", "search", "read", "show", "find", "describe", "query", "view", "status")
_ICONS: Final = TypeAdapter(list[types.Icon])


@dataclass(frozen=True, slots=True)
class OfficeTool:
    """A tool of a computer, and its name for hosts."""

    name: str
    computer: str
    tool: SMCPTool

    def as_mcp(self, room: int, addresses: Addresses) -> "ListedTool":
        """The tool as MCP lists it, with schemas that every host can read. `room` is how many characters its schemas
        and its description may have. If they have more, the schema is an outline, and the description is cut. If only
        one computer is served, title and description do not name it.
        """
        arguments, output = input_schema(self.tool["params_schema"]), output_schema(self.tool.get("return_schema"))
        if _size(arguments.schema) + _size(output.schema) > room:
            arguments, output = outline(self.tool["params_schema"]), ReadableSchema(None)
        if _size(arguments.schema) > room:
            arguments = ReadableSchema({"type": "object"}, arguments.changes)
        composed = composed_schema(self.tool["params_schema"]) if addresses.only and arguments.changes else None
        if composed is not None and _size(composed) + _size(output.schema) > room:
            composed = None
        room -= max(_size(arguments.schema), _size(composed)) + _size(output.schema)
        about = cut(
            self.tool["description"] or self.tool["name"], min(MODEL_SIZE, max(room, _MOST.description_at_least))
        )
        meta = self.tool.get("meta") or {}
        tool = types.Tool(
            name=self.name,
            title=self._shown_title(addresses),
            description=told(about if addresses.only is not None else f"On {self.computer}: {about}", MODEL_SIZE),
            input_schema=told_in_schema(arguments.schema or {"type": "object"}),
            output_schema=told_in_schema(output.schema),
            annotations=_annotations(self.tool),
            icons=_icons(meta.get(ICONS_KEY)),
            _meta=tool_meta(meta.get(META_KEY), self.computer, addresses, _MOST.meta),
        )
        whole = None if composed is None else tool.model_copy(update={"input_schema": told_in_schema(composed)})
        return ListedTool(tool, whole, (*arguments.changes, *output.changes), room - len(about))

    def _shown_title(self, addresses: Addresses) -> str | None:
        if addresses.only is not None:
            title = _own_title(self.tool)
            return told_on_line(title, _MOST.title) if title else None
        return f"{told_on_line(_title(self.tool) or self.tool['name'], _MOST.title)} ({printable(self.computer)})"


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool as MCP lists it. `left_out` is what its schemas do not say, because some hosts could not read it. `room`
    is how many characters are left for the other tools of its computer.
    """

    tool: types.Tool
    whole: types.Tool | None
    """The same tool with all that MCP allows in a schema since 2026-07-28. `None` if it would be the same, or if the
    tools of several computers are listed: then the schemas of one computer could spoil the list for all."""
    left_out: tuple[str, ...]
    room: int


@dataclass(frozen=True, slots=True)
class FoundTools:
    """What a search found. If none of the `best` has most words of the query, `near` has the tools that come next."""

    best: list[OfficeTool]
    near: list[OfficeTool]


class SchemaNews:
    """Logs what is left out of the schemas of tools: of each tool once, and of each computer a few lines a second."""

    def __init__(self) -> None:
        self._told: BoundedDict[tuple[str, str], tuple[str, ...]] = BoundedDict(10_000)
        self._log = LimitedLog(logger)

    def tell(self, computer: str, tool: str, left_out: tuple[str, ...]) -> None:
        if self._told.get((computer, tool)) != left_out:
            self._told.put((computer, tool), left_out)
            text = "the schema of %s on %s is shown without what some hosts cannot read: %s"
            self._log.warn(computer, text, in_log(tool), in_log(computer), in_log(", ".join(left_out)))


class ToolDirectory:
    """The tools of an office by computer. It never changes: a new state of the office is a new directory."""

    def __init__(
        self,
        tools: Mapping[str, Sequence[SMCPTool]],
        short: Mapping[str, str] | None = None,
        *,
        only: str | None = None,
        news: SchemaNews | None = None,
    ) -> None:
        self.tools = tools
        self._addresses = Addresses(only)
        self.left_out: dict[str, dict[str, tuple[str, ...]]] = {}
        """What is left out of the schemas of tools, by computer and tool."""
        self._news = news or SchemaNews()
        self._room = {
            computer: _MOST.shown_of_a_tool * min(max(len(found), _MOST.room_for_tools), MOST_TOOLS)
            for computer, found in tools.items()
        }
        pairs = {(computer, tool["name"]): tool for computer, found in tools.items() for tool in found[:MOST_TOOLS]}
        names = tool_names(pairs, short, plain=only is not None)
        self._by_pair = {pair: OfficeTool(names[pair], pair[0], tool) for pair, tool in pairs.items()}
        self.by_name = {entry.name: entry for entry in self._by_pair.values()}
        self._listing: dict[str, types.Tool] = {}
        self._whole: dict[str, types.Tool] = {}
        self._unlisted = iter(self.by_name.values())

    def __len__(self) -> int:
        return len(self.by_name)

    def list_some(self) -> bool:
        """Make the next few tools of the `listing`. Returns whether there may be more. Thousands of tools with long
        descriptions take a second, so others get their turn in between.
        """
        entries = list(islice(self._unlisted, 5))
        for entry in entries:
            shown = entry.as_mcp(self._room[entry.computer], self._addresses)
            self._room[entry.computer] = shown.room
            self._listing[entry.name] = shown.tool
            if shown.whole is not None:
                self._whole[entry.name] = shown.whole
            if shown.left_out:
                self.left_out.setdefault(entry.computer, {})[entry.tool["name"]] = shown.left_out
                self._news.tell(entry.computer, entry.tool["name"], shown.left_out)
        return bool(entries)

    @property
    def listing(self) -> list[types.Tool]:
        while self.list_some():
            pass
        return list(self._listing.values())

    @property
    def whole_listing(self) -> list[types.Tool]:
        """The `listing` for a host of 2026-07-28."""
        return [self._whole.get(tool.name, tool) for tool in self.listing]

    def listed_schema(self, name: str) -> Mapping[str, Any] | None:
        """The schema of a tool's arguments as a host of 2026-07-28 was shown it; `None` if it is not listed yet."""
        shown = self._whole.get(name) or self._listing.get(name)
        return None if shown is None else shown.input_schema

    def find(self, computer: str, tool: str) -> OfficeTool | None:
        """Find the tool of a computer by its own name or by its name for hosts."""
        found = self._by_pair.get((computer, tool)) or self.by_name.get(tool)
        return found if found is not None and found.computer == computer else None

    def near(self, typed: str, computer: str, most: int) -> list[str]:
        """The tools of a computer that were probably meant by a name: first those that are spelled alike, then those
        that have words of it.
        """
        alike = [entry.tool["name"] for entry in self.search(typed, computer, most)]
        return list(dict.fromkeys([*near_names(typed, self.names_of(computer), most), *alike]))[:most]

    def names_of(self, computer: str) -> list[str]:
        """The tools of a computer by their own names."""
        return [entry.tool["name"] for entry in self.by_name.values() if entry.computer == computer]

    def search(self, query: str, computer: str | None = None, most: int = 10) -> list[OfficeTool]:
        """The tools that contain words of the query, best match first."""
        return self.find_by_words(query, computer, most).best

    def find_by_words(self, query: str, computer: str | None = None, most: int = 10) -> "FoundTools":
        """The tools that contain words of the query, and the names of some more if none of them has most words."""
        entries, index = self._indexed
        among = None if computer is None else lambda number: entries[number].computer == computer
        found = index.ranked(query, most + _MOST.near, among)
        ranked = _aliases_last([(entries[number], share) for number, share in found])
        weak = max((share for _, share in ranked[:most]), default=0.0) <= _WEAK
        near = [entry for entry, _ in ranked[most:]] if weak else []
        return FoundTools([entry for entry, _ in ranked[:most]], near)

    def overview(self, computer: str | None = None) -> str:
        """The names of the tools, and the language of their descriptions."""
        entries = [entry for entry in self.by_name.values() if computer in (None, entry.computer)]
        if not entries:
            return "There are no tools."
        by_computer: dict[str, list[str]] = {}
        for entry in entries[: _MOST.names]:
            by_computer.setdefault(entry.computer, []).append(entry.tool["name"])
        lines = [f"{name}: {', '.join(names)}" for name, names in by_computer.items()]
        if len(entries) > _MOST.names:
            lines.append(f"… and {len(entries) - _MOST.names} more")
        return "\n".join(
            [
                cut("\n".join(lines), MODEL_SIZE),
                f"The descriptions are in {_language(entries)}: search in that language.",
            ]
        )

    @cached_property
    def _indexed(self) -> tuple[list[OfficeTool], SearchIndex]:
        entries = list(self.by_name.values())
        count = Counter(entry.computer for entry in entries)
        most = {computer: min(_MOST.indexed, _MOST.indexed_of_a_computer // tools) for computer, tools in count.items()}
        return entries, SearchIndex(
            [_texts(entry, most[entry.computer]) for entry in entries], _ANSWERING, CHANGING, DELETING
        )


def described(
    entries: Sequence[OfficeTool], *, computers: bool = True, schemas: int = 2, most: int = SEARCH_BYTES
) -> str:
    """The tools for a model, one JSON object per line, in `most` bytes of UTF-8. The first `schemas` of them have their
    schemas if there is room, the others their names and the beginning of their descriptions. What has no room at all
    is left out from the end.
    """
    # The later lines get their room first: a long schema must not cost the model the names of the other tools.
    briefly = [_brief(entry, computers) for entry in entries]
    while len(briefly) > 1 and _bytes(briefly) > most:
        briefly.pop()
    lines, room = list(briefly), most - _bytes(briefly)
    for number, entry in enumerate(entries[: min(schemas, len(lines))]):
        for line in _whole(entry, computers):
            more = len(line.encode()) - len(lines[number].encode())
            if more <= room:
                lines[number], room = line, room - more
                break
    return "\n".join(lines)


def _bytes(lines: Sequence[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


def _brief(entry: OfficeTool, computers: bool) -> str:
    about = as_one_line(entry.tool["description"][: _MOST.description])
    return _json({**_facts(entry, computers), "description": told(about, _MOST.brief)})


def _whole(entry: OfficeTool, computers: bool) -> Iterator[str]:
    """The tool with its schema; and, if there is no room for that, with the names of its arguments."""
    tool = entry.tool
    facts = {**_facts(entry, computers), "description": told(tool["description"], _MOST.description)}
    yield _json({**facts, "arguments": told_in_schema(tool["params_schema"])})
    names = [cut(name, 100) for name in islice(_parameters(tool), _MOST.names)]
    note = "there is no room for its schema here; call_tool says which arguments are wrong"
    yield _json({**facts, "argument_names": names, "note": note})


def _facts(entry: OfficeTool, computers: bool) -> dict[str, Any]:
    facts: dict[str, Any] = {"computer": entry.computer} if computers else {}
    facts["tool"] = entry.tool["name"]
    if (annotations := _annotations(entry.tool)) is not None and annotations.read_only_hint:
        facts["read_only"] = True
    return facts


def _aliases_last(ranked: Sequence[tuple[OfficeTool, float]]) -> list[tuple[OfficeTool, float]]:
    """The found tools, with those last that a better one of the same computer is, under a longer or shorter name: some
    servers list each tool as get_summary and as wikipedia_get_summary.
    """
    seen: dict[tuple[str, str], str] = {}

    def is_alias(found: tuple[OfficeTool, float]) -> bool:
        tool = found[0].tool
        name, better = tool["name"], seen.setdefault((found[0].computer, tool["description"]), tool["name"])
        return name.endswith(f"_{better}") or better.endswith(f"_{name}")

    return sorted(ranked, key=is_alias)


def _texts(entry: OfficeTool, most: int) -> dict[str, float]:
    tool = entry.tool
    names = " ".join(_parameters(tool))
    # If a text is in two fields, it counts in the heavier one.
    where = f"{entry.computer} {(tool.get('meta') or {}).get(SERVER_KEY) or ''}"
    found = ((names, 0.5), (where, 1.0), (tool["description"], 1.0), (_title(tool) or "", 2.0), (tool["name"], 3.0))
    texts = {text[:most]: weight for text, weight in found}
    return {text: weight for text, weight in texts.items() if text}


def _parameters(tool: SMCPTool) -> Iterable[str]:
    found = tool["params_schema"].get("properties")
    return found if isinstance(found, Mapping) else ()


def _size(schema: Mapping[str, Any] | None) -> int:
    return 0 if schema is None else len(json_or_none(schema) or "")


def _title(tool: SMCPTool) -> str | None:
    """The tool's title, or that of its annotations, where older servers put it."""
    if (title := _own_title(tool)) is not None:
        return title
    annotations = _annotations(tool)
    return annotations.title if annotations is not None else None


def _own_title(tool: SMCPTool) -> str | None:
    title = (tool.get("meta") or {}).get(TITLE_KEY)
    return title if isinstance(title, str) and title else None


def _annotations(tool: SMCPTool) -> types.ToolAnnotations | None:
    raw = (tool.get("meta") or {}).get(ANNOTATION_KEY)
    if not isinstance(raw, str) or len(raw) > _MOST.annotations:
        return None
    try:
        return types.ToolAnnotations.model_validate_json(raw)
    except ValidationError:
        return None


def _icons(text: Any) -> list[types.Icon] | None:
    """The icons of a tool from their JSON text; `None` if there are none, or if they are not MCP's."""
    if not isinstance(text, str) or len(text) > _MOST.icons:
        return None
    try:
        return _ICONS.validate_json(text) or None
    except ValidationError:
        return None


def _language(entries: Sequence[OfficeTool]) -> str:
    cjk = sum(is_mostly_cjk(entry.tool["description"]) for entry in entries)
    if cjk * 5 > len(entries) * 4:
        return "Chinese, Japanese or Korean"
    return "English" if cjk * 5 < len(entries) else "English and Chinese"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

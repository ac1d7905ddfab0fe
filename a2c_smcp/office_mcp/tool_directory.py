"""The tools of all computers at one moment: by name, by words, and as MCP lists them. Pure."""

import json
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Final

import mcp_types as types
from pydantic import ValidationError

from a2c_smcp.office_mcp.search import SearchIndex, is_mostly_cjk
from a2c_smcp.office_mcp.sizing import MODEL_SIZE
from a2c_smcp.office_mcp.tool_names import tool_names
from a2c_smcp.results import ANNOTATION_KEY, TITLE_KEY
from a2c_smcp.smcp import SMCPTool
from a2c_smcp.utils.text import cut, harmless, in_log, printable

__all__ = ["MOST_TOOLS", "OfficeTool", "ToolDirectory", "described"]

logger = logging.getLogger(__name__)

#: How many tools of one computer are used. More are a mistake or an attack.
MOST_TOOLS: Final = 5000


@dataclass(frozen=True, slots=True)
class _DirectoryBounds:
    """Limits, in characters, on the texts of strangers that are shown and searched."""

    names: int = 200
    title: int = 200
    description: int = 1000
    annotations: int = 10_000
    indexed: int = 4000  # of one text, for a search
    indexed_of_a_computer: int = 1_000_000  # of all texts of one computer


_MOST: Final = _DirectoryBounds()


@dataclass(frozen=True, slots=True)
class OfficeTool:
    """A tool of a computer, and its name for hosts."""

    name: str
    computer: str
    tool: SMCPTool

    def as_mcp(self) -> types.Tool | None:
        """The tool as MCP lists it. If its definition is not MCP's, `None` and a warning."""
        schema, output = self.tool["params_schema"], self.tool.get("return_schema")
        if not _is_object_schema(schema):
            name, computer = in_log(self.tool["name"]), in_log(self.computer)
            logger.warning("the tool %s of %s is hidden: its schema is not MCP's", name, computer)
            return None
        return types.Tool(
            name=self.name,
            title=printable(f"{cut(_title(self.tool) or self.tool['name'], _MOST.title)} ({self.computer})"),
            description=harmless(
                f"On {self.computer}: {cut(self.tool['description'] or self.tool['name'], MODEL_SIZE)}"
            ),
            input_schema=schema,
            output_schema=output if _is_object_schema(output) else None,
            annotations=_annotations(self.tool),
        )


class ToolDirectory:
    """The tools of an office by computer. It never changes: a new state of the office is a new directory."""

    def __init__(
        self, tools: Mapping[str, Sequence[SMCPTool]], short: Mapping[str, str] | None = None, *, plain: bool = False
    ) -> None:
        self.tools = tools
        pairs = {(computer, tool["name"]): tool for computer, found in tools.items() for tool in found[:MOST_TOOLS]}
        names = tool_names(pairs, short, plain=plain)
        self._by_pair = {pair: OfficeTool(names[pair], pair[0], tool) for pair, tool in pairs.items()}
        self.by_name = {entry.name: entry for entry in self._by_pair.values()}
        self._listing: list[types.Tool] = []
        self._unlisted = iter(self.by_name.values())

    def __len__(self) -> int:
        return len(self.by_name)

    def list_some(self) -> bool:
        """Make the next few tools of the `listing`. Returns whether there may be more. Thousands of tools with long
        descriptions take a second, so others get their turn in between.
        """
        entries = list(islice(self._unlisted, 20))
        self._listing += [tool for entry in entries if (tool := entry.as_mcp()) is not None]
        return bool(entries)

    @property
    def listing(self) -> list[types.Tool]:
        while self.list_some():
            pass
        return self._listing

    def find(self, computer: str, tool: str) -> OfficeTool | None:
        """Find the tool of a computer by its own name or by its name for hosts."""
        found = self._by_pair.get((computer, tool)) or self.by_name.get(tool)
        return found if found is not None and found.computer == computer else None

    def search(self, query: str, computer: str | None = None, most: int = 10) -> list[OfficeTool]:
        """The tools that contain words of the query, best match first."""
        entries, index = self._indexed
        found = (entries[number] for number in index.best(query, len(entries) if computer else most))
        return [entry for entry in found if computer in (None, entry.computer)][:most]

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
        return entries, SearchIndex([_texts(entry, most[entry.computer]) for entry in entries])


def described(entries: Iterable[OfficeTool], *, computers: bool = True) -> str:
    """The tools for a model, one JSON object per line. Schemas are included while there is room."""
    lines, room = list[str](), MODEL_SIZE
    for entry in entries:
        tool = entry.tool
        facts: dict[str, Any] = {"computer": entry.computer} if computers else {}
        facts |= {"tool": tool["name"], "description": tool["description"][: _MOST.description]}
        if (annotations := _annotations(tool)) is not None and annotations.read_only_hint:
            facts["read_only"] = True
        line = _json({**facts, "arguments": tool["params_schema"]})
        if len(line) > room:
            names = [cut(name, 100) for name in islice(_parameters(tool), _MOST.names)]
            note = "there is no room for its schema here; call_tool says which arguments are wrong"
            line = _json({**facts, "argument_names": names, "note": note})
        room -= len(line)
        lines.append(line)
    return "\n".join(lines)


def _texts(entry: OfficeTool, most: int) -> dict[str, float]:
    tool = entry.tool
    names = " ".join(_parameters(tool))
    # If a text is in two fields, it counts in the heavier one.
    found = ((names, 0.5), (tool["description"], 1.0), (_title(tool) or "", 2.0), (tool["name"], 3.0))
    texts = {text[:most]: weight for text, weight in found}
    return {text: weight for text, weight in texts.items() if text}


def _parameters(tool: SMCPTool) -> Iterable[str]:
    found = tool["params_schema"].get("properties")
    return found if isinstance(found, Mapping) else ()


def _is_object_schema(schema: Any) -> bool:
    """Whether every version of MCP accepts it as the schema of a tool. One bad schema would spoil the whole list."""
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        return False
    properties, required = schema.get("properties") or {}, schema.get("required") or []
    return (
        isinstance(schema.get("$schema"), str | None)
        and isinstance(properties, Mapping)
        and all(isinstance(each, Mapping | bool) for each in properties.values())
        and isinstance(required, list)
        and all(isinstance(name, str) for name in required)
    )


def _title(tool: SMCPTool) -> str | None:
    """The tool's title, or that of its annotations, where older servers put it."""
    title = (tool.get("meta") or {}).get(TITLE_KEY)
    if isinstance(title, str) and title:
        return title
    annotations = _annotations(tool)
    return annotations.title if annotations is not None else None


def _annotations(tool: SMCPTool) -> types.ToolAnnotations | None:
    raw = (tool.get("meta") or {}).get(ANNOTATION_KEY)
    if not isinstance(raw, str) or len(raw) > _MOST.annotations:
        return None
    try:
        return types.ToolAnnotations.model_validate_json(raw)
    except ValidationError:
        return None


def _language(entries: Sequence[OfficeTool]) -> str:
    cjk = sum(is_mostly_cjk(entry.tool["description"]) for entry in entries)
    if cjk * 5 > len(entries) * 4:
        return "Chinese, Japanese or Korean"
    return "English" if cjk * 5 < len(entries) else "English and Chinese"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

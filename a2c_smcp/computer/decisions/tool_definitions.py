"""Makes the description of a tool that a person sees before a call runs, and its digest."""

import json
from collections.abc import Mapping
from typing import Any, Final

from a2c_smcp.computer.calls.log import digest_of
from a2c_smcp.computer.config.problems import InvalidConfigError
from a2c_smcp.computer.decisions.book import ToolDefinition
from a2c_smcp.computer.mcp_clients.catalogue import ShownTool
from a2c_smcp.computer.mcp_clients.masking import server_view
from a2c_smcp.computer.mcp_clients.server_book import ServerBook
from a2c_smcp.computer.rules.deciding import RuledTool

__all__ = ["DANGEROUS", "ToolDefinitions", "definition_of"]

#: With this tag in a tool's meta, the person is shown a warning beside its calls.
DANGEROUS: Final = "dangerous"


def definition_of(tool: ShownTool, raw: Mapping[str, Any] | None = None) -> ToolDefinition:
    """The tool as its server describes it now, with the config of that server as it was written. If a name, the
    description, the schema, a hint, or where the server comes from changes, so does the digest.
    """
    said = tool.tool
    hints = _hints(tool)
    schema_digest = digest_of(said.input_schema)
    tags = (tool.meta.tags if tool.meta is not None else None) or ()
    source_digest = "" if raw is None else digest_of([raw.get("type"), raw.get("server_parameters")])
    names = [tool.server, tool.name, tool.original]
    return ToolDefinition(
        title=said.title,
        description=said.description or "",
        annotations=hints,
        schema_digest=schema_digest,
        digest=digest_of([names, said.title, said.description, hints, schema_digest, source_digest]),
        schema=said.input_schema,
        server=tool.server,
        source="" if raw is None else _source(raw),
        source_digest=source_digest,
        is_dangerous=hints.get("destructiveHint") is True or DANGEROUS in tags,
    )


def _hints(tool: ShownTool) -> dict[str, Any]:
    said = tool.tool.annotations
    return {} if said is None else said.model_dump(mode="json", by_alias=True, exclude_none=True)


def _source(raw: Mapping[str, Any]) -> str:
    try:
        shown = server_view(dict(raw))
    except InvalidConfigError:
        return ""
    return json.dumps([shown.get("type"), shown.get("server_parameters")], ensure_ascii=False, sort_keys=True)


class ToolDefinitions:
    """The definitions of the tools that are shown now, each made once."""

    def __init__(self, book: ServerBook) -> None:
        self._book = book
        self._known: dict[str, tuple[ShownTool, Any, ToolDefinition]] = {}

    def of(self, tool: ShownTool) -> ToolDefinition:
        server = self._book.servers.get(tool.server)
        raw = None if server is None else server.raw
        known = self._known.get(tool.name)
        if known is not None and known[0].tool is tool.tool and known[0].server == tool.server and known[1] is raw:
            return known[2]
        definition = definition_of(tool, raw)
        if len(self._known) > 10_000:
            self._known.clear()
        self._known[tool.name] = tool, raw, definition
        return definition

    def ruled(self, tool: ShownTool) -> RuledTool:
        """The tool as rules see it. Its digest is made only if a rule needs it."""
        return RuledTool(tool.server, tool.name, tool.original, _hints(tool), lambda: self.of(tool).digest)

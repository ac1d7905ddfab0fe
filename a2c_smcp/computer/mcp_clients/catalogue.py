"""Which tools are shown, under which names, and what a name means when it is called. Pure: MCP's lists come in.

A `Catalogue` is a value: each change returns a new one, and a refused change changes nothing. There are two rules for
names that clash:

    update    a server that is added, updated or started is refused as a whole; those that run keep their names
    refresh   a running server whose list changed, or that came back, has only its clashing tools hidden

Servers that start together come in with `update`, too, in config order: see the manager.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from mcp_types import Tool

from a2c_smcp.computer.mcp_clients.model import MCPServerConfig, ToolMeta
from a2c_smcp.errors import ServerNotActiveError, ToolDisabledError, ToolNameDuplicatedError, ToolNotFoundError
from a2c_smcp.results import ANNOTATION_KEY, ICONS_KEY, META_KEY, RULE_KEY, SERVER_KEY, TITLE_KEY, TOOL_META_MARKER
from a2c_smcp.smcp import SMCPTool
from a2c_smcp.types import SERVER_NAME, TOOL_NAME, AttributeValue
from a2c_smcp.utils.text import cut

__all__ = [
    "Catalogue",
    "ShownTool",
    "ToolListing",
    "clashes",
    "merge_meta",
    "smcp_tool",
    "with_server_names",
]

_OWN_KEYS: Final = (TOOL_META_MARKER, ANNOTATION_KEY, TITLE_KEY, ICONS_KEY, META_KEY, SERVER_KEY, RULE_KEY)
#: How many characters of JSON the icons or the `_meta` of a tool may have. Larger ones are left out.
_LONGEST_EXTRA: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class ToolListing:
    """A server's config, and the tools that it listed last."""

    config: MCPServerConfig
    tools: tuple[Tool, ...]
    active: bool = True
    """Whether the server runs. A server that does not run keeps its list, so that the error of a call can name the
    server.
    """

    @property
    def server(self) -> SERVER_NAME:
        return self.config.name


@dataclass(frozen=True)
class ShownTool:
    """What a shown name stands for."""

    name: TOOL_NAME
    server: SERVER_NAME
    tool: Tool
    meta: ToolMeta | None
    """The merged meta, `None` where nothing is configured."""

    @property
    def original(self) -> TOOL_NAME:
        return self.tool.name

    @cached_property
    def meta_object(self) -> dict[str, Any] | None:
        """The meta as JSON: every key of the protocol, `None` where it is unset, then the unknown keys. It is shared by
        the results of all calls.
        """
        return self.meta.model_dump(mode="json") if self.meta is not None else None


@dataclass(frozen=True)
class Catalogue:
    """The tools of all servers. `listings` is in config order; `shown` maps each shown name to its tool."""

    listings: Mapping[SERVER_NAME, ToolListing] = field(default_factory=dict)
    shown: Mapping[TOOL_NAME, ShownTool] = field(default_factory=dict)

    @cached_property
    def tools(self) -> list[SMCPTool]:
        """What `client:get_tools` returns, built once; not to be changed by its reader."""
        return [smcp_tool(shown) for shown in self.shown.values()]

    def resolve(self, name: TOOL_NAME) -> ShownTool:
        """The tool that a call means.

        Raises `ToolDisabledError` for a forbidden tool, `ServerNotActiveError` for one whose server is not running,
        and `ToolNotFoundError` for any other name.
        """
        if shown := self.shown.get(name):
            return shown
        for listing in self.listings.values():
            if name in listing.config.forbidden_tools or any(tool.name == name for tool in _offers(listing, True)):
                raise ToolDisabledError(f"Tool {cut(name, 200)} is disabled on server {listing.server}")
        for listing in self.listings.values():
            if not listing.active and any(tool.name == name for tool in _offers(listing)):
                raise ServerNotActiveError(listing.server)
        raise ToolNotFoundError(name)

    def update(self, listing: ToolListing, order: Sequence[SERVER_NAME] | None = None) -> "Catalogue":
        """The catalogue after a server was added, updated or started; `ToolNameDuplicatedError` if it would clash.

        `order` is the config order. Without it a new server goes last.
        """
        others = {name: tool for name, tool in self.shown.items() if tool.server != listing.server}
        if clash := _clash(listing, others):
            raise clash
        listings = {**self.listings, listing.server: listing}
        if order is not None:
            position = {name: index for index, name in enumerate(order)}
            listings = dict(sorted(listings.items(), key=lambda item: position.get(item[0], len(position))))
        # The server gets its names, even if a hidden tool of another server waits for one of them.
        return _show(listings, [*others.values(), *_offers(listing)])

    def refresh(
        self, server: SERVER_NAME, tools: Iterable[Tool]
    ) -> tuple["Catalogue", tuple[ToolNameDuplicatedError, ...]]:
        """The catalogue after a running server's list changed, or a server came back; and the clashes that are new.

        A tool that clashes stays hidden until its name is free.
        """
        known = set(self.hidden())
        listing = replace(self.listings[server], tools=tuple(tools), active=True)
        new = _show({**self.listings, server: listing}, self.shown.values())
        return new, clashes(found for found in new.hidden() if found not in known)

    def stop(self, server: SERVER_NAME) -> "Catalogue":
        """The catalogue after a server stopped, died or failed: its tools are gone, its names are free."""
        if server not in self.listings:
            return self
        listing = replace(self.listings[server], active=False)
        return _show({**self.listings, server: listing}, self.shown.values())

    def remove(self, server: SERVER_NAME) -> "Catalogue":
        """The catalogue after a server's config was removed."""
        listings = {name: listing for name, listing in self.listings.items() if name != server}
        return _show(listings, self.shown.values())

    def hidden(self) -> Iterator[tuple[TOOL_NAME, tuple[SERVER_NAME, SERVER_NAME]]]:
        """The names that are hidden because another server holds them, each with both servers."""
        for listing in self.listings.values():
            for tool in _offers(listing) if listing.active else ():
                if (holder := self.shown[tool.name]).tool is not tool.tool:
                    yield tool.name, (holder.server, tool.server)


def clashes(hidden: Iterable[tuple[TOOL_NAME, tuple[SERVER_NAME, SERVER_NAME]]]) -> tuple[ToolNameDuplicatedError, ...]:
    """One error for each pair of servers, with all names that both of them claim."""
    names: dict[tuple[SERVER_NAME, SERVER_NAME], dict[TOOL_NAME, None]] = {}
    for name, servers in hidden:
        names.setdefault(servers, {})[name] = None
    return tuple(ToolNameDuplicatedError([*claimed], servers) for servers, claimed in names.items())


def merge_meta(config: MCPServerConfig, original: TOOL_NAME) -> ToolMeta | None:
    """The tool's own meta; keys that are unset there come from `default_tool_meta`. `None` if the config has
    neither.
    """
    parts = [meta for meta in (config.default_tool_meta, config.tool_meta.get(original)) if meta is not None]
    merged: dict[str, Any] = {}
    for meta in parts:
        merged.update(
            (key, value) for key, value in meta.model_dump().items() if value is not None or key not in merged
        )
    return ToolMeta.model_validate(merged) if parts else None


def smcp_tool(shown: ShownTool) -> SMCPTool:
    """The tool as agents see it."""
    return {
        "name": shown.name,
        "description": shown.tool.description or "",
        "params_schema": shown.tool.input_schema,
        "return_schema": shown.tool.output_schema,
        "meta": _smcp_meta(shown),
    }


def _smcp_meta(shown: ShownTool) -> dict[str, AttributeValue]:
    own = shown.tool.meta or {}
    meta = {key: _attribute(value) for key, value in own.items() if key not in _OWN_KEYS}
    if shown.meta_object is not None:
        meta[TOOL_META_MARKER] = _json(shown.meta_object)
    if shown.tool.annotations is not None:
        meta[ANNOTATION_KEY] = _json(shown.tool.annotations.model_dump(mode="json", by_alias=True, exclude_none=True))
    if shown.tool.title is not None:
        meta[TITLE_KEY] = shown.tool.title
    icons = [icon.model_dump(mode="json", by_alias=True, exclude_none=True) for icon in shown.tool.icons or ()]
    for key, extra in ((ICONS_KEY, icons), (META_KEY, own)):
        if extra and len(text := _json(extra)) <= _LONGEST_EXTRA:
            meta[key] = text
    return meta


def with_server_names(tools: Iterable[SMCPTool], servers: Mapping[TOOL_NAME, SERVER_NAME]) -> list[SMCPTool]:
    """The tools with the name of each one's server, for agents that ask for it. A tool whose server is not known any
    more stays as it is.
    """
    return [
        {**tool, "meta": {**(tool.get("meta") or {}), SERVER_KEY: server}}
        if (server := servers.get(tool["name"])) is not None
        else tool
        for tool in tools
    ]


def _attribute(value: Any) -> AttributeValue:
    """A plain value, or a list of values of one plain type, stays as it is. Everything else becomes JSON."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list):
        kinds = {type(item) for item in value}
        if len(kinds) <= 1 and kinds <= {str, bool, int, float}:
            return value
    return _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _offers(listing: ToolListing, forbidden: bool = False) -> Iterator[ShownTool]:
    """The allowed tools of a server, or its forbidden ones, each under the name that agents would see."""
    banned = set(listing.config.forbidden_tools)
    for tool in listing.tools:
        meta = merge_meta(listing.config, tool.name)
        name = (meta.alias if meta is not None else None) or (listing.config.tool_prefix or "") + tool.name
        if (name in banned or tool.name in banned) is forbidden:
            yield ShownTool(name, listing.server, tool, meta)


def _clash(listing: ToolListing, taken: Mapping[TOOL_NAME, ShownTool]) -> ToolNameDuplicatedError | None:
    """One error for all tools of a server whose names are taken, by another server or by another tool of its own."""
    own: dict[TOOL_NAME, ShownTool] = {}
    holders: dict[TOOL_NAME, SERVER_NAME] = {}
    for tool in _offers(listing):
        if holder := taken.get(tool.name) or own.get(tool.name):
            holders.setdefault(tool.name, holder.server)
        own[tool.name] = tool
    return ToolNameDuplicatedError([*holders], [*dict.fromkeys(holders.values()), listing.server]) if holders else None


def _show(listings: Mapping[SERVER_NAME, ToolListing], holders: Iterable[ShownTool]) -> Catalogue:
    """Which tools are shown: a tool that holds a name keeps it; free names are given in config order."""
    offers = [tool for listing in listings.values() if listing.active for tool in _offers(listing)]
    held = {(tool.name, tool.server, tool.original) for tool in holders}
    owners: dict[TOOL_NAME, ShownTool] = {}
    for tool in sorted(offers, key=lambda tool: (tool.name, tool.server, tool.original) not in held):
        owners.setdefault(tool.name, tool)
    shown = {tool.name: tool for tool in offers if owners[tool.name] is tool}
    return Catalogue(listings, shown)

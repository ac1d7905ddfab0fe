"""The answers of a computer in the shapes that 0.4 peers read, and those that they give. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from a2c_smcp.dialects.bundle_ids import BundleIds
from a2c_smcp.smcp import GetComputerConfigRet, SMCPTool

__all__ = ["bundle_ids_of", "config_for_04", "resource_for_04", "resource_from_04", "tools_for_04"]


def tools_for_04(tools: Iterable[SMCPTool], ids: BundleIds, servers: Mapping[str, str]) -> list[dict[str, Any]]:
    """Tools with their `bundle_id`, and under the names by which 0.4 agents call them."""
    shown = []
    for tool in tools:
        server = servers.get(tool["name"], "")
        name = ids.shown_name(server, tool["name"])
        shown.append({**tool, "name": name, "bundle_id": ids.by_server.get(server, server)})
    return shown


def config_for_04(config: GetComputerConfigRet, ids: BundleIds) -> dict[str, Any]:
    """A config whose servers are found by their `bundle_id`."""
    servers: Mapping[str, Any] = config["servers"]
    infos: Mapping[str, Any] = config.get("server_info") or {}
    named = {name: ids.by_server.get(name, name) for name in servers}
    return {
        "inputs": [_input_for_04(each) for each in config.get("inputs") or []],
        "servers": {named[name]: {**server, "bundle_id": named[name]} for name, server in servers.items()},
        "server_info": {named.get(name, name): info for name, info in infos.items()},
    }


def _input_for_04(definition: Mapping[str, Any]) -> dict[str, Any]:
    if definition.get("type") != "pickString":
        return dict(definition)
    labels: Mapping[str, str] = definition.get("labels") or {}
    options = [{"label": labels.get(each, each), "value": each} for each in definition["options"]]
    return {**{key: value for key, value in definition.items() if key != "labels"}, "options": options}


_RESOURCE_KEYS: Final = {
    "uri": "uri",
    "name": "name",
    "description": "description",
    "mimeType": "mime_type",
    "size": "size",
    "_meta": "_meta",
}
_ANNOTATION_KEYS: Final = {"audience": "audience", "priority": "priority", "lastModified": "last_modified"}


def resource_for_04(resource: Mapping[str, Any]) -> dict[str, Any]:
    """A resource, which is in MCP's JSON form, in the shape of 0.4: its keys are spelled differently, and what is
    `None` is left out.
    """
    shown = {theirs: resource[ours] for ours, theirs in _RESOURCE_KEYS.items() if resource.get(ours) is not None}
    given: Mapping[str, Any] = resource.get("annotations") or {}
    said = {theirs: given[ours] for ours, theirs in _ANNOTATION_KEYS.items() if given.get(ours) is not None}
    return {**shown, "annotations": said} if said else shown


def resource_from_04(resource: Mapping[str, Any], server: str) -> dict[str, Any]:
    """A resource of a computer of 0.4, or of one that speaks like it, in MCP's JSON form."""
    ours = {theirs: ours for ours, theirs in _RESOURCE_KEYS.items()}
    shown = {ours.get(key, key): value for key, value in resource.items()}
    if isinstance(given := shown.get("annotations"), Mapping):
        said = {theirs: ours for ours, theirs in _ANNOTATION_KEYS.items()}
        shown["annotations"] = {said.get(key, key): value for key, value in given.items()}
    return {"mcp_server": server, **shown}


def bundle_ids_of(tools: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The MCP servers of these tools, as 0.4 calls them; none where the computer speaks as we do."""
    return tuple(dict.fromkeys(id for tool in tools if isinstance(id := tool.get("bundle_id"), str)))

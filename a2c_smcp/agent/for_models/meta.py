"""Which `_meta` of a computer's MCP servers reaches the host: all that is theirs, and nothing that is ours. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from a2c_smcp.agent.for_models.addresses import Addresses
from a2c_smcp.results import (
    DOWN_MARKER,
    ERROR_CODE_MARKER,
    OUTCOME_MARKER,
    REASON_MARKER,
    STARTING_MARKER,
    STATE_MARKER,
)
from a2c_smcp.utils.json_sizes import is_deeper
from a2c_smcp.wire import codec

__all__ = ["own_result_meta", "tool_meta"]

#: Such keys are between an MCP server and its own client, such as the name of the server.
_MCP: Final = "io.modelcontextprotocol/"
_OURS: Final = "a2c_"
#: Beside an error code these keys are ours; elsewhere they may be a server's own.
_BESIDE_A_CODE: Final = frozenset(
    {ERROR_CODE_MARKER, OUTCOME_MARKER, REASON_MARKER, STARTING_MARKER, STATE_MARKER, DOWN_MARKER}
)
#: Where a tool names its user interface, in both spellings of MCP Apps.
_UI: Final = "ui"
_UI_URI: Final = "resourceUri"
_OLD_UI_URI: Final = "ui/resourceUri"
#: How deep the `_meta` of a tool may nest. If mcp cannot write one, it cannot write the whole list of tools.
_LEVELS: Final = 50


def own_result_meta(meta: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The `_meta` of a result as its MCP server made it; `None` if nothing of it is the server's."""
    if not meta:
        return None
    ours = _BESIDE_A_CODE if ERROR_CODE_MARKER in meta else frozenset()
    own = {key: value for key, value in meta.items() if key not in ours and not key.startswith((_MCP, _OURS))}
    return own or None


def tool_meta(text: Any, computer: str, addresses: Addresses, most: int) -> dict[str, Any] | None:
    """The `_meta` of a tool from its JSON text. The URI of its user interface becomes an address. `None` if there is
    none, or if it is too large: it has more than `most` characters, or nests too deep for mcp to write it.
    """
    if not isinstance(text, str) or len(text) > most:
        return None
    try:
        meta = codec.loads_well_formed(text)
    except ValueError:
        return None
    if not isinstance(meta, dict) or not meta or is_deeper(meta, _LEVELS):
        return None
    if isinstance(uri := meta.get(_OLD_UI_URI), str):
        meta[_OLD_UI_URI] = addresses.of(computer, uri)
    ui = meta.get(_UI)
    if isinstance(ui, dict) and isinstance(uri := ui.get(_UI_URI), str):
        meta[_UI] = {**ui, _UI_URI: addresses.of(computer, uri)}
    return meta

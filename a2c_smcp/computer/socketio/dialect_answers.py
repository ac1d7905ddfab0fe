"""Answers the requests of 0.4 agents: a layer around the handlers of our own dialect, which do not know of it.

A request comes from such an agent if our server marked it. At a 0.4 server nobody marks anything: there the computer
speaks 0.4 with everybody.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.redaction import discreet_error
from a2c_smcp.computer.socketio.kept_blobs import KeptBlobs
from a2c_smcp.dialects.blobs import with_handles
from a2c_smcp.dialects.call_times import tool_seconds
from a2c_smcp.dialects.flat_errors import flat_payload
from a2c_smcp.dialects.handshake import Dialect
from a2c_smcp.dialects.marks import is_marked
from a2c_smcp.dialects.shapes import config_for_04, resource_for_04, tools_for_04
from a2c_smcp.errors import NotFoundError, SMCPError, error_from_payload
from a2c_smcp.link.connection import ANSWERED_ON
from a2c_smcp.link.interface import Handler
from a2c_smcp.smcp import GET_CONFIG_EVENT, GET_RESOURCES_EVENT, GET_TOOLS_EVENT, TOOL_CALL_EVENT, CallToolRet

__all__ = ["DialectAnswers"]


class DialectAnswers:
    """Translates for 0.4 agents. `dialect` returns what the server speaks, and `blobs` keeps what such agents fetch in
    chunks.
    """

    def __init__(self, computer: Computer, dialect: Callable[[], Dialect], blobs: KeptBlobs) -> None:
        self._computer = computer
        self._dialect = dialect
        self._blobs = blobs
        self._translations: Mapping[str, Callable[[Handler, dict[str, Any]], Awaitable[Any]]] = {
            TOOL_CALL_EVENT: self._call,
            GET_TOOLS_EVENT: self._tools,
            GET_CONFIG_EVENT: self._config,
            GET_RESOURCES_EVENT: self._resources,
        }

    def are_for(self, data: Any) -> bool:
        """Whether this request is of a 0.4 agent."""
        if is_marked(data):
            return True
        connection = ANSWERED_ON.get()
        return (self._dialect() if connection is None else connection.dialect) is Dialect.V0_4

    async def answer(self, event: str, handler: Handler, data: Any) -> Any:
        """Let a handler of our own dialect answer a 0.4 agent."""
        translate = self._translations.get(event) if isinstance(data, dict) else None
        reply = await (handler(data) if translate is None else translate(handler, data))
        error_said = error_from_payload(reply) if isinstance(reply, dict) else None
        return reply if error_said is None else flat_payload(event, error_said)

    def refused(self, event: object, data: Any, error: SMCPError) -> dict[str, Any]:
        """What is sent for a request that has failed."""
        shown = discreet_error(error)
        return flat_payload(event, shown) if isinstance(event, str) and self.are_for(data) else shown.payload()

    async def _call(self, handler: Handler, data: dict[str, Any]) -> Any:
        name, computer = data.get("tool_name"), self._computer
        own = computer.bundle_ids.own_name(name, computer.tool_servers) if isinstance(name, str) else name
        return await handler({**data, "tool_name": own})

    async def _tools(self, handler: Handler, data: dict[str, Any]) -> Any:
        reply = await handler(data)
        return {**reply, "tools": tools_for_04(reply["tools"], self._computer.bundle_ids, self._computer.tool_servers)}

    async def _config(self, handler: Handler, data: dict[str, Any]) -> Any:
        return config_for_04(await handler(data), self._computer.bundle_ids)

    async def _resources(self, handler: Handler, data: dict[str, Any]) -> Any:
        asked, ids = data.get("mcp_server"), self._computer.bundle_ids
        if isinstance(asked, str):
            known = ids.servers.get(asked) or (asked if asked in ids.by_server else None)
            if known is None:
                raise _UnknownServerError(asked)
            data = {**data, "mcp_server": known}
        reply = await handler(data)
        return {
            **{key: value for key, value in reply.items() if key != "templates"},
            "resources": [resource_for_04(each) for each in reply["resources"]],
        }

    # --- tool calls

    def shaped(self, result: CallToolRet) -> CallToolRet:
        """A result for a 0.4 agent: with handles."""
        return with_handles(result, self._blobs.for_one_result())

    def seconds(self, timeout: float) -> float:
        """How long a tool may run whose call has this timeout."""
        return tool_seconds(self._dialect(), timeout)


class _UnknownServerError(NotFoundError):
    """0.4 has a code of its own for this."""

    def __init__(self, server: str) -> None:
        super().__init__("MCP Server not registered", {"mcp_server": server})
        self.code = 4014

"""The requests of an office's agent for resources and prompts. Knows requests and replies; the Computer knows the
rest.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from a2c_smcp.computer.asker import ASKER, Asker
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.mcp_clients.item_limits import largest_answer
from a2c_smcp.computer.mcp_clients.protocol_requests import trace_context
from a2c_smcp.computer.resources.parts import ResourceBody, read_range
from a2c_smcp.computer.resources.prompt_rounds import round_of
from a2c_smcp.computer.resources.read_guard import ReadGuard
from a2c_smcp.computer.socketio.kept_bodies import KeptBodies
from a2c_smcp.computer.socketio.subscriptions import AgentSubscriptions
from a2c_smcp.errors import InternalError, PayloadTooLargeError
from a2c_smcp.smcp import (
    CompleteReq,
    CompleteRet,
    DoneRet,
    GetPromptReq,
    GetPromptRet,
    GetPromptsReq,
    GetPromptsRet,
    GetResourcesReq,
    GetResourcesRet,
    ReadResourceReq,
    ReadResourceRet,
    SubscribeResourceReq,
)
from a2c_smcp.wire import PACKET_OVERHEAD, Encoded, checked_size, codec

__all__ = ["AgentReads"]

#: What an answer has around the items of a list.
_AROUND: Final = 2048
#: MCP allows as many values in a completion.
_COMPLETIONS: Final = 100


class AgentReads:
    """Answers requests of the task's `ASKER`. `max_message` returns how large an answer may be. It is never larger than
    `largest`. `guard` knows what the agent may read.
    """

    def __init__(
        self,
        computer: Computer,
        subscriptions: AgentSubscriptions,
        largest: int,
        max_message: Callable[[], int],
        guard: ReadGuard,
    ) -> None:
        self._computer = computer
        self._guard = guard
        self._subscriptions = subscriptions
        self._max_message = max_message
        self._bodies = KeptBodies(2 * largest_answer(largest))

    def forget(self) -> None:
        """The agent has left: forget what was kept for it, and end its subscriptions."""
        self._bodies.clear()
        self._subscriptions.end()
        self._guard.forget()

    @property
    def _room(self) -> int:
        return max(1, self._max_message() - PACKET_OVERHEAD - _AROUND)

    # --- lists

    async def get_resources(self, request: GetResourcesReq) -> GetResourcesRet:
        page = await self._computer.shared.resources(
            request.get("mcp_server"), request.get("cursor"), self._room, self._guard.sight()
        )
        answer: GetResourcesRet = {
            "resources": page.items["resources"],
            "templates": page.items["templates"],
            "req_id": request["req_id"],
        }
        if page.next_cursor is not None:
            answer["next_cursor"] = page.next_cursor
        return answer

    async def get_prompts(self, request: GetPromptsReq) -> GetPromptsRet:
        page = await self._computer.shared.prompts(
            request.get("mcp_server"), request.get("cursor"), self._room, self._guard.sight()
        )
        answer: GetPromptsRet = {"prompts": page.items["prompts"], "req_id": request["req_id"]}
        if page.next_cursor is not None:
            answer["next_cursor"] = page.next_cursor
        return answer

    # --- resources

    async def read_resource(self, request: ReadResourceReq) -> Encoded:
        caller, uri, wanted = ASKER.get(), request["uri"], request.get("range")
        if wanted is not None:
            return await self._read_part(request, caller, *read_range(wanted))
        contents, meta = await self._read(request, caller)
        answer: ReadResourceRet = {"contents": contents, "req_id": request["req_id"]}
        if meta:
            answer["meta"] = meta
        text = codec.dumps(answer)
        try:
            checked_size("the resource", text, self._max_message())
        except PayloadTooLargeError as error:
            self._keep_for_parts(error, caller, uri, contents, meta)
            raise
        return Encoded(text)

    async def _read(
        self, request: ReadResourceReq, caller: Asker
    ) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
        meta, sight = trace_context(request.get("meta")), self._guard.sight()
        result = await self._computer.shared.read(request["uri"], caller, meta, sight)
        contents = [content.model_dump(mode="json", by_alias=True, exclude_none=True) for content in result.contents]
        return contents, dict(result.meta) if result.meta else None

    def _keep_for_parts(
        self,
        error: PayloadTooLargeError,
        caller: Asker,
        uri: str,
        contents: list[dict[str, Any]],
        meta: Mapping[str, Any] | None,
    ) -> None:
        """Keep contents that are too large for one message: the agent will read them in parts. The error has the
        size.
        """
        try:
            body = ResourceBody(contents, meta)
        except InternalError:  # a blob that is not base64 cannot be cut
            return
        error.details = {**error.details, "total_size": body.size}
        self._bodies.put(caller, uri, body, is_read=False)

    async def _read_part(self, request: ReadResourceReq, caller: Asker, offset: int, length: int) -> Encoded:
        uri = request["uri"]
        body = self._bodies.get(caller, uri, begins=offset == 0)
        if body is None:
            body = ResourceBody(*await self._read(request, caller))
            self._bodies.put(caller, uri, body, is_read=True)
        elif (sight := self._guard.sight()) is not None:
            await self._computer.shared.check(uri, caller, sight)
        part = body.part(offset, length)
        answer: ReadResourceRet = {
            "contents": part.contents,
            "req_id": request["req_id"],
            "total_size": body.size,
            "first": part.first,
        }
        if body.meta:
            answer["meta"] = dict(body.meta)
        text = codec.dumps(answer)
        try:
            checked_size("the part", text, self._max_message())
        except PayloadTooLargeError as error:
            # As base64 or as JSON, a part takes more room than it has bytes. The agent asks for a shorter one.
            error.details = {**error.details, "total_size": body.size}
            raise
        return Encoded(text)

    async def subscribe(self, request: SubscribeResourceReq) -> DoneRet:
        await self._subscriptions.subscribe(ASKER.get(), request["uri"], self._guard.sight())
        return {"req_id": request["req_id"]}

    async def unsubscribe(self, request: SubscribeResourceReq) -> DoneRet:
        self._subscriptions.unsubscribe(request["uri"])
        return {"req_id": request["req_id"]}

    # --- prompts

    async def get_prompt(self, request: GetPromptReq) -> GetPromptRet:
        meta = trace_context(request.get("meta"))
        shared, server = self._computer.shared, request["mcp_server"]
        asking = round_of(request)
        given, sight = request.get("arguments") or {}, self._guard.sight()
        found = await shared.get_prompt(server, request["name"], given, meta, asking, sight)
        if found.questions is not None:
            asked: GetPromptRet = {"messages": [], "input_requests": dict(found.questions), "req_id": request["req_id"]}
            return asked if found.state is None else {**asked, "request_state": found.state}
        said = found.result
        answer: GetPromptRet = {"messages": said.get("messages") or [], "req_id": request["req_id"]}
        contents = [message.get("content") for message in answer["messages"]]
        links = [it["uri"] for it in contents if isinstance(it, dict) and it.get("type") == "resource_link"]
        shared.remember_links(server, ASKER.get(), [uri for uri in links[:100] if isinstance(uri, str)])
        if said.get("description") is not None:
            answer["description"] = said["description"]
        if said.get("_meta"):
            answer["meta"] = said["_meta"]
        return answer

    async def complete(self, request: CompleteReq) -> CompleteRet:
        asked: dict[str, Any] = {"ref": request["ref"], "argument": request["argument"]}
        if "context" in request:
            asked["context"] = request["context"]
        meta = trace_context(request.get("meta"))
        completion = await self._computer.shared.complete(request["mcp_server"], asked, meta, self._guard.sight())
        values = completion.get("values") or []
        if len(values) > _COMPLETIONS:
            completion |= {"values": values[:_COMPLETIONS], "hasMore": True}
        return {"completion": completion, "req_id": request["req_id"]}

"""The methods of the asyncio agent that are about resources, prompts and questions. They ask; the client connects."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from a2c_smcp.agent import requests, resource_requests
from a2c_smcp.agent.bounds import AnswerLimits, AnswerTooLargeError
from a2c_smcp.agent.pacing import Cost
from a2c_smcp.agent.questions import QuestionAnswer, QuestionListeners
from a2c_smcp.agent.requests import Deadlines, Request
from a2c_smcp.agent.resource_parts import MOST_BYTES, PART_BYTES, ResourceParts
from a2c_smcp.agent.resource_requests import QuestionAction
from a2c_smcp.agent.subscriptions import Subscriptions
from a2c_smcp.dialects.shapes import bundle_ids_of, resource_from_04
from a2c_smcp.errors import PayloadTooLargeError, SMCPError
from a2c_smcp.smcp import (
    AgentCallData,
    GetPromptRet,
    GetPromptsRet,
    GetResourcesRet,
    ReadResourceRet,
    ResourceUpdatedNotification,
    SMCPTool,
    ToolQuestion,
)
from a2c_smcp.utils.text import in_log

__all__ = ["ResourceMethods"]

logger = logging.getLogger(__name__)

_T = TypeVar("_T")
#: How many answers one list may be spread over.
_MOST_PAGES: Final = 100
#: A part that a computer refuses as too large is asked for again in halves, down to this size.
_SMALLEST_PART: Final = 64 * 2**10
#: How many MCP servers of one computer are asked, and how many at once.
_MOST_BUNDLES: Final = 200
_BUNDLES_AT_ONCE: Final = 8


class ResourceMethods(ABC):
    """To be inherited by the client, which sends the requests."""

    _deadlines: Deadlines
    _limits: AnswerLimits

    def __init__(self) -> None:
        self._questions = QuestionListeners(self._answer)
        self._subscriptions = Subscriptions(self._subscribe, self._tell_updated)
        self._without: set[tuple[str, str]] = set()
        """Computers that do not know a request, with its event. So a silent one is waited for only once."""
        self._bundles: dict[str, tuple[str, ...]] = {}
        """What computers of 0.4 call their MCP servers; nothing for a computer that speaks as we do."""

    @abstractmethod
    def _call(self, req_id: str | None = None) -> AgentCallData: ...

    @abstractmethod
    async def _ask(
        self, request: Request, read: Callable[[Request, tuple[Any, ...]], _T], cost: Cost | None = None
    ) -> _T: ...

    @abstractmethod
    def _tell_updated(self, notice: ResourceUpdatedNotification) -> None:
        """A resource has changed that this agent subscribed to."""

    # --- resources

    async def get_resources(self, computer: str, mcp_server: str | None = None) -> GetResourcesRet:
        """The resources and templates that a computer shares, in MCP's JSON form, each with its `mcp_server`.

        With `mcp_server`, those of one MCP server. A computer or a server that does not know this request has none.
        Raises `PayloadTooLargeError` if there are more than `AnswerLimits.items`.
        """

        if mcp_server is None and (bundles := await self._bundles_of(computer)):
            return await self._resources_of_bundles(computer, bundles)
        pages = await self._resource_pages(computer, mcp_server)
        resources = [item for each in pages for item in each["resources"]]
        templates = [item for each in pages for item in each.get("templates", ())]
        return {"resources": resources, "templates": templates, "req_id": pages[0]["req_id"] if pages else ""}

    async def _resource_pages(self, computer: str, mcp_server: str | None) -> list[GetResourcesRet]:
        async def page(cursor: str | None) -> GetResourcesRet:
            request = resource_requests.get_resources(self._call(), self._deadlines, computer, mcp_server, cursor)
            return await self._ask(request, resource_requests.read_resources)

        return await self._pages(computer, "get_resources", page)

    async def _bundles_of(self, computer: str) -> tuple[str, ...]:
        """A computer of 0.4 does not answer a request for the resources of all servers. Its tools tell what it is."""
        if computer not in self._bundles:
            await self._ask_for_tools(computer)
        return self._bundles[computer]

    async def _ask_for_tools(self, computer: str, cost: Cost | None = None) -> list[SMCPTool]:
        request = requests.get_tools(self._call(), self._deadlines, computer)
        tools = await self._ask(request, requests.read_tools, cost)
        self._bundles[computer] = bundle_ids_of(tools)[:_MOST_BUNDLES]
        return tools

    async def _resources_of_bundles(self, computer: str, bundles: Sequence[str]) -> GetResourcesRet:
        """The resources of each MCP server. One that fails is left out with a warning, and the others stay."""
        turns = asyncio.Semaphore(_BUNDLES_AT_ONCE)

        async def of(bundle: str) -> list[dict[str, Any]]:
            async with turns:
                try:
                    pages = await self._resource_pages(computer, bundle)
                except SMCPError as error:
                    logger.warning("the resources of %s at %s are not listed: %s", bundle, in_log(computer), error)
                    return []
            return [resource_from_04(item, bundle) for each in pages for item in each["resources"]]

        found = await asyncio.gather(*map(of, bundles))
        return {"resources": [item for items in found for item in items], "templates": [], "req_id": ""}

    async def read_resource(
        self, computer: str, uri: str, *, range: Sequence[int] | None = None
    ) -> list[dict[str, Any]]:
        """The contents of a resource, in MCP's JSON form: a `dpe://` document, a `window://` window, or any other
        resource that the computer shares.

        With `range`, an offset and a length in bytes, a part of them; `read_large_resource` reads all parts. Raises a
        `FinderError`: `DocumentNotFoundError`, `PageOutOfRangeError` or `ElementNotFoundError` if it does not exist,
        `InvalidDPEURIError` for an invalid URI. Raises `ForbiddenError` if the computer does not share it, and
        `PayloadTooLargeError` if it does not fit into one message.
        """
        return (await self.read_resource_result(computer, uri, range=range))["contents"]

    async def read_resource_result(
        self, computer: str, uri: str, *, range: Sequence[int] | None = None, meta: Mapping[str, Any] | None = None
    ) -> ReadResourceRet:
        """As `read_resource`, with all that the answer has: `meta`, and `total_size` and `first` of a part."""
        request = resource_requests.read_resource(self._call(), self._deadlines, computer, uri, range, meta)
        return await self._ask(request, resource_requests.read_part)

    async def read_large_resource(
        self, computer: str, uri: str, *, most_bytes: int = MOST_BYTES, part_bytes: int = PART_BYTES
    ) -> list[dict[str, Any]]:
        """The contents of a resource, also if they do not fit into one message: then they are read in parts.

        Raises `PayloadTooLargeError` for a resource of more than `most_bytes`, and what `read_resource` raises.
        """
        parts, length = ResourceParts(most_bytes), part_bytes
        try:
            return await self.read_resource(computer, uri)
        except AnswerTooLargeError:
            raise  # too many values: in parts they are as many
        except PayloadTooLargeError as error:
            parts.check_size((error.details or {}).get("total_size"))
        while not parts.is_whole:
            try:
                part = await self.read_resource_result(computer, uri, range=(parts.offset, length))
            except PayloadTooLargeError as error:
                if isinstance(error, AnswerTooLargeError) or length <= _SMALLEST_PART:
                    raise
                length = max(length // 2, _SMALLEST_PART)
                continue
            if parts.offset == 0 and "total_size" not in part:
                return part["contents"]  # the computer does not know ranges, and could send it after all
            parts.add(part, length)
        return parts.contents

    async def subscribe_resource(self, computer: str, uri: str) -> None:
        """Be told when a resource changes: handlers of `resource_updated` are called.

        A subscription lasts until `unsubscribe_resource`, or until the agent leaves the office. When the connection or
        the computer was away, the agent subscribes again by itself, and calls the handlers once: the resource may have
        changed meanwhile. Raises `TooManyRequestsError` over 1,000 subscriptions.
        """
        await self._subscriptions.subscribe(computer, uri)

    async def unsubscribe_resource(self, computer: str, uri: str) -> None:
        """End a subscription. Without one this does nothing."""
        await self._subscriptions.unsubscribe(computer, uri)

    async def _subscribe(self, computer: str, uri: str, begins: bool) -> None:
        request = resource_requests.subscribe(self._call(), self._deadlines, computer, uri, begins=begins)
        await self._ask(request, resource_requests.read_done)

    # --- prompts

    async def get_prompts(self, computer: str, mcp_server: str | None = None) -> GetPromptsRet:
        """The prompts that a computer shares, in MCP's JSON form, each with its `mcp_server`; otherwise like
        `get_resources`.
        """

        async def page(cursor: str | None) -> GetPromptsRet:
            request = resource_requests.get_prompts(self._call(), self._deadlines, computer, mcp_server, cursor)
            return await self._ask(request, resource_requests.read_prompts)

        pages = await self._pages(computer, "get_prompts", page)
        prompts = [item for each in pages for item in each["prompts"]]
        return {"prompts": prompts, "req_id": pages[0]["req_id"] if pages else ""}

    async def get_prompt(
        self,
        computer: str,
        mcp_server: str,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        questions: Sequence[str] = (),
        input_responses: Mapping[str, Any] | None = None,
        request_state: str | None = None,
    ) -> GetPromptRet:
        """The messages of a prompt, in MCP's JSON form.

        A prompt may ask first. Say which `questions` you answer (`form`, `url`): then the answer may have
        `input_requests` instead of messages. Call this again with `input_responses`, MCP's answers by the same keys,
        and with the answer's `request_state`.
        """
        asking = {
            "questions": list(questions) or None,
            "input_responses": None if input_responses is None else dict(input_responses),
            "request_state": request_state,
        }
        request = resource_requests.get_prompt(
            self._call(), self._deadlines, computer, mcp_server, name, arguments, meta, asking
        )
        return await self._ask(request, resource_requests.read_prompt)

    async def complete(
        self,
        computer: str,
        mcp_server: str,
        ref: Mapping[str, Any],
        argument: Mapping[str, Any],
        context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """What an argument of a prompt or a template could be: MCP's completion, with its `values`.

        `ref`, `argument` and `context` are those of MCP's `completion/complete`.
        """
        call = self._call()
        request = resource_requests.complete(call, self._deadlines, computer, mcp_server, ref, argument, context)
        return await self._ask(request, resource_requests.read_completion)

    # --- questions

    async def answer_question(
        self, computer: str, question_id: str, action: QuestionAction, content: Mapping[str, Any] | None = None
    ) -> None:
        """Answer a question that a handler of `question` heard. With `on_question` of `call_tool` this is not needed.

        Raises `NotFoundError` if it was answered elsewhere or withdrawn, and `BadRequestError` if `content` does not
        fit the form.
        """
        call = self._call()
        request = resource_requests.answer_question(call, self._deadlines, computer, question_id, action, content)
        await self._ask(request, resource_requests.read_done)

    async def _answer(self, question: ToolQuestion, answer: QuestionAnswer) -> None:
        await self.answer_question(question["computer"], question["question_id"], answer.action, answer.content)

    # ---

    async def _pages(self, computer: str, what: str, page: Callable[[str | None], Awaitable[_T]]) -> list[_T]:
        """All pages of a list; none if the computer does not know the request. Bounded, whatever the computer says."""
        pages: list[_T] = []
        if (computer, what) in self._without:
            return pages
        cursor: str | None = None
        items = 0
        while True:
            try:
                answer: Any = await page(cursor)
            except SMCPError as error:
                if pages or not resource_requests.is_unknown_to_peer(error):
                    raise
                logger.info("%s does not know %s: %s", computer, what, error)
                self._without.add((computer, what))
                return pages
            pages.append(answer)
            items += sum(len(value) for value in answer.values() if isinstance(value, list))
            if items > self._limits.items or len(pages) > _MOST_PAGES:
                raise AnswerTooLargeError(f"the computer's lists have more than {self._limits.items} items")
            if (cursor := answer.get("next_cursor")) is None:
                return pages

    def _has_come(self, computer: str | None) -> None:
        """A computer has entered the office; `None`: this agent has."""
        self._without = {each for each in self._without if computer not in (None, each[0])}
        self._forget_bundles(computer)
        self._subscriptions.renew(None if computer is None else [computer])

    def _shares_other_things(self, computer: str) -> None:
        """A computer has announced that its lists have changed: it knows the requests for them."""
        self._forget_bundles(computer)
        self._without = {each for each in self._without if each[0] != computer}
        self._subscriptions.try_again(computer)

    def _forget_bundles(self, computer: str | None) -> None:
        """`None`: of all computers."""
        if computer is None:
            self._bundles.clear()
        else:
            self._bundles.pop(computer, None)

    def _has_gone(self, computer: str) -> None:
        self._without = {each for each in self._without if each[0] != computer}
        self._forget_bundles(computer)
        self._subscriptions.gone(computer)

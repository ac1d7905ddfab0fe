"""The prompts of an office's computers as one table. Their names are made like those of tools."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from a2c_smcp.agent.for_models.meta import own_result_meta
from a2c_smcp.agent.for_models.tool_names import tool_names
from a2c_smcp.agent.for_models.watching import WatchedOffice
from a2c_smcp.errors import InternalError
from a2c_smcp.mcp_server.passed_meta import request_meta
from a2c_smcp.mcp_server.prompts import UnknownPromptError
from a2c_smcp.mcp_server.resources import Completions
from a2c_smcp.office_mcp.host_calls import question_modes
from a2c_smcp.office_mcp.hosted_calls import elicit_params
from a2c_smcp.office_mcp.shared_lists import SharedLists, SharedPrompt
from a2c_smcp.smcp import GetPromptRet, ToolQuestion
from a2c_smcp.utils.strangers_words import told, told_on_line
from a2c_smcp.utils.text import printable

__all__ = ["OfficePrompt", "OfficePrompts", "completions", "named_prompts"]

_LONGEST_TITLE = 200
_MOST_COMPLETIONS = 100


@dataclass(frozen=True, slots=True)
class OfficePrompt:
    """A prompt, and whose it is."""

    computer: str
    shared: SharedPrompt

    def as_mcp(self, name: str, *, plain: bool) -> types.Prompt:
        """The prompt as MCP lists it. If it is `plain`, only its name may differ from its own."""
        prompt = self.shared.prompt
        if plain:
            about = None if prompt.description is None else told(prompt.description, len(prompt.description))
            return prompt.model_copy(update={"name": name, "description": about})
        title = f"{told_on_line(prompt.title or prompt.name, _LONGEST_TITLE)} ({printable(self.computer)})"
        about = f"On {printable(self.computer)}: {told(prompt.description or prompt.name)}"
        return prompt.model_copy(update={"name": name, "title": title, "description": about})


def named_prompts(
    prompts: Sequence[OfficePrompt], short: Mapping[str, str] | None, *, plain: bool
) -> dict[str, OfficePrompt]:
    """Every prompt by its name for hosts. Two servers of one computer may have prompts of one name: then both names
    get the name of the server.
    """
    count = Counter((each.computer, each.shared.prompt.name) for each in prompts)
    pairs: dict[tuple[str, str], OfficePrompt] = {}
    named: dict[str, OfficePrompt] = {}
    for each in prompts:
        own = each.shared.prompt.name
        if count[each.computer, own] > 1:
            pairs[each.computer, f"{each.shared.server}\0{own}"] = each
        elif plain:
            named[own] = each
        else:
            pairs[each.computer, own] = each
    names = tool_names(pairs, short, plain=plain)
    return {**{names[pair]: each for pair, each in pairs.items()}, **named}


class OfficePrompts:
    """The prompts of an office as an `AskingPromptTable`. `intro` says in words who asks a question."""

    def __init__(
        self,
        office: WatchedOffice,
        shared: SharedLists,
        short: Mapping[str, str],
        intro: Callable[[ToolQuestion], str],
    ) -> None:
        self._office = office
        self._intro = intro
        self._shared = shared
        self._short = short
        self.given = False
        """Whether a host has asked for the list. Before that a change is not announced."""

    async def list_prompts(self, context: ServerRequestContext[Any, Any]) -> Sequence[types.Prompt]:
        await self._office.ready()
        self.given = True
        plain = self._office.only is not None
        return [each.as_mcp(name, plain=plain) for name, each in (await self._named()).items()]

    async def answer_prompt(
        self, context: ServerRequestContext[Any, Any], params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        """The messages of a prompt, or its questions for a host of 2026-07-28, which asks again with the answers."""
        found = await self._find(params.name)
        is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        given = params.model_dump(mode="json", by_alias=True, exclude_none=True)
        answer = await self._office.agent.get_prompt(
            found.computer,
            found.shared.server,
            found.shared.prompt.name,
            params.arguments or None,
            meta=dict(request_meta()) or None,
            questions=question_modes(context.session.client_capabilities) if is_modern else (),
            input_responses=given.get("inputResponses") if is_modern else None,
            request_state=params.request_state if is_modern else None,
        )
        if "input_requests" in answer or "request_state" in answer:
            return self._asked(found, answer)
        try:
            return types.GetPromptResult.model_validate(
                {
                    "messages": answer["messages"],
                    "description": answer.get("description"),
                    "_meta": own_result_meta(answer.get("meta")),
                }
            )
        except ValidationError:
            raise InternalError("the computer sent messages that are not MCP's") from None

    def _asked(self, found: OfficePrompt, answer: GetPromptRet) -> types.InputRequiredResult:
        about = {"computer": found.computer, "mcp_server": found.shared.server}
        try:
            questions = {
                key: cast("ToolQuestion", {**asked, **about, "question_id": key})
                for key, asked in answer.get("input_requests", {}).items()
            }
            asked: types.InputRequests = {
                key: types.ElicitRequest(params=elicit_params(question, self._intro(question)))
                for key, question in questions.items()
            }
            return types.InputRequiredResult(input_requests=asked or None, request_state=answer.get("request_state"))
        except (ValidationError, TypeError):
            raise InternalError("the computer sent questions that are not MCP's") from None

    async def complete(self, name: str, argument: str, typed: str, known: Mapping[str, str]) -> Completions:
        found = await self._find(name)
        return completions(
            await self._office.agent.complete(
                found.computer,
                found.shared.server,
                {"type": "ref/prompt", "name": found.shared.prompt.name},
                {"name": argument, "value": typed},
                {"arguments": dict(known)} if known else None,
            )
        )

    async def _find(self, name: str) -> OfficePrompt:
        await self._office.usable()
        found = (await self._named()).get(name)
        if found is None:
            raise UnknownPromptError(name)
        return found

    async def _named(self) -> dict[str, OfficePrompt]:
        computers = list(self._office.computers)
        lists = await asyncio.gather(*(self._shared.prompts(computer) for computer in computers))
        prompts = [
            OfficePrompt(computer, each) for computer, found in zip(computers, lists, strict=True) for each in found
        ]
        return named_prompts(prompts, self._short, plain=self._office.only is not None)


def completions(found: Mapping[str, Any]) -> Completions:
    """A computer's completion for the host. MCP allows a hundred values."""
    values, total = list(found["values"]), found.get("total")
    more = bool(found.get("hasMore")) or len(values) > _MOST_COMPLETIONS
    return Completions(values[:_MOST_COMPLETIONS], more, total if isinstance(total, int) else None)

"""The prompts of an office's computers as one table. Their names are made like those of tools."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from pydantic import ValidationError

from a2c_smcp.agent.for_models.meta import own_result_meta
from a2c_smcp.agent.for_models.tool_names import tool_names
from a2c_smcp.agent.for_models.watching import WatchedOffice
from a2c_smcp.errors import InternalError
from a2c_smcp.mcp_server.passed_meta import request_meta
from a2c_smcp.mcp_server.prompts import UnknownPromptError
from a2c_smcp.mcp_server.resources import Completions
from a2c_smcp.office_mcp.shared_lists import SharedLists, SharedPrompt
from a2c_smcp.utils.text import cut, harmless, printable

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
            return prompt.model_copy(update={"name": name})
        title = printable(f"{cut(prompt.title or prompt.name, _LONGEST_TITLE)} ({self.computer})")
        about = harmless(f"On {self.computer}: {cut(prompt.description or prompt.name)}")
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
    """The prompts of an office as a `PromptTable`."""

    def __init__(self, office: WatchedOffice, shared: SharedLists, short: Mapping[str, str]) -> None:
        self._office = office
        self._shared = shared
        self._short = short
        self.given = False
        """Whether a host has asked for the list. Before that a change is not announced."""

    async def list_prompts(self, context: ServerRequestContext[Any, Any]) -> Sequence[types.Prompt]:
        await self._office.ready()
        self.given = True
        plain = self._office.only is not None
        return [each.as_mcp(name, plain=plain) for name, each in (await self._named()).items()]

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> types.GetPromptResult:
        found = await self._find(name)
        answer = await self._office.agent.get_prompt(
            found.computer,
            found.shared.server,
            found.shared.prompt.name,
            arguments or None,
            meta=dict(request_meta()) or None,
        )
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

"""Prompts of a table, their completion and changes; instructions that are made when a client comes; `_meta`."""

from collections.abc import Mapping, Sequence
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from a2c_smcp.errors import ForbiddenError
from a2c_smcp.mcp_server import Completions, ContextServer, Listing, UnknownPromptError, request_meta
from tests.mcp_server.clients import ERAS, LEGACY, connected, watching

both_eras = pytest.mark.parametrize("era", ERAS)

TRACED: Any = {"traceparent": "00-1"}
ICON = types.Icon(src="data:image/png;base64,aaaa", mime_type="image/png", sizes=["48x48"])


class Letters:
    """A table with prompts `p0` to `p4`, of which `p4` is forbidden."""

    async def list_prompts(self, context: Any) -> Sequence[types.Prompt]:
        arguments = [types.PromptArgument(name="to", description="Whom", required=True)]
        return [
            types.Prompt(name=f"p{n}", title=f"Letter {n}", arguments=arguments, icons=[ICON], _meta={"n": n})
            for n in range(5)
        ]

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> types.GetPromptResult:
        if name == "p4":
            raise ForbiddenError("not this one")
        if name not in ("p0", "p1"):
            raise UnknownPromptError(name)
        said = f"Dear {arguments['to']} {request_meta().get('traceparent')} {sorted(request_meta())}"
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=said))
        return types.GetPromptResult(messages=[message], description=name, _meta={"made": True})

    async def complete(self, name: str, argument: str, typed: str, known: Mapping[str, str]) -> Completions:
        found = [value for value in ("Ada", "Alan") if value.startswith(typed)]
        return Completions([f"{value}{len(known)}" for value in found], total=7, more=True)


class Cellar:
    """A room with one resource, whose result has a `_meta`."""

    def owns(self, uri: str) -> bool:
        return uri.startswith("cellar:")

    def topic(self, uri: str) -> str:
        return uri

    async def listing(self, offset: int, limit: int) -> Listing:
        return Listing([types.Resource(uri="cellar:wine", name="wine", icons=[ICON], _meta={"red": True})])

    async def read(self, uri: str) -> types.ReadResourceResult:
        contents = types.TextResourceContents(uri=uri, text=str(request_meta().get("traceparent")), _meta={"cork": 1})
        return types.ReadResourceResult(contents=[contents], _meta={"year": 1961})

    async def templates(self) -> Sequence[types.ResourceTemplate]:
        return [types.ResourceTemplate(name=f"t{n}", uri_template=f"cellar:{{x{n}}}") for n in range(3)]

    async def complete(self, template: str, name: str, typed: str, known: Mapping[str, str]) -> Completions:
        return Completions()


def make(**more: Any) -> ContextServer:
    return ContextServer("s", host="h", prompts=Letters(), resources=[Cellar()], icons=[ICON], page_size=2, **more)


@both_eras
async def test_prompts_are_listed_in_pages_given_and_completed(era: str) -> None:
    async with connected(make().mcp, era) as (client, _):
        assert client.server_capabilities is not None
        assert client.server_capabilities.prompts is not None
        names, cursor, pages = list[str](), None, 0
        while pages == 0 or cursor is not None:
            page = await client.list_prompts(cursor=cursor)
            names, cursor, pages = names + [prompt.name for prompt in page.prompts], page.next_cursor, pages + 1
        assert (names, pages) == (["p0", "p1", "p2", "p3", "p4"], 3)
        first = (await client.list_prompts()).prompts[0]
        assert (first.title, first.icons, first.meta) == ("Letter 0", [ICON], {"n": 0})

        given = await client.get_prompt("p1", {"to": "Ada"}, meta=TRACED)
        assert given.messages[0].content == types.TextContent(type="text", text="Dear Ada 00-1 ['traceparent']")
        assert given.meta is not None
        assert given.meta["made"] is True
        with pytest.raises(MCPError) as unknown:
            await client.get_prompt("p9", {"to": "x"})
        assert unknown.value.error.code == types.INVALID_PARAMS
        with pytest.raises(MCPError) as forbidden:
            await client.get_prompt("p4", {"to": "x"})
        assert forbidden.value.error.code == 403

        ref = types.PromptReference(type="ref/prompt", name="p0")
        found = await client.complete(ref, {"name": "to", "value": "Al"}, context_arguments={"other": "x"})
        assert (found.completion.values, found.completion.total, found.completion.has_more) == (["Alan1"], 7, True)


@both_eras
async def test_a_new_list_of_prompts_is_told(era: str) -> None:
    server = make()
    async with connected(server.mcp, era) as (client, listening), watching(client, listening, "cellar:wine"):
        server.changes.prompts_changed()
        await listening.of("prompts")


async def test_a_server_without_prompts_does_not_say_that_it_has_some() -> None:
    async with connected(ContextServer("s", host="h").mcp, LEGACY) as (client, _):
        assert client.server_capabilities is not None
        assert client.server_capabilities.prompts is None


@both_eras
async def test_a_result_has_its_meta_and_templates_have_pages(era: str) -> None:
    async with connected(make().mcp, era) as (client, _):
        read = await client.read_resource("cellar:wine", meta=TRACED)
        [contents] = read.contents
        assert isinstance(contents, types.TextResourceContents)
        assert (contents.text, contents.meta) == ("00-1", {"cork": 1})
        assert read.meta is not None
        assert read.meta["year"] == 1961
        page = await client.list_resource_templates()
        assert page.next_cursor is not None
        rest = await client.list_resource_templates(cursor=page.next_cursor)
        templates = [*page.resource_templates, *rest.resource_templates]
        assert [each.name for each in templates if each.name.startswith("t")]
        with pytest.raises(MCPError):
            await client.list_resource_templates(cursor="mine")
        [wine] = [each for each in (await client.list_resources()).resources if each.name == "wine"]
        assert (wine.icons, wine.meta) == ([ICON], {"red": True})


@both_eras
async def test_instructions_are_made_when_a_client_comes(era: str) -> None:
    texts = ["first", None]

    async def instructions() -> str | None:
        return texts[0]

    server = make(instructions=instructions, title="A shop")
    async with connected(server.mcp, era) as (client, _):
        assert client.instructions == "first"
        assert client.server_info is not None
        assert (client.server_info.title, client.server_info.icons) == ("A shop", [ICON])
    texts[0] = None
    async with connected(server.mcp, era) as (client, _):
        assert client.instructions is None


async def test_it_is_said_which_topics_are_wanted_once() -> None:
    server, wanted = make(), list[tuple[str, bool]]()
    server.changes.on_wanted = lambda topic, is_wanted: wanted.append((topic, is_wanted))
    async with (
        connected(server.mcp, LEGACY) as (one, heard),
        connected(server.mcp, ERAS[1]) as (two, listening),
        watching(one, heard, "cellar:wine"),
        watching(two, listening, "cellar:wine", "cellar:beer"),
    ):
        assert wanted == [("cellar:wine", True), ("cellar:beer", True)]
    assert sorted(wanted[2:]) == [("cellar:beer", False), ("cellar:wine", False)]

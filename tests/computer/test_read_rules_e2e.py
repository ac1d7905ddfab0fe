"""Rules about reads under an agent's eyes: real MCP servers, a real office, real sockets."""

import asyncio
import base64
import hashlib
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.decisions.book import Accepted, Confirmation, Declined
from a2c_smcp.computer.resources.completions import shown_completion
from a2c_smcp.computer.resources.shown import ResourceTimings
from a2c_smcp.computer.rules.rule import parse_rules
from a2c_smcp.smcp import (
    COMPLETE_EVENT,
    GET_BLOB_EVENT,
    GET_CONFIG_EVENT,
    GET_DESKTOP_EVENT,
    GET_FINDER_EVENT,
    GET_PROMPT_EVENT,
    GET_PROMPTS_EVENT,
    GET_RESOURCES_EVENT,
    GET_SKILL_EVENT,
    GET_SKILLS_EVENT,
    LEAVE_OFFICE_NOTIFICATION,
    PUT_BLOB_EVENT,
    READ_RESOURCE_EVENT,
    RESOURCE_UPDATED_NOTIFICATION,
    SUBSCRIBE_RESOURCE_EVENT,
    UPDATE_DESKTOP_NOTIFICATION,
    UPDATE_FINDER_NOTIFICATION,
    UPDATE_PROMPTS_NOTIFICATION,
    UPDATE_RESOURCES_NOTIFICATION,
)
from tests.computer.fakes.computers import sharing
from tests.computer.fakes.offices import Agent, watched
from tests.server.harness import Running, eventually, heard

PATIENT = ResourceTimings(list=15, subscribe=15, read=15)
DOCUMENTS = {
    "name": "docs",
    "type": "stdio",
    "share": "all",
    "default_tool_meta": {"auto_apply": True},
    "server_parameters": {
        "command": sys.executable,
        "args": [str(Path(__file__).parent / "fakes" / "document_server.py")],
    },
}
HOST = "dpe://com.example.docs"
WINDOW = "window://fake/0"


def rule(computer: Computer, *raw: dict[str, Any]) -> None:
    """These are the rules from now on."""
    found, problems = parse_rules(list(raw))
    assert not problems, problems
    computer.decisions.rules.use_config(found)


@asynccontextmanager
async def sharing_office(hub: Running, **more: Any) -> AsyncIterator[tuple[Agent, Computer]]:
    async with watched(hub.url, sharing("s", share="all"), **{"resource_timings": PATIENT, **more}) as both:
        yield both


async def code(agent: Agent, event: str, /, **more: Any) -> int | None:
    found: int | None = (await agent.ask(event, **more)).get("error", {}).get("code")
    return found


async def test_what_is_denied_is_refused_with_the_reason_and_does_not_show(hub: Running) -> None:
    async with sharing_office(hub) as (agent, computer):
        assert len((await agent.ask(GET_DESKTOP_EVENT))["desktops"]) == 2
        rule(computer, {"effect": "deny", "reads": [WINDOW, "note://one"], "reason": "Not for agents."})
        for uri in (WINDOW, "note://one"):
            refused = (await agent.ask(READ_RESOURCE_EVENT, uri=uri))["error"]
            assert (refused["code"], refused["details"]["reason"]) == (403, "Not for agents.")
            assert "Not for agents." in refused["message"]
        desktop = (await agent.ask(GET_DESKTOP_EVENT))["desktops"]
        assert [each.partition("\n")[0] for each in desktop] == ["window://fake/1"]
        assert await code(agent, GET_DESKTOP_EVENT, window=WINDOW) == 403
        assert (await agent.ask(GET_DESKTOP_EVENT, window="window://fake/none"))["desktops"] == []
        listed = [each["uri"] for each in (await agent.ask(GET_RESOURCES_EVENT))["resources"]]
        assert listed == ["window://fake/1", "ui://app/view", "note://picture"]
        # Others read on.
        assert await code(agent, READ_RESOURCE_EVENT, uri="note://picture") is None
        assert await code(agent, READ_RESOURCE_EVENT, uri="window://fake/1") is None
        # The person at the computer is no agent.
        assert len(await computer.get_desktop()) == 2
        assert (await computer.read_resource(WINDOW)).contents
        rule(computer)
        assert len((await agent.ask(GET_DESKTOP_EVENT))["desktops"]) == 2


async def test_everything_is_forbidden_that_is_not_allowed(hub: Running, tmp_path: Path) -> None:
    (tmp_path / "skills" / "draw").mkdir(parents=True)
    (tmp_path / "skills" / "draw" / "SKILL.md").write_text("---\nname: draw\ndescription: Draws.\n---\nBody.\n")
    (tmp_path / "skills" / "draw" / "picture.bin").write_bytes(b"\0" * 100)
    (tmp_path / "uploads").mkdir()
    folders = {"skills": tmp_path / "skills", "uploads": tmp_path / "uploads"}
    async with sharing_office(hub, **folders) as (agent, computer):
        kept = await agent.ask(GET_SKILL_EVENT, name="draw", rel_path="picture.bin")
        part: dict[str, Any] = {
            "blob": base64.b64encode(b"x").decode(),
            "chunk_offset": 0,
            "total_size": 1,
            "eof": True,
        }
        part["sha256"] = hashlib.sha256(b"x").hexdigest()
        requests: list[tuple[str, dict[str, Any]]] = [
            (READ_RESOURCE_EVENT, {"uri": WINDOW}),
            (READ_RESOURCE_EVENT, {"uri": "note://one"}),
            (READ_RESOURCE_EVENT, {"uri": "note://two/part"}),
            (GET_PROMPT_EVENT, {"mcp_server": "s", "name": "plain"}),
            (COMPLETE_EVENT, {"mcp_server": "s", "ref": {"type": "ref/prompt", "name": "greet"}}),
            (COMPLETE_EVENT, {"mcp_server": "s", "ref": {"type": "ref/resource", "uri": "note://{id}/part"}}),
            (SUBSCRIBE_RESOURCE_EVENT, {"uri": "note://one"}),
            (GET_SKILL_EVENT, {"name": "draw"}),
            (GET_BLOB_EVENT, {"blob_handle": kept["blob_handle"], "chunk_offset": 0, "chunk_size": 10}),
            (PUT_BLOB_EVENT, part),
            (GET_CONFIG_EVENT, {}),
        ]
        argument = {"argument": {"name": "id", "value": ""}}
        for event, more in requests:
            found = await agent.ask(event, **more, **(argument if event == COMPLETE_EVENT else {}))
            assert "error" not in found, (event, found)
        rule(computer, {"effect": "allow", "tool": "s.echo"}, {"effect": "deny", "reason": "Only echo."})
        # What does not exist is refused like what exists.
        requests += [
            (READ_RESOURCE_EVENT, {"uri": "window://fake/none"}),
            (READ_RESOURCE_EVENT, {"uri": "note://none"}),
            (READ_RESOURCE_EVENT, {"uri": "dpe://none/x"}),
            (GET_PROMPT_EVENT, {"mcp_server": "none", "name": "plain"}),
            (GET_SKILL_EVENT, {"name": "none"}),
            (GET_BLOB_EVENT, {"blob_handle": "none", "chunk_offset": 0, "chunk_size": 10}),
        ]
        for event, more in requests:
            found = await agent.ask(event, **more, **(argument if event == COMPLETE_EVENT else {}))
            assert (found["error"]["code"], found["error"]["details"]["reason"]) == (403, "Only echo."), (event, more)
        assert (await agent.ask(GET_DESKTOP_EVENT))["desktops"] == []
        shared = await agent.ask(GET_RESOURCES_EVENT)
        assert (shared["resources"], shared["templates"]) == ([], [])
        assert (await agent.ask(GET_PROMPTS_EVENT))["prompts"] == []
        assert (await agent.ask(GET_SKILLS_EVENT))["skills"] == []
        finder = await agent.ask(GET_FINDER_EVENT)
        assert (finder["documents"], finder["total_count"]) == ([], 0)
        assert (await agent.tool("s.echo", text="hello"))["isError"] is False


async def test_pages_and_cursors_do_not_tell_of_what_is_denied(hub: Running) -> None:
    many = sharing("s", share="all", many="1200")
    async with watched(hub.url, many, resource_timings=PATIENT) as (agent, computer):
        assert "next_cursor" in await agent.ask(GET_RESOURCES_EVENT)
        rule(computer, {"effect": "allow", "reads": "note://many/119*"}, {"effect": "deny"})
        page = await agent.ask(GET_RESOURCES_EVENT)
        listed = [each["uri"] for each in page["resources"]]
        assert listed == ["note://many/119", *(f"note://many/{n}" for n in range(1190, 1200))]
        assert "next_cursor" not in page


async def test_documents_are_filtered_before_they_are_counted(hub: Running) -> None:
    async with watched(hub.url, DOCUMENTS, resource_timings=PATIENT) as (agent, computer):
        assert (await agent.ask(GET_FINDER_EVENT))["total_count"] == 2
        rule(computer, {"effect": "deny", "reads": f"{HOST}/sales", "reason": "Not yet published."})
        for more in ({}, {"offset": 0, "limit": 1}, {"keywords": ["figures"]}, {"file_type": "pdf"}):
            found = await agent.ask(GET_FINDER_EVENT, **more)
            assert ([each["doc_ref"] for each in found["documents"]], found["total_count"]) == (["plan"], 1), more
        assert (await agent.ask(GET_FINDER_EVENT, keywords=["Sales"]))["total_count"] == 0
        for part in ("", "/pages/0", "/elements/h1", "?format=text", "/pages/0?format=markdown"):
            assert await code(agent, READ_RESOURCE_EVENT, uri=f"{HOST}/sales{part}") == 403, part
            assert await code(agent, READ_RESOURCE_EVENT, uri=f"{HOST}/s%61les{part}") == 403, part
            assert await code(agent, READ_RESOURCE_EVENT, uri=f"{HOST}/plan{part}") is None, part
        # The server's own catalogue tells of all documents.
        assert await code(agent, READ_RESOURCE_EVENT, uri=HOST) == 403
        rule(computer, {"effect": "deny", "reads": "dpe://other/*"})
        assert await code(agent, READ_RESOURCE_EVENT, uri=HOST) is None


async def test_completions_do_not_name_what_is_denied(hub: Running) -> None:
    async with watched(hub.url, DOCUMENTS, resource_timings=PATIENT) as (agent, computer):
        template = f"{HOST}/{{doc_ref}}"
        templates = [each["uriTemplate"] for each in (await agent.ask(GET_RESOURCES_EVENT))["templates"]]
        asked: dict[str, Any] = {"mcp_server": "docs", "argument": {"name": "doc_ref", "value": ""}}
        deeper = next(each for each in templates if "pages" in each)

        async def completed(uri: str) -> dict[str, Any]:
            found = await agent.ask(COMPLETE_EVENT, ref={"type": "ref/resource", "uri": uri}, **asked)
            assert "error" not in found, found
            completion: dict[str, Any] = found["completion"]
            return completion

        assert sorted((await completed(deeper))["values"]) == ["plan", "sales"]
        rule(computer, {"effect": "deny", "reads": f"{HOST}/sales"})
        for uri in {deeper, *(each for each in templates if each.startswith(template))}:
            completion = await completed(uri)
            assert completion["values"] == ["plan"] and "total" not in completion
        # Of a template that the agent made up, nobody knows what its values name.
        assert shown_completion(
            {"values": ["sales"]},
            {"ref": {"type": "ref/resource", "uri": "x://{doc_ref}"}, "argument": asked["argument"]},
            "docs",
            computer.read_guard().sight_of(Asker("ag")),
            known=False,
        ) == {"values": []}
        rule(computer, {"effect": "deny", "reads": f"{HOST}/*"})
        assert await code(agent, COMPLETE_EVENT, ref={"type": "ref/resource", "uri": deeper}, **asked) == 403


async def test_subscriptions_and_announcements_end_with_a_rule(hub: Running) -> None:
    async with sharing_office(hub) as (agent, computer):
        assert await code(agent, SUBSCRIBE_RESOURCE_EVENT, uri=WINDOW) is None
        assert await code(agent, SUBSCRIBE_RESOURCE_EVENT, uri="note://one") is None
        rule(computer, {"effect": "deny", "reads": [WINDOW, "note://one", "prompt"]})
        await eventually(lambda: heard(agent, UPDATE_DESKTOP_NOTIFICATION))  # other rules: the agent sees less
        await eventually(lambda: heard(agent, UPDATE_PROMPTS_NOTIFICATION))
        await eventually(lambda: heard(agent, UPDATE_FINDER_NOTIFICATION))
        await eventually(lambda: heard(agent, UPDATE_RESOURCES_NOTIFICATION))
        assert await code(agent, SUBSCRIBE_RESOURCE_EVENT, uri=WINDOW) == 403
        agent.received.clear()
        for text in ("a", "b"):
            await agent.tool("s.set_resource", uri=WINDOW, text=text)
            await agent.tool("s.set_resource", uri="note://one", text=text)
        await agent.tool("s.set_prompt", name="secret")
        # What comes later is told, so what came before would have been.
        assert await code(agent, SUBSCRIBE_RESOURCE_EVENT, uri="window://fake/1") is None
        await agent.tool("s.set_resource", uri="window://fake/1", text="c")
        await eventually(lambda: heard(agent, RESOURCE_UPDATED_NOTIFICATION))
        await eventually(lambda: heard(agent, UPDATE_DESKTOP_NOTIFICATION))
        assert {each["uri"] for each in heard(agent, RESOURCE_UPDATED_NOTIFICATION)} == {"window://fake/1"}
        assert len(heard(agent, UPDATE_DESKTOP_NOTIFICATION)) == 1
        assert not heard(agent, UPDATE_PROMPTS_NOTIFICATION) and not heard(agent, UPDATE_FINDER_NOTIFICATION)


async def test_a_link_in_a_result_is_read_by_the_rules(hub: Running) -> None:
    async with sharing_office(hub) as (agent, computer):
        await agent.tool("s.link", uri="note://hidden")
        assert await code(agent, READ_RESOURCE_EVENT, uri="note://hidden") is None
        rule(computer, {"effect": "deny", "reads": "note://hidden"})
        assert await code(agent, READ_RESOURCE_EVENT, uri="note://hidden") == 403
        await agent.tool("s.link", uri="note://hidden")
        assert await code(agent, READ_RESOURCE_EVENT, uri="note://hidden") == 403


async def test_parts_that_are_kept_are_read_by_the_rules(hub: Running) -> None:
    async with sharing_office(hub) as (agent, computer):
        assert await code(agent, READ_RESOURCE_EVENT, uri="note://one", range=[0, 3]) is None
        rule(computer, {"effect": "deny", "reads": "resource"})
        assert await code(agent, READ_RESOURCE_EVENT, uri="note://one", range=[3, 3]) == 403


# --- a person is asked


def cards(computer: Computer) -> list[Confirmation]:
    return [each for each in computer.decisions.pending if isinstance(each, Confirmation)]


async def test_one_card_for_an_agent_and_a_document_is_good_for_the_session(hub: Running) -> None:
    async with watched(hub.url, DOCUMENTS, resource_timings=PATIENT) as (agent, computer):
        rule(computer, {"effect": "ask", "reads": f"{HOST}/*"})
        (plan,) = [each for each in (await agent.ask(GET_FINDER_EVENT))["documents"] if each["doc_ref"] == "plan"]
        assert (plan["title"], plan["summary"], plan["keywords"]) == ("plan", "", [])  # the address, not the content
        with computer.decisions.attend("terminal"):
            parts = [f"{HOST}/plan", f"{HOST}/plan/pages/0", f"{HOST}/plan?format=text"]
            reads = [asyncio.create_task(agent.ask(READ_RESOURCE_EVENT, uri=uri)) for uri in parts]
            await eventually(lambda: cards(computer))
            (card,) = cards(computer)
            assert card.reads is not None and card.reads.document == f"{HOST}/plan"
            computer.decisions.answer(card.id, Accepted(), by="terminal", digest=card.digest)
            assert all("error" not in found for found in await asyncio.gather(*reads))
            assert await code(agent, READ_RESOURCE_EVENT, uri=f"{HOST}/plan/elements/h1") is None
            assert not cards(computer)
            (plan,) = [each for each in (await agent.ask(GET_FINDER_EVENT))["documents"] if each["doc_ref"] == "plan"]
            assert plan["title"] == "The plan"
            # A no is remembered, too, and then it does not show.
            other = asyncio.create_task(agent.ask(READ_RESOURCE_EVENT, uri=f"{HOST}/sales"))
            await eventually(lambda: cards(computer))
            computer.decisions.answer(cards(computer)[0].id, Declined("mine"), by="terminal")
            refused = (await other)["error"]
            assert (refused["code"], refused["details"]["reason"]) == (403, "mine")
            assert await code(agent, READ_RESOURCE_EVENT, uri=f"{HOST}/sales") == 403
            assert (await agent.ask(GET_FINDER_EVENT))["total_count"] == 1
            # Another agent, or the same that comes back, is asked for again.
            office = agent.office
            await agent.disconnect()
            again = Agent()
            await again.join(hub.url, office)
            try:
                read = asyncio.create_task(again.ask(READ_RESOURCE_EVENT, uri=f"{HOST}/plan"))
                await eventually(lambda: cards(computer))
                # Other rules are other questions: this one is decided by the new rule.
                rule(computer, {"effect": "allow", "reads": f"{HOST}/plan"}, {"effect": "ask", "reads": f"{HOST}/*"})
                assert "error" not in await read and not cards(computer)
            finally:
                await again.disconnect()


async def test_nobody_to_ask_and_nobody_who_answers_are_said(hub: Running) -> None:
    quick = ResourceTimings(list=15, subscribe=15, read=0.3)
    async with sharing_office(hub, resource_timings=quick) as (agent, computer):
        rule(computer, {"effect": "ask", "reads": WINDOW, "reason": "Ada decides."})
        refused = (await agent.ask(READ_RESOURCE_EVENT, uri=WINDOW))["error"]
        assert (refused["code"], refused["details"]["outcome"]) == (403, "nobody")
        assert refused["details"]["reason"] == "Ada decides."
        with computer.decisions.attend("terminal"):
            refused = (await agent.ask(READ_RESOURCE_EVENT, uri=WINDOW))["error"]
            assert (refused["code"], refused["details"]["outcome"]) == (408, "unanswered")
            assert "try again" in refused["message"]
            desktop = (await agent.ask(GET_DESKTOP_EVENT))["desktops"]
            assert WINDOW in desktop  # its address alone
            (card,) = cards(computer)  # it stays open
            computer.decisions.answer(card.id, Accepted(), by="terminal")
            assert await code(agent, GET_DESKTOP_EVENT, window=WINDOW) is None
            desktop = (await agent.ask(GET_DESKTOP_EVENT))["desktops"]
            assert WINDOW not in desktop and any(each.startswith(WINDOW) for each in desktop)


async def test_cards_are_bounded_and_go_with_the_agent(hub: Running) -> None:
    quick = ResourceTimings(list=15, subscribe=15, read=0.05)
    async with sharing_office(hub, resource_timings=quick) as (agent, computer):
        rule(computer, {"effect": "ask", "reads": "resource"})
        with computer.decisions.attend("terminal"):
            assert await code(agent, READ_RESOURCE_EVENT, uri="nothing://here") == 4204  # nobody is asked about that
            assert not cards(computer)
            codes = [await code(agent, READ_RESOURCE_EVENT, uri=f"note://{n}/part") for n in range(20)]
            assert codes == [408] * 16 + [429] * 4
            assert len(cards(computer)) == 16
            await agent.disconnect()
            await eventually(lambda: not cards(computer))


async def test_without_rules_and_record_nothing_looks_at_a_read(hub: Running) -> None:
    async with sharing_office(hub) as (agent, computer):
        guard = computer.read_guard()
        assert guard.sight() is None and guard.last_sight() is None
        rule(computer, {"effect": "deny", "tool": "x"})
        assert guard.last_sight() is None
        assert not heard(agent, LEAVE_OFFICE_NOTIFICATION)


async def test_a_request_that_comes_first_does_not_keep_the_change_of_rules_from_being_announced() -> None:
    computer = Computer("pc")
    guard = computer.read_guard()
    rule(computer, {"effect": "deny", "reads": WINDOW})
    assert guard.last_sight() is not None  # a request looks at the new rules
    assert guard.is_news() and not guard.is_news()
    rule(computer)
    assert guard.last_sight() is None and guard.is_news()


async def test_answers_end_with_the_rules(hub: Running) -> None:
    async with sharing_office(hub) as (agent, computer):
        rule(computer, {"effect": "ask", "reads": "resource"})
        with computer.decisions.attend("terminal"):
            read = asyncio.create_task(agent.ask(READ_RESOURCE_EVENT, uri="note://one"))
            await eventually(lambda: cards(computer))
            computer.decisions.answer(cards(computer)[0].id, Accepted(), by="terminal")
            assert "error" not in await read
            assert await code(agent, READ_RESOURCE_EVENT, uri="note://one") is None
            rule(computer, {"effect": "ask", "reads": "resource"}, {"effect": "deny", "reads": "prompt"})
            again = asyncio.create_task(agent.ask(READ_RESOURCE_EVENT, uri="note://one"))
            await eventually(lambda: cards(computer))  # asked again
            computer.decisions.answer(cards(computer)[0].id, Declined("no", never=True), by="terminal")
            assert (await again)["error"]["code"] == 403
            made = computer.decisions.rules.list.all[0]
            assert (made.effect, made.raw["reads"], made.reason) == ("deny", "note://one", "no")

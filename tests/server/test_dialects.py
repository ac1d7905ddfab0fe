"""Peers of 0.4 at our servers, asyncio and threaded: what is marked, flattened and bounded. Raw clients play both."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest

from a2c_smcp.server import OpenAuthentication, SyncOpenAuthentication
from tests.server.harness import AsyncPeer, Running, async_server, sync_server
from tests.server.test_scenarios import stamped

NEW, OLD, OURS = "?a2c_version=0.4.0", "", "?a2c_version=0.4.0&a2c_office=1"
LARGE = "x" * (4 * 1024 * 1024)


@pytest.fixture(scope="module", params=["async", "sync"])
def hub(request: pytest.FixtureRequest) -> Iterator[Running]:
    is_async = request.param == "async"
    with async_server(OpenAuthentication()) if is_async else sync_server(SyncOpenAuthentication()) as running:
        yield running


@asynccontextmanager
async def office(
    hub: Running, agent_query: str, computer_query: str = OURS, computer_name: str = "computer"
) -> AsyncIterator[tuple[AsyncPeer, AsyncPeer]]:
    """An agent and a computer that say what they speak in their URLs."""
    agent, computer, name = AsyncPeer(), AsyncPeer(), f"office-{uuid4().hex}"
    try:
        await agent.connect(hub.url + agent_query)
        await computer.connect(hub.url + computer_query)
        for peer, role, called in ((agent, "agent", "agent"), (computer, "computer", computer_name)):
            assert (await peer.call("server:join_office", {"role": role, "name": called, "office_id": name}))[0]
        yield agent, computer
    finally:
        await agent.disconnect()
        await computer.disconnect()


def asked(computer: str = "computer", **fields: Any) -> dict[str, Any]:
    return {"agent": "a", "req_id": "1", "computer": computer, **fields}


@pytest.mark.parametrize(("query", "is_marked"), [(NEW, True), (OLD, False), (OURS, False)])
async def test_only_what_a_0_4_agent_asks_is_marked(hub: Running, query: str, is_marked: bool) -> None:
    async with office(hub, query) as (agent, computer):
        seen: list[Any] = []

        def answer(data: Any) -> Any:
            seen.append(data)
            return {"tools": [], "req_id": "1"}

        computer.answer("client:get_tools", answer)
        await agent.call("client:get_tools", asked(extra={"deep": [1]}))
        expected = asked(extra={"deep": [1]}) | ({"a2c_dialect": "0.4"} if is_marked else {})
        assert seen == [stamped(expected, "agent")]


async def test_the_mark_that_a_client_writes_itself_is_taken_out(hub: Running) -> None:
    for query, expected in ((NEW, "0.4"), (OURS, None)):
        async with office(hub, query) as (agent, computer):
            computer.answer("client:get_tools", lambda data: {"tools": [data.get("a2c_dialect")], "req_id": "1"})
            reply = await agent.call("client:get_tools", asked(a2c_dialect="9.9"))
            assert reply["tools"] == [expected]


@pytest.mark.parametrize(("query", "is_flat"), [(NEW, True), (OLD, False), (OURS, False)])
async def test_only_a_0_4_agent_gets_flat_errors(hub: Running, query: str, is_flat: bool) -> None:
    async with office(hub, query) as (agent, computer):
        computer.answer("client:get_skills", lambda _: {"error": {"code": 403, "message": "no", "details": {"d": 1}}})
        for reply, code in (
            (await agent.call("client:get_skill", asked("ghost", name="x")), 404),
            (await agent.call("client:get_skills", asked()), 4017),
            (await agent.call("client:get_blob", {"req_id": "1"}), 4018),
        ):
            assert reply.get("code") == (code if is_flat else None)
            assert reply["error"]["code"] in (404, 403, 400)
        call: Any = {"tool_name": "t", "params": {}, "timeout": 0}
        reply = await agent.call("client:tool_call", asked(**call))
        assert (reply["isError"], reply.get("meta")) == (True, {"error_code": 400} if is_flat else None)


async def test_a_0_4_agent_gets_413_and_stays_connected_where_others_get_the_answer(hub: Running) -> None:
    answer = {"content": [{"type": "text", "text": LARGE}], "isError": False}
    call: Any = {"tool_name": "t", "params": {}, "timeout": 20}
    async with office(hub, NEW) as (agent, computer):
        computer.answer("client:tool_call", lambda _: answer)
        reply = await agent.call("client:tool_call", asked(**call))
        assert (reply["isError"], reply["meta"]) == (True, {"error_code": 413})
        assert agent.connected
    async with office(hub, OURS) as (agent, computer):
        computer.answer("client:tool_call", lambda _: answer)
        assert (await agent.call("client:tool_call", asked(**call)))["content"] == answer["content"]


async def test_a_0_4_computer_is_spared_a_request_over_which_it_would_lose_its_connection(hub: Running) -> None:
    call: Any = {"tool_name": "t", "params": {"text": LARGE}, "timeout": 20}
    for query, code in ((NEW, 413), (OURS, None)):
        async with office(hub, OURS, query) as (agent, computer):
            computer.answer("client:tool_call", lambda _: {"content": [], "isError": False})
            computer.answer("client:get_tools", lambda _: {"tools": [], "req_id": "1"})
            reply = await agent.call("client:tool_call", asked(**call))
            assert reply.get("error", {}).get("code") == code
            assert (await agent.call("client:get_tools", asked()))["tools"] == []


async def test_a_0_4_computer_that_knows_no_documents_has_none(hub: Running) -> None:
    async with office(hub, OURS, NEW) as (agent, computer):
        computer.answer("client:get_finder", lambda _: None)
        computer.answer("client:get_prompts", lambda _: None)
        reply = await agent.call("client:get_finder", asked())
        assert reply == {"documents": [], "total_count": 0, "req_id": "1"}
        assert (await agent.call("client:get_prompts", asked()))["error"]["code"] == 500
    async with office(hub, OURS, OLD) as (agent, computer):
        computer.answer("client:get_finder", lambda _: None)
        assert (await agent.call("client:get_finder", asked()))["error"]["code"] == 500


async def test_names_of_other_offices_stay_unknown(hub: Running) -> None:
    async with office(hub, NEW) as (agent, _), office(hub, NEW, NEW, "elsewhere") as (other, _):
        refused = await agent.call("client:get_skills", asked("elsewhere"))
        assert (refused["code"], refused["message"]) == (404, "Computer 'elsewhere' not found")
        assert (await other.call("client:get_skills", asked("computer")))["code"] == 404

"""JSON that passes the server as text and that the ends must make something of: deep, out of range, twice, half a
character.
"""

import asyncio
from typing import Any

import anyio
import pytest

from a2c_smcp.agent import AsyncSMCPAgentClient
from a2c_smcp.errors import SMCPError
from a2c_smcp.smcp import SMCP_NAMESPACE
from a2c_smcp.wire import LARGE
from tests.computer.fakes.computers import server
from tests.computer.fakes.offices import new_office, options, watched
from tests.server.harness import AsyncPeer, Running

HUBS = ["hub", "sync_hub"]
ODD = {"900 levels": "[" * 900 + "]" * 900, "1e999": "1e999", "5,000 digits": "9" * 5000}


async def ask_by_hand(peer: AsyncPeer, body: str) -> Any:
    """Send an event written by hand, and return the first argument of its ack."""
    answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    ack_id = peer.sio._generate_ack_id(SMCP_NAMESPACE, lambda *args: answered.set_result(args[0]))
    await peer.sio.eio.send(f"2{SMCP_NAMESPACE},{ack_id}{body}")
    with anyio.fail_after(30):
        return await answered


def call(params: str, computer: str = '"pc"') -> str:
    return (
        f'["client:tool_call",{{"agent":"ag","req_id":"1","computer":{computer},'
        f'"tool_name":"a.echo","params":{params},"timeout":20}}]'
    )


@pytest.mark.parametrize("kind", HUBS)
async def test_a_computer_refuses_what_it_cannot_build_and_stays(kind: str, request: pytest.FixtureRequest) -> None:
    hub: Running = request.getfixturevalue(kind)
    async with watched(hub.url, server("a")) as (agent, _):
        for odd in ODD.values():
            reply = await ask_by_hand(agent, call(f'{{"text":"x","more":{odd}}}'))
            assert reply["error"]["code"] == 400
            assert reply["isError"] is True
        assert hub.namespace.pending_relays == 0
        assert (await agent.tool("a.echo", text="still here"))["content"][0]["text"] == "still here"


@pytest.mark.parametrize("kind", HUBS)
async def test_both_the_server_and_a_computer_read_the_last_of_two_keys_alike(
    kind: str, request: pytest.FixtureRequest
) -> None:
    hub: Running = request.getfixturevalue(kind)
    async with watched(hub.url, server("a")) as (agent, _):
        reply = await ask_by_hand(agent, call('{"text":"first","text":"last"}', '"nobody","computer":"pc"'))
        assert reply["content"][0]["text"] == "last"
        reply = await ask_by_hand(agent, call("{}", '"pc","computer":"nobody"'))
        assert reply["error"]["code"] == 404


@pytest.mark.parametrize("kind", HUBS)
async def test_half_a_character_is_a_replacement_character_for_an_mcp_server(
    kind: str, request: pytest.FixtureRequest
) -> None:
    hub: Running = request.getfixturevalue(kind)
    async with watched(hub.url, server("a")) as (agent, _):
        reply = await ask_by_hand(agent, call('{"text":"\\ud83d"}'))
        assert reply["content"][0]["text"] == "\ufffd"
        if kind == "sync_hub":
            return  # python-socketio decodes large texts, too
        reply = await ask_by_hand(agent, call('{"text":"\\ud83d' + "x" * LARGE + '"}'))
        assert reply["error"]["code"] == 400
        assert "surrogate" in reply["error"]["message"]


class ByHand(AsyncPeer):
    """A computer that acks every request with this text."""

    body = "[{}]"

    def __init__(self) -> None:
        super().__init__()
        handle = self.sio._handle_event

        async def ack(namespace: str, ack_id: int | None, data: Any) -> None:
            if ack_id is None:
                await handle(namespace, ack_id, data)
            else:
                await self.sio.eio.send(f"3/smcp,{ack_id}{self.body}")

        self.sio._handle_event = ack


@pytest.mark.parametrize("kind", HUBS)
async def test_an_agent_refuses_what_it_cannot_build_and_reads_the_rest(
    kind: str, request: pytest.FixtureRequest
) -> None:
    hub: Running = request.getfixturevalue(kind)
    office = new_office()
    computer = ByHand()

    def result(more: str) -> str:
        return f'[{{"content":[{{"type":"text","text":"x"}}],"isError":false,"meta":null,"structuredContent":{more}}}]'

    try:
        await computer.connect(hub.url, transports=["websocket"])
        await computer.call("server:join_office", {"role": "computer", "name": "pc", "office_id": office})
        async with AsyncSMCPAgentClient(options(hub.url), name="ag", live=False) as agent:
            await agent.join_office(office)
            for odd in ODD.values():
                computer.body = result(f'{{"x":{odd}}}')
                with pytest.raises(SMCPError) as caught:
                    await agent.call_tool("pc", "t")
                assert caught.value.code == 400
            computer.body = result('{"x":1,"x":[2]}')
            assert (await agent.call_tool("pc", "t")).structured_content == {"x": [2]}
            computer.body = result('{"x":123456789012345678901234567890}')
            assert (await agent.call_tool("pc", "t")).structured_content == {"x": 123456789012345678901234567890}
            computer.body = result('{"x":"\\ud83d"}')
            assert (await agent.call_tool("pc", "t")).structured_content == {"x": "\ufffd"}
            if kind == "sync_hub":
                return  # python-socketio decodes large texts, too
            computer.body = result('{"x":"\\ud83d' + "x" * LARGE + '"}')
            with pytest.raises(SMCPError) as caught:
                await agent.call_tool("pc", "t")
            assert caught.value.code == 500
    finally:
        await computer.disconnect()

"""What only one transport does: a websocket to a server that does not read, and the bodies of long polling."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web

from a2c_smcp.dialects.handshake import Dialect
from a2c_smcp.errors import ConnectionLostError, RequestTimeoutError
from a2c_smcp.link.connection import posts
from a2c_smcp.link.interface import Membership
from a2c_smcp.link.office_link import OfficeLink
from a2c_smcp.server import Limits, OpenAuthentication
from a2c_smcp.smcp import GET_TOOLS_EVENT
from tests.server.harness import async_server
from tests.utils.test_link import options, serving


async def deaf(request: web.Request) -> web.StreamResponse:
    """Greets, lets its client in, and reads nothing after that."""
    answer = web.WebSocketResponse()
    await answer.prepare(request)
    greeting = {"sid": "s", "upgrades": [], "pingInterval": 20000, "pingTimeout": 20000, "maxPayload": 10**8}
    await answer.send_str("0" + json.dumps(greeting))
    await answer.receive()
    await answer.send_str('40/smcp,{"sid":"t"}')
    assert isinstance(request.transport, asyncio.Transport)
    request.transport.pause_reading()
    await asyncio.sleep(60)
    return answer


async def test_a_server_that_reads_nothing_does_not_hold_a_request_past_its_deadline() -> None:
    async with serving(deaf) as url:
        link = OfficeLink(options(url, "websocket", max_message=16_000_000), {})
        await link.open()
        async with asyncio.timeout(50):
            for _ in range(3):
                with pytest.raises(RequestTimeoutError):
                    await link.request("ask", {"text": "x" * 8_000_000}, 0.3)
            await link.close()


async def test_a_request_that_gives_up_while_the_connection_is_full_takes_no_other_with_it() -> None:
    async with serving(deaf) as url:
        link = OfficeLink(options(url, "websocket", max_message=16_000_000), {})
        await link.open()
        async with asyncio.timeout(50):
            text = {"text": "x" * 15_000_000}
            requests = [link.request("ask", text, seconds) for seconds in (0.5, 2, 2)]
            outcomes = await asyncio.gather(*requests, return_exceptions=True)
            outcomes += await asyncio.gather(link.request("ask", text, 0.5), return_exceptions=True)
            assert [type(outcome) for outcome in outcomes] == [RequestTimeoutError] * 4
            await link.close()


async def test_a_server_that_is_lost_before_it_says_its_version_is_not_taken_for_an_older_one() -> None:
    probes = 0

    async def cuts_the_first_probe(request: web.Request) -> web.StreamResponse:
        nonlocal probes
        if request.query.get("a2c_version") != "0.0.0":
            return await deaf(request)
        probes += 1
        if probes == 1:
            assert request.transport is not None
            request.transport.close()
        return web.json_response({"code": 4008, "server_version": "0.4.0"}, status=400)

    async with serving(cuts_the_first_probe) as url, asyncio.timeout(50):
        with pytest.raises(ConnectionLostError, match="which version"):
            await OfficeLink(options(url, "websocket"), {}).open()
        link = OfficeLink(options(url, "websocket"), {})
        await link.open()
        assert link.dialect is Dialect.V0_4
        await link.close()


async def test_answers_that_wait_together_are_not_too_large_for_our_server_either() -> None:
    async def tools(_: Any) -> Any:
        return {"tools": [], "req_id": "x" * 600_000}

    with async_server(OpenAuthentication(), Limits(max_message=1_000_000)) as server:
        async with (
            OfficeLink(options(server.url, "polling"), {GET_TOOLS_EVENT: tools}) as computer,
            OfficeLink(options(server.url, "websocket"), {}) as agent,
        ):
            await computer.join(Membership("computer", "pc", "o"))
            await agent.join(Membership("agent", "ada", "o"))
            asked = {"agent": "ada", "req_id": "1", "computer": "pc"}
            answers = await asyncio.gather(*(agent.request(GET_TOOLS_EVENT, asked, 15) for _ in range(8)))
            assert [len(answer["req_id"]) for [answer] in answers] == [600_000] * 8


@pytest.mark.parametrize(
    ("packets", "most", "bodies"),
    [
        (["a"], 1, ["a"]),
        (["aaaa", "bb", "c"], 4, ["aaaa", "bb\x1ec"]),
        (["aaaaaa", "b"], 4, ["aaaaaa", "b"]),
        (["é", "é"], 4, ["é", "é"]),
        (["é", "é"], 5, ["é\x1eé"]),
        (["a"] * 20, None, ["\x1e".join("a" * 16), "\x1e".join("a" * 4)]),
        ([""], None, [""]),
    ],
)
def test_a_polling_body_is_not_larger_than_the_server_takes(
    packets: list[str], most: int | None, bodies: list[str]
) -> None:
    assert posts("\x1e".join(packets), most) == bodies

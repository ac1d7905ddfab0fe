"""What only a websocket does: a server that does not read holds nobody up."""

import asyncio
import json

import pytest
from aiohttp import web

from a2c_smcp.errors import RequestTimeoutError
from a2c_smcp.link.office_link import OfficeLink
from tests.utils.test_link import options, serving


async def deaf(request: web.Request) -> web.StreamResponse:
    """Greets, lets its client in, and reads nothing after that."""
    answer = web.WebSocketResponse()
    await answer.prepare(request)
    greeting = {"sid": "s", "upgrades": [], "pingInterval": 20000, "pingTimeout": 20000, "maxPayload": 10**6}
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

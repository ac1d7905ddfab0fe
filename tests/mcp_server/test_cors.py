"""What a browser reads before a page may use the server."""

import httpx2
import pytest

from a2c_smcp.mcp_server import cors
from tests.mcp_server.clients import DEADLINE
from tests.mcp_server.fakes.shop import make_server
from tests.mcp_server.test_http import ACCEPT, serving

PAGE = "http://localhost:6274"
ASK = {"access-control-request-method": "POST", "access-control-request-headers": "authorization, mcp-param-x"}


def test_only_a_browser_that_asks_for_a_page_is_answered_as_one() -> None:
    asks = {"origin": [PAGE], "access-control-request-method": ["POST"]}
    assert cors.is_preflight("OPTIONS", asks)
    assert not cors.is_preflight("POST", asks)
    assert not cors.is_preflight("OPTIONS", {"origin": [PAGE]})
    assert not cors.is_preflight("OPTIONS", {"access-control-request-method": ["POST"]})
    assert cors.for_page({}) == []


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [
        ("authorization,content-type", "authorization, content-type"),
        ("mcp-param-city", "mcp-param-city"),
        ("a b, fine, <script>, " + "x" * 200, "fine"),
        ("", ""),
    ],
)
def test_headers_that_are_no_names_are_not_repeated(asked: str, allowed: str) -> None:
    answer = dict(cors.preflight({"access-control-request-headers": [asked]}))
    assert answer[b"access-control-allow-headers"] == allowed.encode()


async def test_a_page_of_an_allowed_origin_reads_every_answer_and_others_none() -> None:
    app = make_server().http_app(token="s3cret")
    async with serving(app) as url, httpx2.AsyncClient(timeout=DEADLINE) as web:
        asked = await web.options(f"{url}/mcp", headers={"origin": PAGE, **ASK})
        assert asked.status_code == 204
        assert asked.headers["access-control-allow-origin"] == PAGE
        assert asked.headers["access-control-allow-headers"] == "authorization, mcp-param-x"
        assert "access-control-allow-credentials" not in asked.headers

        foreign = await web.options(f"{url}/mcp", headers={"origin": "https://evil.example", **ASK})
        assert foreign.status_code == 403
        assert "access-control-allow-origin" not in foreign.headers

        locked = await web.post(f"{url}/mcp", headers={**ACCEPT, "origin": PAGE}, content=b"{}")
        assert (locked.status_code, locked.headers["access-control-allow-origin"]) == (401, PAGE)
        good = {**ACCEPT, "origin": PAGE, "authorization": "Bearer s3cret"}
        answered = await web.post(f"{url}/mcp", headers=good, content=b"{}")
        assert answered.status_code == 400
        assert answered.headers["access-control-allow-origin"] == PAGE
        assert "Mcp-Session-Id" in answered.headers["access-control-expose-headers"]
        assert answered.headers["vary"] == "Origin"

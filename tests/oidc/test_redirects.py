"""The port that a browser comes back to is there for one sign-in."""

import asyncio

import httpx2
import pytest

from a2c_smcp.oidc.redirects import RedirectError, RedirectListener

pytestmark = pytest.mark.anyio


async def test_only_the_browser_of_this_sign_in_comes_back() -> None:
    async with RedirectListener() as listener, httpx2.AsyncClient() as browser:
        arriving = asyncio.create_task(listener.arrival("s1"))
        await asyncio.sleep(0)
        for path in ("?code=evil&state=guess", "?state=s1", "/../x?code=a&state=s1"):
            assert (await browser.get(listener.uri + path)).status_code == 404
        assert (await browser.post(listener.uri + "?code=evil&state=s1")).status_code == 404
        assert not arriving.done()
        page = await browser.get(listener.uri + "?code=right&state=s1&iss=i")
        assert page.status_code == 200 and "right" not in page.text
        assert page.headers["content-security-policy"] == "default-src 'none'"
        assert (await asyncio.wait_for(arriving, 20)).code == "right"
    with pytest.raises(httpx2.ConnectError):
        async with httpx2.AsyncClient() as browser:
            await browser.get(listener.uri)


async def test_a_fixed_port_that_is_taken_is_an_error_and_a_wished_one_is_not() -> None:
    async with RedirectListener() as taken:
        with pytest.raises(RedirectError, match="redirect_port"):
            await RedirectListener(taken.port, is_fixed=True).__aenter__()
        async with RedirectListener(taken.port) as other:
            assert other.port != taken.port

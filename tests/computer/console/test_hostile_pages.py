"""Attacks from the same browser: other origins, other ports, frames, forms; and markup wherever others can put some."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from playwright.async_api import Browser, Page, expect

from a2c_smcp.computer.computer import Computer
from tests.computer.console.harness import DEADLINE, Visitor, as_agent, go, opened, tab
from tests.computer.console.page_server import MARKUP
from tests.computer.console.test_memory import memory as file
from tests.computer.fakes.computers import server


@asynccontextmanager
async def site(html: str) -> AsyncIterator[str]:
    """Another site on this machine: the same host, another port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = html.encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with listener:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/"


async def test_a_page_of_another_port_reads_nothing_and_does_nothing(browser: Browser) -> None:
    async with opened(server("one", prefixed=False)) as (computer, console), site("<p>hello") as url:
        base = console.link().partition("/#")[0]
        context = await browser.new_context()
        async with tab(browser, console.link(), context) as page:
            key = await page.evaluate("sessionStorage.getItem('a2c-key')")
            other = await context.new_page()
            await other.goto(url)
            # It has no key of its own, and gets no answer even with a stolen one.
            assert await other.evaluate("sessionStorage.getItem('a2c-key')") is None
            for path, options in _TRIES:
                found = await other.evaluate(_TRY, [f"{base}{path}", options, key])
                assert found in ("refused", "opaque"), (path, found)
            assert computer.running_calls == () and computer.ended_calls == ()
            # Nor does it hear what tabs tell each other.
            heard = await other.evaluate(_LISTEN, await page.evaluate("`a2c-${sessionStorage.getItem('a2c-run')}`"))
            await as_agent(computer, "echo", text="private")
            await expect(page.locator(".row.ended")).to_have_count(1)
            assert heard is None and await other.evaluate("heard") == []
        await context.close()


_CALL = '{"tool": "echo", "arguments": {"text": "x"}}'
_TRIES: list[tuple[str, dict[str, Any]]] = [
    ("/api/tools", {}),
    ("/api/tools", {"mode": "no-cors"}),
    ("/api/feed", {"credentials": "include"}),
    ("/js/main.js", {"mode": "no-cors"}),
    ("/api/session", {"method": "POST", "body": '{"token": "x"}', "mode": "no-cors"}),
    ("/api/challenge", {"method": "POST", "body": "{}", "headers": {"content-type": "application/json"}}),
    ("/api/door", {}),
    ("/api/devices", {}),
    ("/api/link", {"method": "POST", "body": "{}", "headers": {"content-type": "application/json"}}),
    ("/api/revoke", {"method": "POST", "body": '{"page": "Chrome on Linux"}', "mode": "no-cors"}),
    ("/api/call", {"method": "POST", "body": _CALL, "mode": "no-cors", "headers": {"content-type": "text/plain"}}),
    ("/api/call", {"method": "POST", "body": _CALL, "headers": {"content-type": "application/json"}}),
]
_TRY = """async ([url, options, key]) => {
  const headers = options.mode === "no-cors" ? options.headers : { ...options.headers, "x-a2c-session": key };
  try {
    const response = await fetch(url, { ...options, headers });
    return response.type === "opaque" ? "opaque" : `${response.status}: ${await response.text()}`;
  } catch {
    return "refused";
  }
}"""


@pytest.mark.parametrize("path", ["session", "challenge", "remember", "revoke", "link"])
async def test_the_ways_in_are_for_pages_of_the_console(path: str, tmp_path: Path) -> None:
    with file(tmp_path, now=time.time()) as memory:
        async with opened(memory=memory) as (_, console), Visitor(console.link()) as visitor:
            await visitor.enter()
            for origin in ("http://evil.example", "http://127.0.0.1:1", "https://127.0.0.1", "null"):
                answer = await visitor.post(f"/api/{path}", {}, origin=origin)
                assert answer.status_code == 403 and "not served" in answer.text
            assert (await visitor.post(f"/api/{path}", {}, sec_fetch_site="same-site")).status_code == 403
            assert (await visitor.post(f"/api/{path}", {}, host="evil.example")).status_code == 421
            assert (await visitor.post(f"/api/{path}", {}, content_type="text/plain")).status_code == 400
            del visitor.headers["origin"]
            answer = await visitor.post(f"/api/{path}", {})
            assert answer.status_code == 403 and "must have one Origin" in answer.text


async def test_a_page_of_another_port_comes_in_neither_with_the_key_of_the_browser_nor_with_what_it_signed(
    browser: Browser, tmp_path: Path
) -> None:
    with file(tmp_path, now=time.time()) as memory:
        async with opened(memory=memory) as (_, console), site("<p>hello") as url:
            base = console.link().partition("/#")[0]
            context = await browser.new_context(locale="en-US")
            async with tab(browser, console.link(), context) as page:
                await page.get_by_role("button", name="Remember this browser").click()
                await expect(page.locator(".offer")).to_have_count(0)
                proof = await page.evaluate(_PROOF, memory.found.computer)
                other = await context.new_page()
                await other.goto(url)
                assert await other.evaluate("indexedDB.databases()") == []
                for mode in ("cors", "no-cors"):
                    headers = {"content-type": "application/json" if mode == "cors" else "text/plain"}
                    options = {"method": "POST", "body": proof, "mode": mode, "headers": headers}
                    assert await other.evaluate(_TRY, [f"{base}/api/session", options, ""]) in ("refused", "opaque")
                # The proof was good, once, for a page of the console.
                options = {"method": "POST", "body": proof, "headers": {"content-type": "application/json"}}
                assert (await page.evaluate(_TRY, ["/api/session", options, ""])).startswith("200")
                assert (await page.evaluate(_TRY, ["/api/session", options, ""])).startswith("403")
                # What the browser signs in another place of this machine is worth nothing here.
                elsewhere = base.replace("127.0.0.1", "localhost")
                proof = await page.evaluate(_PROOF, memory.found.computer)
                there = await context.new_page()
                await there.goto(elsewhere)
                options = {"method": "POST", "body": proof, "headers": {"content-type": "application/json"}}
                assert (await there.evaluate(_TRY, ["/api/session", options, ""])).startswith("403")
            await context.close()


#: What the page posts to come in, as text.
_PROOF = """async (computer) => {
  const { keptKey, signed } = await import("/js/device-key.js");
  const { ask } = await import("/js/door.js");
  const { device, pair } = await keptKey(computer);
  const { challenge } = (await ask("challenge", {})).answer;
  return JSON.stringify({ device, challenge, signature: await signed(pair, challenge, computer) });
}"""
_LISTEN = """name => {
  globalThis.heard = [];
  new BroadcastChannel(name).onmessage = event => heard.push(event.data);
  return null;
}"""


async def test_a_form_posted_from_another_site_changes_nothing(browser: Browser) -> None:
    async with opened(server("one", prefixed=False)) as (computer, console):
        base = console.link().partition("/#")[0]
        form = f"""<form method=post action="{base}/api/call" enctype="text/plain">
            <input name='{{"tool":"echo","arguments":{{}},"x":"' value='"}}'><button>go</button></form>"""
        async with site(form) as url, tab(browser, console.link()) as page:
            other = await page.context.new_page()
            await other.goto(url)
            async with other.expect_navigation() as navigation:
                await other.get_by_role("button").click()
            response = await navigation.value
            assert response is not None and response.status == 403
            assert computer.running_calls == () and computer.ended_calls == ()


async def test_it_shows_in_no_frame(browser: Browser) -> None:
    async with opened() as (_, console):
        base = console.link().partition("/#")[0]
        frames = f'<iframe src="{base}/"></iframe><iframe src="{base}/" sandbox="allow-scripts"></iframe>'
        async with site(f"{frames}<object data='{base}/'></object><embed src='{base}/'>") as url:
            page = await browser.new_page()
            await page.goto(url, wait_until="load")
            with anyio.fail_after(DEADLINE):
                # Each is refused in its own time, also after the load; the frame of an object goes away then.
                while not all(frame.url.startswith("chrome-error:") for frame in page.frames[1:]):
                    await page.wait_for_timeout(50)
            texts = [await frame.evaluate("document.body ? document.body.innerText : ''") for frame in page.frames[1:]]
            assert not any("Console" in text or "closed" in text for text in texts)
            assert not any([await frame.query_selector("#app") for frame in page.frames])
            await page.close()


async def test_a_link_that_was_used_opens_nothing_and_says_so(browser: Browser) -> None:
    async with opened() as (_, console):
        link = console.link()
        async with tab(browser, link) as page:
            # The token is gone from the address and from where the browser remembers addresses.
            assert "link=" not in page.url and "link=" not in await page.evaluate(
                "JSON.stringify(history.state) + document.referrer"
            )
            other = await browser.new_page()
            await other.goto(link)
            await expect(other.locator(".over")).to_contain_text("used already")
            await other.goto(link.partition("#")[0])
            await expect(other.locator(".over")).to_contain_text("This page is closed")
            await other.close()
            # A reload of the page that came in first stays in.
            await page.reload()
            await page.wait_for_selector(".status.live")
            assert await page.context.cookies() == []


async def test_markup_runs_nowhere(browser: Browser) -> None:
    name = "<img src=x onerror=alert(1)>"
    config: dict[str, Any] = {
        "name": "page",
        "type": "stdio",
        "default_tool_meta": {"auto_apply": True},
        "server_parameters": {"command": sys.executable, "args": ["-m", "tests.computer.console.page_server"]},
    }
    asking = server("<b>asking</b>", prefixed=False, default_tool_meta={}, forbidden_tools=["picture", "fail"])
    both = opened(config, asking)
    async with both as (computer, console), tab(browser, console.link()) as page, anyio.create_task_group() as tasks:
        # As the name of an agent, of a tool, of a server, in arguments, a question, a result and an error.
        await computer.execute_tool("r", "add_tool", {"name": name}, 20, confirmed_by="browser")
        await _until_listed(computer, name)
        tasks.start_soon(as_agent, computer, name)
        tasks.start_soon(_ask, computer)
        await expect(page.locator("aside .decision")).to_have_count(2)
        await expect(page.locator("aside")).to_contain_text(name)
        await expect(page.locator("aside")).to_contain_text("<b>asking</b>")
        await as_agent(computer, "fail")
        await as_agent(computer, "picture", note=MARKUP)
        for view in (
            "calls",
            "servers",
            f"tools/{name}",
            "desktop",
            "finder",
            "finder/dpe%3A%2F%2Fpage.test%2Fgarden",
        ):
            await go(page, view.replace(name, "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E"))
            await expect(page.locator("main")).to_contain_text("<")
            await _harmless(page)
        tasks.cancel_scope.cancel()


async def _ask(computer: Computer) -> None:
    schema = {"type": "object", "properties": {MARKUP: {"type": "string", "title": MARKUP, "description": MARKUP}}}
    await computer.decisions.ask_question(MARKUP, MARKUP, schema=schema)


async def _until_listed(computer: Computer, name: str) -> None:
    with anyio.fail_after(30):
        while name not in computer.tool_servers:  # noqa: ASYNC110 - of another process
            await anyio.sleep(0.02)


async def _harmless(page: Page) -> None:
    assert await page.title() != "owned"
    images = await page.evaluate("[...document.images].map(each => each.getAttribute('src'))")
    assert [source for source in images if source != "/icon.svg" and not source.startswith("data:image/")] == []
    assert await page.evaluate("document.querySelectorAll('#app script, #app b b, h3 b, [onerror]').length") == 0

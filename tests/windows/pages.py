"""Pages for the tests of tabs, served on loopback: a form, frames, dialogs, and pages that mean no good."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

# ruff: noqa: E501 - pages read better in lines of their own length
PAGES: Final = {
    "/form": """<title>Order</title><h1>Order</h1><p>Please <b>fill in</b> the form.</p>
        <form action=/done><label>Name <input name=name required></label>
        <label>Secret <input name=pin type=password value=1234></label>
        <label>Size <select name=size><option>Small<option>Large</select></label>
        <label><input type=checkbox name=gift> As a gift</label><textarea aria-label=Note></textarea>
        <button>Save</button></form><p hidden>not shown</p><div style="display:none"><a href=/x>nor this</a></div>
        <table><tr><th>What<th>Price</tr><tr><td>Tea<td>3</tr></table><a href=/table>More</a>""",
    "/done": "<title>Thanks</title><h1>Thank you</h1><script>document.write(new URLSearchParams(location.search).get('name'))</script>",
    "/table": "<title>Table</title><ul>" + "".join(f"<li>item {number}</li>" for number in range(200)) + "</ul>",
    "/frames": """<title>Frames</title><p>outside</p><iframe src=/form></iframe>
        <x-card></x-card><script>customElements.define('x-card', class extends HTMLElement {
          connectedCallback() { this.attachShadow({mode: 'open'}).innerHTML = '<button>In the shadow</button>'; }
        });</script>""",
    "/ask": """<title>Ask</title><button onclick="document.body.append(confirm('Really?') ? ' yes' : ' no')">Delete</button>""",
    "/clock": """<title>Clock</title><p id=p>0</p><script>
        let n = 0; setInterval(() => { p.textContent = ++n; }, 20);</script>""",
    "/changing": """<title>Changing</title><button id=b>Old</button><script>
        window.replace = () => { b.outerHTML = '<button>New</button>'; };</script><a href="javascript:replace()">Replace</a>""",
    "/feed": """<title>Feed</title><div id=d></div><script>
        for (let i = 0; i < 200000; i++) { const p = document.createElement('p'); p.textContent = 'row ' + i; d.append(p); }</script>""",
    "/alerts": "<title>Alerts</title><script>setTimeout(() => { for (let i = 0; i < 50; i++) alert(i); document.title = 'over'; }, 10);</script>",
    "/busy": "<title>Busy</title><p>soon</p><script>setTimeout(() => { while (true); }, 300);</script>",
    "/popup": "<title>Popup</title><a href=/form target=_blank>Elsewhere</a>",
    "/file": "<title>File</title><a href=/report.csv download>Report</a>",
    "/two-files": """<title>Files</title><a href=/report.csv download>One</a><script>function both() {
        for (const a of document.querySelectorAll('a')) a.click(); }</script><a href=/report.csv?2 download>Two</a>
        <button onclick=both()>Both</button>""",
    "/long-name": "<title>Long name</title><a href=/long-name.bin download>Get</a>",
    "/cancel": """<title>Cancel</title><button onclick="document.title='cancelled'">Cancel</button>""",
    "/delete": """<title>Delete</title><button onclick="document.title='deleted'">Delete everything</button>""",
    "/opens-another": "<title>Opener</title><button>Here</button><script>setTimeout(() => open('/delete'), 300)</script>",
    "/opens-many": "<title>Many</title><script>setInterval(() => { for (let i = 0; i < 5; i++) open('/cancel'); }, 50)</script>",
    "/no-height": """<title>No height</title><p>flat</p><script>window.innerHeight = -1;
        Object.defineProperty(document.documentElement, 'scrollHeight', {value: 0});</script>""",
    "/odd-answers": """<title>Odd</title><p>odd</p><script>Array.prototype.join = () => { throw 'no' };
        Math.max = () => 'many';</script>""",
    "/alert": "<title>Alert</title><p>below</p><script>setTimeout(() => alert('look here'), 200)</script>",
    "/parts": """<title>Parts</title><h2><a href=/form>Headline</a></h2><p>[e1] button "Not one"
        <table><tr><td>Tea<td><div role=button>Buy tea</div></tr></table><div onclick="document.title = 'clicked'">A box</div>
        <table><tr><td><h1>Laid out</h1><p>A table may hold the whole page: one cell has all of this, which is longer than a
        cell of data would be, so its parts are shown one by one as those of any other page would be, heading included.<td>aside</tr></table>
        <pre>def f():
    return 1</pre>""",
    "/slots": """<title>Slots</title><x-b>Between the tags <button>Save</button></x-b><script>
        customElements.define('x-b', class extends HTMLElement { connectedCallback() {
          const root = this.attachShadow({mode: 'open'});
          root.innerHTML = '<p>around</p><slot></slot><i>0</i>';
          let n = 0; setInterval(() => { root.querySelector('i').textContent = 'turn ' + ++n; }, 200);
        }});</script>""",
    "/long": "<title>Long</title><h1>The top</h1>"
    + "".join(f"<div><p>part {number} with some words to be long</p></div><b>{number}</b>" for number in range(600))
    + "<form><p>At the very end</p><input id=z aria-label=Bottom></form><script>z.focus({preventScroll: true})</script>",
    "/long-frame": "<title>Framed</title><h1>The page itself</h1><p>important</p><iframe src=/long></iframe>",
    "/endless": """<title>Endless</title><ul id=u></ul><script>
        const more = () => { for (let i = 0; i < 30; i++) { const li = document.createElement('li');
          li.textContent = 'entry ' + u.children.length; li.style.height = '60px'; u.append(li); } };
        more(); addEventListener('scroll', () => {
          if (scrollY + innerHeight > document.documentElement.scrollHeight - 200) more(); });</script>""",
}


async def _page(request: web.Request) -> web.Response:
    if request.path == "/long-name.bin":
        return web.Response(text="x", headers={"content-disposition": f'attachment; filename="{"n" * 400}.bin"'})
    if request.path == "/report.csv":
        return web.Response(text="a,b\n", headers={"content-disposition": 'attachment; filename="report.csv"'})
    if (page := PAGES.get(request.path)) is None:
        raise web.HTTPNotFound
    return web.Response(text=f"<!doctype html>{page}", content_type="text/html")


@asynccontextmanager
async def serving_pages() -> AsyncIterator[str]:
    """The address of a web server with these pages."""
    app = web.Application()
    app.router.add_get("/{tail:.*}", _page)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()

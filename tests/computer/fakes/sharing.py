"""A misbehaving server that also has resources of every kind, templates, prompts, completions and links.

    sharing.py MODE [key=value …]

More options: `many` how many notes it lists, `endless=1` lists pages of notes without end, `odd=1` lists items that are
too deep, too large or invalid, `instructions` what it says of its use. More tools: see `MORE_TOOLS`.
"""

import base64
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from misbehaving import MODERN, TOOLS, Server  # type: ignore[import-not-found]

MORE_TOOLS = {
    "link": "uri: a link to it, which is not listed",
    "meta": "→ the `_meta` of the request as JSON text, and `_meta` on the text and on the result",
    "set_prompt": "name: adds a prompt",
    "set_blob": "uri, size: gives a resource so many bytes",
    "storm": "uri, count: says so many times that it has changed",
    "seen": "→ the prompts, completions and reads that it was asked for, as JSON text",
}
TOOLS.update(MORE_TOOLS)
ICON = {"src": "data:image/png;base64,AAAA", "mimeType": "image/png"}


class SharingServer(Server):  # type: ignore[misc]
    def __init__(self, mode: str, options: dict[str, str]) -> None:
        super().__init__(mode, options)
        self.options = options
        self.resources |= {"note://one": "first note", "ui://app/view": "<p>hello</p>"}
        self.resources |= {f"note://many/{n}": f"note {n}" for n in range(int(options.get("many", "0")))}
        self.blobs = {"note://picture": b"\x00\x01\xff"}
        self.prompts = {"greet": [{"name": "who", "required": True}], "plain": []}
        self.hidden = {"note://hidden": "behind a link", "note://two/part": "of a template"}
        self.seen: list[Any] = []
        self.meta: dict[str, Any] = {}

    def capabilities(self) -> dict[str, Any]:
        changes = {} if self.bare else {"listChanged": True}
        return {**super().capabilities(), "prompts": changes, "completions": {}}

    def result(self, id_: Any, **result: Any) -> None:
        info = {"name": "sharing", "title": "The Sharing Server", "version": "1.2"}
        if "capabilities" in result:
            result |= {"instructions": self.options.get("instructions", "Read the notes first.")}
            if "serverInfo" in result:
                result["serverInfo"] = info
            else:
                result["_meta"] = {"io.modelcontextprotocol/serverInfo": info}
        super().result(id_, **result)

    def changed(self, what: str, uri: str | None = None) -> None:
        if what == "prompts/list_changed" and self.spoken == MODERN:
            for id_, wanted in list(self.listens.items()):
                if wanted.get("promptsListChanged"):
                    self.notify(what, _meta={"io.modelcontextprotocol/subscriptionId": id_})
            return
        super().changed(what, uri)

    def receive(self, message: dict[str, Any]) -> None:
        method, id_, params = message.get("method"), message.get("id"), message.get("params") or {}
        self.meta = params.get("_meta") or {}
        cache = {"ttlMs": 0, "cacheScope": "private"} if self.spoken == MODERN else {}
        match method:
            case "resources/list":
                self.list_resources(id_, params.get("cursor"), cache)
            case "resources/templates/list":
                templates = [
                    {"uriTemplate": "note://{id}/part", "name": "part", "title": "A part"},
                    {"uriTemplate": "{+a}{+b}", "name": "everything"},
                    {"uriTemplate": "slow:" + "{+a}x" * 190, "name": "slow"},
                ]
                self.result(id_, resourceTemplates=templates, **cache)
            case "prompts/list":
                prompts = [{"name": name, "arguments": wants} for name, wants in self.prompts.items()]
                self.listing(id_, "prompts", prompts, params.get("cursor"))
            case "prompts/get":
                self.seen.append(["prompt", params["name"], params.get("arguments"), self.plain_meta()])
                self.get_prompt(id_, params["name"], params.get("arguments") or {})
            case "completion/complete":
                self.seen.append(["complete", params["ref"], params["argument"], params.get("context")])
                values = [each for each in ("ann", "bob") if each.startswith(params["argument"]["value"])]
                self.result(id_, completion={"values": values, "total": len(values), "hasMore": False})
            case _:
                super().receive(message)

    def plain_meta(self) -> dict[str, Any]:
        return {key: value for key, value in self.meta.items() if not key.startswith("io.modelcontextprotocol/")}

    def list_resources(self, id_: Any, cursor: str | None, cache: dict[str, Any]) -> None:
        uris = [*self.listed(), *self.blobs]
        items: list[Any] = [{"uri": uri, "name": uri.rpartition("/")[2]} for uri in uris]
        for item in items:
            if item["uri"] == "ui://app/view":
                item |= {"title": "View", "icons": [ICON], "_meta": {"ui": {"csp": []}}, "unheardOf": 1}
        if self.options.get("odd"):
            deep: Any = {}
            for _ in range(500):
                deep = {"d": deep}
            items[:0] = [
                {"uri": "note://deep", "name": "deep", "_meta": deep},
                {"uri": "note://fat", "name": "x" * 100_000},
                {"uri": "note://wide", "name": "wide", "_meta": {"w": [0] * 2000}},
                {"uri": "note://wrong", "name": 5},
            ]
        if self.options.get("endless"):
            start = int(cursor or 0)
            page = [{"uri": f"note://{start}/{n}", "name": "n"} for n in range(100)]
            self.result(id_, resources=page, nextCursor=str(start + 1), **cache)
            return
        self.listing(id_, "resources", items, cursor)

    def answer_read(self, id_: Any, uri: str) -> None:
        extra = {"ttlMs": 0, "cacheScope": "private"} if self.spoken == MODERN else {}
        if uri in self.blobs:
            blob = base64.b64encode(self.blobs[uri]).decode()
            contents = [{"uri": uri, "mimeType": "image/png", "blob": blob, "_meta": {"k": 1}}]
            self.result(id_, contents=contents, _meta={"r": 2}, **extra)
            return
        if uri in self.hidden:
            self.result(id_, contents=[{"uri": uri, "text": self.hidden[uri]}], **extra)
            return
        super().answer_read(id_, uri)

    def get_prompt(self, id_: Any, name: str, arguments: dict[str, Any]) -> None:
        if name not in self.prompts:
            self.error(id_, -32602, f"Unknown prompt: {name}")
            return
        text = f"Greet {arguments.get('who', 'nobody')}."
        if arguments.get("who") == "deep":
            deep: Any = {}
            for _ in range(500):
                deep = {"d": deep}
            message = {"role": "user", "content": {"type": "text", "text": text, "_meta": deep}}
        else:
            message = {"role": "user", "content": {"type": "text", "text": text, "_meta": {"m": 1}}}
        self.result(id_, description="a greeting", messages=[message], _meta={"p": 1})

    def tool(self, name: str) -> dict[str, Any]:
        tool: dict[str, Any] = super().tool(name)
        if name == "meta":
            tool |= {"title": "Meta", "icons": [ICON], "_meta": {"ui": {"resourceUri": "ui://app/view"}, "n": 1}}
        return tool

    def call(self, id_: Any, name: str, arguments: dict[str, Any]) -> None:
        match name:
            case "link":
                link = {"type": "resource_link", "uri": arguments["uri"], "name": "linked"}
                self.result(id_, content=[link])
            case "meta":
                text = {"type": "text", "text": json.dumps(self.meta), "_meta": {"on": "text"}}
                self.result(id_, content=[text], _meta={"on": "result"})
            case "set_blob":
                self.blobs[arguments["uri"]] = bytes(range(256)) * (arguments["size"] // 256)
                self.text(id_, "done")
            case "set_prompt":
                self.prompts[arguments["name"]] = []
                self.changed("prompts/list_changed")
                self.text(id_, "done")
            case "storm":
                for _ in range(arguments["count"]):
                    self.changed("resources/updated", arguments["uri"])
                self.text(id_, "done")
            case "seen":
                self.text(id_, json.dumps(self.seen))
            case _:
                super().call(id_, name, arguments)


if __name__ == "__main__":
    mode, *rest = sys.argv[1:]
    SharingServer(mode, dict(option.split("=", 1) for option in rest)).run()

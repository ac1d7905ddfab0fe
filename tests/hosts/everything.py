"""The server with everything, directly and through an office: where both are, and what a client gets from them."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mcp_types as types
from anyio.from_thread import start_blocking_portal
from mcp.client import Client
from pydantic import BaseModel

from a2c_smcp.agent import LinkOptions
from a2c_smcp.computer import Computer, SMCPComputerClient
from a2c_smcp.server import OpenAuthentication
from tests.hosts.asking import PROMPT
from tests.server.harness import async_server

SERVER = str(Path(__file__).with_name("everything_mcp.py"))
BIG = 14 * 2**20
_OPTIONS = ["--computer", "pc", "--search", "never", "--http", "0", "--http-token", "none"]


@dataclass(frozen=True, slots=True)
class Places:
    """The addresses of the server itself, of two offices with one computer only, and of the offices' server. In the
    office of `modern` the computer speaks MCP 2026-07-28 with its MCP server, in that of `through` the older era.
    """

    direct: str
    through: str
    modern: str
    hub: str


@contextmanager
def everything() -> Iterator[Places]:
    # Not pytest's own directory: the path of a socket has 103 bytes at most.
    folder = tempfile.mkdtemp(prefix="a2c-all-")
    try:
        with (
            _printing([sys.executable, SERVER, "http"], r"(http\S+)", "stdout", os.environ) as direct,
            async_server(OpenAuthentication()) as hub,
            start_blocking_portal() as portal,
            portal.wrap_async_context_manager(_computer(hub.url)),
            _through(hub.url, "lab", folder) as through,
            _through(hub.url, "lab-2026", folder) as modern,
        ):
            yield Places(direct, through, modern, hub.url)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _through(hub: str, office: str, folder: str) -> Iterator[str]:
    command = [sys.executable, "-m", "a2c_smcp.cli", "mcp", "--url", hub, "--office", office, *_OPTIONS]
    env = {**os.environ, "XDG_RUNTIME_DIR": folder, "XDG_CACHE_HOME": folder, "XDG_STATE_HOME": folder}
    with _printing(command, r"ready on (\S+);", "stderr", env) as url:
        yield url


@contextmanager
def _printing(command: list[str], pattern: str, stream: str, env: Any) -> Iterator[str]:
    """A process that prints its address, which is ended at the end."""
    pipes: Any = {stream: subprocess.PIPE}
    with subprocess.Popen(command, env=env, text=True, **pipes) as process:
        watchdog = threading.Timer(90, process.kill)
        watchdog.start()
        lines = getattr(process, stream)
        reader = threading.Thread(target=lambda: [None for _ in lines])
        try:
            found = next(filter(None, (re.search(pattern, line) for line in lines)))
            watchdog.cancel()
            reader.start()
            yield found[1]
        finally:
            watchdog.cancel()
            process.terminate()
            try:
                process.wait(30)
            finally:
                process.kill()
                reader.join(30)


@asynccontextmanager
async def _computer(url: str) -> AsyncIterator[None]:
    config = {
        "name": "everything",
        "type": "stdio",
        "protocol": "legacy",  # the conformance suite of the old era asks while a call runs
        "share": "all",
        "questions": "agent",
        "default_tool_meta": {"auto_apply": True},
        "server_parameters": {"command": sys.executable, "args": [SERVER]},
    }
    computer = Computer("pc", mcp_servers=[config])
    modern = Computer("pc", mcp_servers=[{**config, "protocol": "auto"}])
    links = [SMCPComputerClient(each, LinkOptions(url)) for each in (computer, computer, modern)]
    async with computer, modern, links[0] as client, links[1] as second, links[2] as third:
        await client.join_office("lab")
        await second.join_office("features")  # an office has one agent, and `a2c mcp` sits in the other
        await third.join_office("lab-2026")
        yield


# --- what a client gets

TRACED: Any = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "com.example/x": {"y": [1]}}


async def payloads(client: Client) -> dict[str, Any]:
    """What a client gets for each method, as JSON."""
    found: dict[str, Any] = {}
    found["info"] = {"instructions": client.instructions, "capabilities": _json(client.server_capabilities)}
    found["tools/list"] = {tool.name: _json(tool) for tool in (await client.list_tools()).tools}
    for tool in ("simple_text", "image_content", "audio_content", "embedded_resource", "multiple_content_types"):
        found[f"tools/call {tool}"] = _json(await client.call_tool(f"test_{tool}", {}))
    found["tools/call error"] = _json(await client.call_tool("test_error_handling", {}))
    found["tools/call links"] = _json(await client.call_tool("links", {}, meta=TRACED))
    reports: list[Any] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, total, message))

    await client.call_tool("test_tool_with_progress", {}, progress_callback=hear)
    found["progress"] = reports
    found["resources/list"] = {each.uri: _json(each) for each in (await client.list_resources()).resources}
    found["templates"] = {
        each.uri_template: _json(each) for each in (await client.list_resource_templates()).resource_templates
    }
    for uri in ("static-text", "static-binary", "template/7/data"):
        found[f"resources/read {uri}"] = _json(await client.read_resource(f"test://{uri}", meta=TRACED))
    found["resources/read app"] = _json(await client.read_resource("ui://everything/app.html"))
    found["prompts/list"] = {each.name: _json(each) for each in (await client.list_prompts()).prompts}
    arguments = {"arg1": "a", "arg2": "b", "resourceUri": "test://x"}
    for name in found["prompts/list"].keys() - {PROMPT}:
        found[f"prompts/get {name}"] = _json(await client.get_prompt(name, arguments))
    for ref, argument in (
        (types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments"), "arg1"),
        (types.ResourceTemplateReference(type="ref/resource", uri="test://template/{id}/data"), "id"),
    ):
        found[f"complete {argument}"] = _json(await client.complete(ref, {"name": argument, "value": ""}))
    return found


def _json(model: BaseModel | None) -> Any:
    """A model as JSON, without the name of the server, which each server writes into its own results."""
    if model is None:
        return None
    found = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    meta = found.get("_meta")
    if isinstance(meta, dict):
        meta.pop("io.modelcontextprotocol/serverInfo", None)
        if not meta:
            del found["_meta"]
    return found

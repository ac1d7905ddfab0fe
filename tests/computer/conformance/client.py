"""A Computer as the client of MCP's conformance suite: one process for all scenarios.

The suite starts a server for each scenario and a `courier`, which brings the scenario here. Here a Computer connects to
that server, a person signs in where the server wants it, and every tool is called.
"""

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import httpx2

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.decisions.book import Accepted, Decision, DecisionAnswer, MissingSignIn, Question
from a2c_smcp.computer.mcp_clients.connection_options import Timings
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.computer.watching.events import EventStream, ServerStatus
from a2c_smcp.errors import SignInNeededError

__all__ = ["ConformanceClient", "Scenario"]

#: How many seconds a person and an issuer of the suite may take, on a busy machine where 74 scenarios run at once.
_SECONDS: Final = 240.0


_PATIENT: Final = Timings(start=_SECONDS, request=_SECONDS)


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a courier brings."""

    scenario: str
    context: dict[str, Any]
    version: str | None
    url: str


class ConformanceClient:
    """`async with` it: the `port` where couriers come to."""

    def __init__(self) -> None:
        self.port = 0
        self.problems: dict[str, str] = {}
        """What went wrong in which scenario. In some of them something must."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = Scenario(**json.loads(await reader.readline()))
        failed = ""
        try:
            async with asyncio.timeout(_SECONDS):
                await play(task)
        except Exception as error:  # a boundary: the suite says which scenario has failed, and the courier why
            failed = self.problems[task.scenario] = repr(error)
        with suppress(OSError):
            writer.write(json.dumps({"failed": failed}).encode() + b"\n")
            await writer.drain()
        writer.close()


async def play(task: Scenario) -> None:
    """Connect, sign in where that is wanted, and call every tool."""
    async with (
        Computer("conformance", mcp_servers=[_config(task)], auto_connect=False, timings=_PATIENT) as computer,
        computer.events(kinds=[ServerStatus]) as events,
    ):
        with computer.decisions.attend("person", ask=_answer):
            with suppress(SignInNeededError):
                await computer.start_server("suite")
            await _until_running(computer, events)
            for tool, arguments in _calls(computer, task):
                result = await computer.execute_tool("r", tool, arguments, timeout=_SECONDS)
                if (result.meta or {}).get("state") == "sign_in":  # it was not executed
                    await _until_running(computer, events)
                    result = await computer.execute_tool("r", tool, arguments, timeout=_SECONDS)
                if result.is_error:
                    raise RuntimeError(f"{tool}: {result}")


async def _until_running(computer: Computer, events: EventStream) -> None:
    while (status := computer.statuses[0]).state is not ServerState.RUNNING:
        if status.sign_in_failed or status.state in (ServerState.FAILED, ServerState.BACKING_OFF):
            raise RuntimeError(status.reason)
        await anext(events)


def _config(task: Scenario) -> dict[str, Any]:
    context = task.context
    parameters: dict[str, Any] = {"url": task.url}
    oauth: dict[str, Any] = {}
    if "client_id" in context:
        oauth["client_id"] = context["client_id"]
    if "client_secret" in context:
        oauth["client_secret"] = context["client_secret"]
    if task.scenario.startswith("auth/client-credentials"):
        oauth["grant"] = "client_credentials"
    if "valid_jwt" in context:
        oauth |= {"grant": "jwt_bearer", "assertion": context["valid_jwt"]}
    if "idp_id_token" in context:
        oauth |= {"grant": "jwt_bearer", "id_token": context["idp_id_token"]}
        oauth |= {"token_exchange_url": context["idp_token_endpoint"], "exchange_client_id": context["idp_client_id"]}
    if "private_key_pem" in context:
        oauth["private_key"] = context["private_key_pem"]
        oauth["key_algorithm"] = context.get("signing_algorithm", "ES256")
    if "client_metadata_url" in context or task.scenario == "auth/basic-cimd":
        oauth["client_metadata_url"] = context.get(
            "client_metadata_url", "https://conformance-test.local/client-metadata.json"
        )
    if oauth:
        parameters["oauth"] = oauth
    return {
        "name": "suite",
        "type": "streamable",
        "server_parameters": parameters,
        "default_tool_meta": {"auto_apply": True},
    }


async def _answer(decision: Decision) -> DecisionAnswer | None:
    match decision:
        case MissingSignIn(url=url):
            async with httpx2.AsyncClient(follow_redirects=True, timeout=_SECONDS) as browser:
                await browser.get(url)
            await asyncio.sleep(_SECONDS)  # the redirect decides
        case Question():
            return Accepted()
    return None


def _calls(computer: Computer, task: Scenario) -> list[tuple[str, dict[str, Any]]]:
    """The calls of a scenario: those of its context, or every tool once."""
    if wanted := task.context.get("toolCalls"):
        return [(each["name"], each.get("arguments", {})) for each in wanted]
    schemas = {tool["name"]: tool["params_schema"] for tool in computer.get_available_tools()}
    if "json_schema_echo" in schemas:
        return [("json_schema_echo", {"schema": schemas["json_schema_2020_12_tool"]})]
    return [(name, _arguments(schema)) for name, schema in schemas.items()]


def _arguments(schema: dict[str, Any]) -> dict[str, Any]:
    """Plain values for every required field."""
    kinds: dict[str, Any] = {"string": "x", "number": 1, "integer": 1, "boolean": True, "array": [], "object": {}}
    fields = schema.get("properties", {})
    return {name: kinds.get(fields.get(name, {}).get("type", "string"), "x") for name in schema.get("required", [])}

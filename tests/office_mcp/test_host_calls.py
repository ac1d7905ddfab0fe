"""Questions and tasks of tools, through the office to the person at an MCP host: both eras on both sides."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal
from unittest.mock import patch

import httpx2
import mcp_types as types
import pytest
from mcp.client import Client
from mcp.client import session as client_session
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from a2c_smcp.agent import AsyncSMCPAgentClient
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.socketio import SMCPComputerClient
from a2c_smcp.office_mcp import office_server
from a2c_smcp.office_mcp.host_calls import question_modes
from a2c_smcp.office_mcp.host_tasks import TASKS, TaskTimes
from a2c_smcp.office_mcp.hosted_calls import elicit_params, read_answer
from a2c_smcp.server import OpenAuthentication
from tests.computer.fakes.computers import FAST, asking, tasking
from tests.computer.fakes.offices import new_office, options
from tests.computer.test_asking import SCHEMA, URL
from tests.mcp_server.clients import DEADLINE, ERAS, MODERN
from tests.mcp_server.clients import eventually as listed_eventually
from tests.office_mcp.conftest import PATIENT
from tests.office_mcp.test_command import Place, over_http, runtime_directory
from tests.server.harness import async_server, eventually

__all__ = ["runtime_directory"]

SERVERS = ("old", "new")
both_hosts = pytest.mark.parametrize("era", ERAS)


class Person:
    """Answers at the host, and remembers what it was asked."""

    def __init__(self, *answers: types.ElicitResult) -> None:
        self.answers = list(answers) or [types.ElicitResult(action="accept", content={"text": "Ada"})]
        self.asked: list[types.ElicitRequestParams] = []

    async def __call__(self, context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.asked.append(params)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Created(types.Result):
    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    ttl_ms: int
    poll_interval_ms: int


class TakesTasks(ClientExtension):
    identifier = TASKS

    def claims(self) -> Sequence[ResultClaim[Any]]:
        async def resolve(created: Created, context: ClaimContext) -> types.CallToolResult:
            while True:
                state = await about(context.session, "get", created.task_id)
                if state["status"] == "completed":
                    return types.CallToolResult.model_validate(state["result"])
                assert state["status"] == "working"
                await asyncio.sleep(0.05)

        return [ResultClaim(result_type="task", model=Created, resolve=resolve)]


class _TaskRequest(types.Request[dict[str, Any], str]):
    name_param = "taskId"


class _Anything(types.Result, extra="allow"):
    pass


async def about(session: Any, verb: str, task_id: str, **more: Any) -> dict[str, Any]:
    request = _TaskRequest(method=f"tasks/{verb}", params={"taskId": task_id, **more})
    answer = await session.send_request(request, _Anything)
    found: dict[str, Any] = answer.model_dump(by_alias=True)
    return found


@asynccontextmanager
async def a_host(target: Any, era: str, person: Person | None = None, **more: Any) -> AsyncIterator[Client]:
    mode = "auto" if era == MODERN else "legacy"
    # mcp gives a process ten seconds to start and say that it is of the new era, and then takes it for an old one.
    with patch.object(client_session, "DISCOVER_TIMEOUT_SECONDS", DEADLINE):
        async with Client(target, mode=mode, elicitation_callback=person, cache=None, **more) as client:
            yield client


@pytest.fixture(scope="module")
async def place() -> AsyncIterator[Place]:
    """An office with one computer, whose tools ask the agent."""
    common: dict[str, Any] = {"questions": "agent", "default_tool_meta": {"auto_apply": True}}
    servers = [
        {**make(era), **common, "name": f"{era}-{make.__name__}", "tool_prefix": f"{era}_{make.__name__}_"}
        for era in SERVERS
        for make in (asking, tasking)
    ]
    # The loop of this computer stands still while tests of other files run, and while a process starts.
    with async_server(OpenAuthentication(), PATIENT, ping_timeout=300) as running:
        place = Place(running.url, new_office())
        computer = Computer("pc", mcp_servers=servers, timings=FAST)
        async with computer, SMCPComputerClient(computer, options(running.url)) as client:
            await client.join_office(place.office)
            await eventually(lambda: len({tool["name"].split("_")[0] for tool in computer.get_available_tools()}) == 2)
            place.computers["pc"] = computer
            yield place


@pytest.fixture
async def agent(place: Place) -> AsyncIterator[AsyncSMCPAgentClient]:
    async with AsyncSMCPAgentClient(options(place.url), name="ada") as agent:
        await agent.join_office(place.office)
        await agent.settled()
        yield agent


async def said(client: Client, tool: str, /, **arguments: Any) -> Any:
    result = await client.call_tool(f"pc__{tool}", arguments)
    [content] = result.content
    assert isinstance(content, types.TextContent)
    assert not result.is_error, content.text
    return json.loads(content.text) if content.text.startswith("{") else content.text


async def asks_both(client: Client, person: Person) -> None:
    """A form and a URL, by servers of both eras."""

    async def all_are_listed() -> bool:
        names = {tool.name for tool in (await client.list_tools()).tools}
        return {f"pc__{server}_asking_ask" for server in SERVERS} <= names

    await listed_eventually(all_are_listed)  # a busy machine may take longer than a call waits
    for server in SERVERS:
        answer = await said(client, f"{server}_asking_ask", message="Who?", schema=SCHEMA)
        assert answer == {"action": "accept", "content": {"text": "Ada"}}
        form = person.asked[-1]
        assert isinstance(form, types.ElicitRequestFormParams)
        assert (form.message, form.requested_schema) == (f"{server}-asking on pc asks: Who?", SCHEMA)
        person.answers = [types.ElicitResult(action="decline"), *person.answers]
        assert await said(client, f"{server}_asking_visit", url=URL, id="e-1") == {"action": "decline"}
        visit = person.asked[-1]
        assert isinstance(visit, types.ElicitRequestURLParams)
        assert visit.url == URL
        heard: list[str | None] = []

        async def hear(progress: float, total: float | None, message: str | None, heard: list[Any] = heard) -> None:
            heard.append(message)

        await client.call_tool(f"pc__{server}_tasking_slow", {"polls": 4}, progress_callback=hear)
        assert {"poll 1", "1 of 10"} & set(heard)


# --- with real processes all the way


@both_hosts
async def test_a_question_reaches_the_person_at_a_host_over_stdio(place: Place, era: str) -> None:
    command = StdioServerParameters(
        command=sys.executable, args=["-W", "error", *place.command("--search", "never")], env=dict(os.environ)
    )
    person = Person()
    async with a_host(command, era, person) as client:
        await asks_both(client, person)


async def test_a_question_reaches_the_person_at_a_host_over_http_and_belongs_to_its_credentials(place: Place) -> None:
    with over_http(place, "--search", "never", "--http-token", "none") as address:

        @asynccontextmanager
        async def host(era: str, who: str, person: Person, **more: Any) -> AsyncIterator[Client]:
            async with (
                httpx2.AsyncClient(headers={"authorization": f"Bearer {who}"}, timeout=60) as http,
                a_host(streamable_http_client(address, http_client=http), era, person, **more) as client,
            ):
                yield client

        for era in ERAS:
            person = Person()
            async with host(era, "ada", person) as client:
                await asks_both(client, person)
        tool, arguments = "pc__new_asking_ask", {"message": "Who?"}
        async with (
            host(MODERN, "ada", Person(), extensions=[TakesTasks()]) as client,
            host(MODERN, "eve", Person(), extensions=[TakesTasks()]) as other,
        ):
            asked = await begin(client, tool, arguments)
            with pytest.raises(MCPError, match="Invalid or expired requestState"):
                await other.session.call_tool(tool, arguments, request_state=asked.request_state)
            task = await created(client, "old_asking_hold")  # after the three seconds of a real bridge
            with pytest.raises(MCPError, match="Task not found"):
                await about(other.session, "cancel", task.task_id)
            await about(client.session, "cancel", task.task_id)
            await until(client, task, "cancelled")


# --- questions, in memory


@pytest.mark.parametrize("server", SERVERS)
@both_hosts
async def test_a_host_that_cannot_ask_is_not_asked(agent: AsyncSMCPAgentClient, era: str, server: str) -> None:
    async with a_host(office_server(agent, search="never").mcp, era) as client:
        assert await said(client, f"{server}_asking_ask") == {"action": "cancel"}
        declared = await said(client, f"{server}_asking_declared")
        assert ("elicitation" in declared) is (server == "old")


@pytest.mark.parametrize("server", SERVERS)
@both_hosts
async def test_several_rounds_are_one_call_and_an_answer_that_does_not_fit_is_cancel(
    agent: AsyncSMCPAgentClient, era: str, server: str
) -> None:
    person = Person()
    async with a_host(office_server(agent, computer="pc").mcp, era, person) as client:

        async def plain(tool: str, **arguments: Any) -> str:
            [content] = (await client.call_tool(f"{server}_asking_{tool}", arguments)).content
            assert isinstance(content, types.TextContent)
            return content.text

        person.answers = [types.ElicitResult(action="accept", content={})]
        assert await plain("rounds", count=3) in ("asked 3 times", '["accept", "accept", "accept"]')
        assert len(person.asked) == 3
        assert person.asked[0].message in ("Round 1?", "Again?"), "one computer speaks as if it was here"
        person.answers = [types.ElicitResult(action="accept", content={"text": "x" * 50})]
        assert json.loads(await plain("ask", schema=SCHEMA)) == {"action": "cancel"}
        # The defaults of a form are its answer if the person gives none.
        schema = {"type": "object", "properties": {"name": {"type": "string", "default": "Ada"}}}
        person.answers = [types.ElicitResult(action="accept", content={})]
        assert json.loads(await plain("ask", schema=schema))["content"] == {"name": "Ada"}


async def begin(client: Client, tool: str, arguments: dict[str, Any]) -> types.InputRequiredResult:
    asked = await client.session.call_tool(tool, arguments, allow_input_required=True)
    assert isinstance(asked, types.InputRequiredResult)
    return asked


@pytest.mark.parametrize("server", SERVERS)
async def test_a_state_is_good_for_one_time_and_for_its_own_call(
    agent: AsyncSMCPAgentClient, place: Place, server: str
) -> None:
    tool, arguments = f"pc__{server}_asking_ask", {"message": "Who?"}
    other = f"pc__{server}_asking_visit"
    mcp = office_server(agent, search="never").mcp
    async with a_host(mcp, MODERN, Person()) as client, a_host(mcp, MODERN, Person()) as second:
        asked = await begin(client, tool, arguments)
        foreign = await begin(second, "pc__new_asking_ask", {"message": "Me, too?"})
        assert asked.request_state is not None
        assert foreign.request_state is not None
        [key] = asked.input_requests or {}
        answers: types.InputResponses = {key: types.ElicitResult(action="accept", content={})}
        middle = len(asked.request_state) // 2
        forged = asked.request_state[:middle] + ("A" if asked.request_state[middle] != "A" else "B")
        for name, given, state in (
            (tool, arguments, forged + asked.request_state[middle + 1 :]),
            (tool, arguments, "x"),
            (tool, arguments, foreign.request_state),
            (tool, {"message": "What?"}, asked.request_state),
            (other, arguments, asked.request_state),
        ):
            with pytest.raises(MCPError, match="Invalid or expired requestState"):
                await client.session.call_tool(
                    name, given, input_responses=answers, request_state=state, allow_input_required=True
                )
        # Without an answer it is asked again, and only the new state counts.
        again = await client.session.call_tool(
            tool, arguments, request_state=asked.request_state, allow_input_required=True
        )
        assert isinstance(again, types.InputRequiredResult)
        assert list(again.input_requests or {}) == [key]
        result = await client.session.call_tool(
            tool, arguments, input_responses=answers, request_state=again.request_state
        )
        assert not result.is_error
        for used in (asked.request_state, again.request_state):
            with pytest.raises(MCPError, match="Invalid or expired requestState"):
                await client.session.call_tool(tool, arguments, input_responses=answers, request_state=used)
    # When the bridge ends, so does the call that still waits for its host.
    await place.runs("pc", 0)


async def test_only_so_many_calls_wait_for_hosts(
    agent: AsyncSMCPAgentClient, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    from a2c_smcp.office_mcp import host_calls

    monkeypatch.setattr(host_calls, "_MOST", host_calls._ParkingBounds(calls=2, seconds=600))
    async with a_host(office_server(agent, search="never").mcp, MODERN, Person()) as client:
        for _ in range(2):
            await begin(client, "pc__new_asking_ask", {})
        assert await said(client, "new_asking_ask") == {"action": "cancel"}
        monkeypatch.setattr(host_calls, "_MOST", host_calls._ParkingBounds(calls=3, seconds=0.05))
        late = await begin(client, "pc__new_asking_ask", {"message": "late"})
        await place.runs("pc", 2)
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await client.session.call_tool("pc__new_asking_ask", {"message": "late"}, request_state=late.request_state)


def test_what_a_host_can_answer_is_what_it_declares() -> None:
    def modes(**elicitation: Any) -> tuple[str, ...]:
        return question_modes(types.ClientCapabilities.model_validate({"elicitation": elicitation}))

    assert question_modes(None) == question_modes(types.ClientCapabilities()) == ()
    assert modes() == ("form",)
    assert modes(url={}) == ("url",)
    assert modes(form={}, url={}) == ("form", "url")


def test_a_question_and_an_answer_have_mcps_form() -> None:
    about_call = {"agent": "ada", "req_id": "1", "computer": "pc", "question_id": "q"}
    bare = elicit_params({**about_call})  # type: ignore[typeddict-item]
    assert isinstance(bare, types.ElicitRequestFormParams)
    assert read_answer({"action": "dance"}).action == read_answer(None).action == "cancel"
    assert read_answer({"action": "accept", "content": {"a": 1}}).content == {"a": 1}


# --- tasks


@pytest.mark.parametrize("server", SERVERS)
@both_hosts
async def test_a_tool_that_runs_as_a_task_is_an_ordinary_call_for_a_host(
    agent: AsyncSMCPAgentClient, era: str, server: str
) -> None:
    person = Person()
    async with a_host(office_server(agent, search="never").mcp, era, person) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert listed[f"pc__{server}_tasking_slow"].execution is None
        assert await said(client, f"{server}_tasking_slow", polls=2) == "done"
        answer = await said(client, f"{server}_tasking_asks", message="Who?", schema=SCHEMA)
        assert answer == {"action": "accept", "content": {"text": "Ada"}}


def quick(agent: AsyncSMCPAgentClient, **times: float) -> Any:
    return office_server(agent, search="never", task_times=TaskTimes(**{"patience": 0.1, "poll": 0.05, **times})).mcp


async def created(client: Client, tool: str, /, **arguments: Any) -> Created:
    made = await client.session.call_tool(f"pc__{tool}", arguments, allow_input_required=True, allow_claimed=True)
    assert isinstance(made, Created), made
    return made


async def until(client: Client, task: Created, status: str) -> dict[str, Any]:
    async with asyncio.timeout(DEADLINE):
        while True:
            state = await about(client.session, "get", task.task_id)
            if state["status"] == status:
                return state
            await asyncio.sleep(0.02)


async def test_a_call_that_takes_long_is_a_task_that_can_be_picked_up_again(
    agent: AsyncSMCPAgentClient, place: Place
) -> None:
    async with a_host(quick(agent), MODERN, extensions=[TakesTasks()]) as client:
        assert client.server_capabilities is not None
        assert TASKS in (client.server_capabilities.extensions or {})
        assert await said(client, "old_asking_pid"), "a quick call is none"
        task = await created(client, "old_asking_hold")
        assert (task.status, task.poll_interval_ms, len(task.task_id)) == ("working", 50, 32)
        assert (await about(client.session, "get", task.task_id))["status"] == "working"
        await said(client, "old_asking_let_go")
        for _ in range(2):  # and it stays for a while
            state = await until(client, task, "completed")
            assert state["result"]["content"] == [{"type": "text", "text": "let go"}]
        # A tool that says what went wrong has a result, too.
        refusing = await created(client, "new_tasking_nonsense", what="rounds")
        assert (await until(client, refusing, "completed"))["result"]["isError"]
        running = await created(client, "new_tasking_never")
        assert (await about(client.session, "get", running.task_id))["statusMessage"].startswith("poll")
        await about(client.session, "cancel", running.task_id)
        await until(client, running, "cancelled")
        await place.runs("pc", 0)
        assert await said(client, "new_tasking_slow", polls=8) == "done", "mcp's client polls by itself"


@pytest.mark.parametrize("server", SERVERS)
async def test_a_task_asks_the_person_at_the_host(agent: AsyncSMCPAgentClient, server: str) -> None:
    mcp = quick(agent, patience=0.0)
    async with a_host(mcp, MODERN, Person(), extensions=[TakesTasks()]) as client:
        task = await created(client, f"{server}_asking_ask", message="Who?", schema=SCHEMA)
        state = await until(client, task, "input_required")
        [(key, request)] = state["inputRequests"].items()
        assert request["params"]["message"] == f"{server}-asking on pc asks: Who?"
        answer = {"action": "accept", "content": {"text": "Ada"}}
        await about(client.session, "update", task.task_id, inputResponses={"another": answer, key: answer})
        result = (await until(client, task, "completed"))["result"]
        assert json.loads(result["content"][0]["text"]) == answer


async def test_a_task_is_its_owners_and_nobody_elses(agent: AsyncSMCPAgentClient, place: Place) -> None:
    mcp = quick(agent)
    async with a_host(mcp, MODERN, extensions=[TakesTasks()]) as client:
        task = await created(client, "old_asking_hold")
        with pytest.raises(MCPError, match="Task not found") as error:
            await about(client.session, "get", "guessed")
        assert error.value.code == types.INVALID_PARAMS
        async with a_host(mcp, MODERN) as other:
            with pytest.raises(MCPError) as refused:
                await about(other.session, "get", task.task_id)
            assert refused.value.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY
        async with a_host(mcp, ERAS[0]) as old:
            assert old.server_capabilities is not None
            assert old.server_capabilities.tasks is None
            with pytest.raises(MCPError) as unknown:
                await about(old.session, "cancel", task.task_id)
            assert unknown.value.code == types.METHOD_NOT_FOUND
        assert (await about(client.session, "get", task.task_id))["status"] == "working"
    await place.runs("pc", 0)


async def test_tasks_are_few_and_do_not_stay_for_ever(
    agent: AsyncSMCPAgentClient, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    from a2c_smcp.office_mcp import host_tasks

    monkeypatch.setattr(host_tasks, "_MOST", host_tasks._HostTaskBounds(tasks=1))
    async with a_host(quick(agent, keep=1.0), MODERN, extensions=[TakesTasks()]) as client:
        task = await created(client, "old_asking_hold")
        # There is no room for another task: it is an ordinary call.
        assert await said(client, "new_tasking_slow", polls=8) == "done"
        await place.runs("pc", 0)
        with pytest.raises(MCPError, match="Task not found"):
            await about(client.session, "get", task.task_id)

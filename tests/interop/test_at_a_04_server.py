"""Our computers and agents at a server of 0.4.2: what is too large for it, and what fails there."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from a2c_smcp.agent import AsyncSMCPAgentClient, LinkOptions, shared_seat
from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.rules.rule import parse_rules
from a2c_smcp.computer.socketio import SMCPComputerClient
from a2c_smcp.errors import SMCPError
from tests.computer.fakes.computers import FAST
from tests.interop.generations import OFFICE, Peer04, our_computer, peer_04, pictures

pytestmark = pytest.mark.interop

BIG, POLLING = "big", "polling"


@pytest.fixture(scope="module")
def url(tmp_path_factory: Any) -> Iterator[str]:
    skills: Path = tmp_path_factory.mktemp("skills")
    for number in range(300):
        (skills / f"s{number}").mkdir()
        (skills / f"s{number}" / "SKILL.md").write_text("---\ndescription: " + "d" * 4000 + "\n---\n")
    with peer_04("server04.py") as server:
        url = server.ready()
        with (
            our_computer(url, BIG, skills=skills),
            our_computer(LinkOptions(url, transport="polling"), POLLING, {"bundle_id": "p_"}),
        ):
            yield url


@pytest.fixture
async def agent(url: str) -> AsyncIterator[AsyncSMCPAgentClient]:
    async with AsyncSMCPAgentClient(url, name="ada", api_key="secret") as agent:
        await agent.join_office(OFFICE)
        yield agent
        await agent.leave_office()


async def test_an_answer_that_is_too_large_for_the_server_is_413_at_once(agent: AsyncSMCPAgentClient) -> None:
    with pytest.raises(SMCPError) as caught, anyio.fail_after(15):  # silence would last 20 s
        await agent.get_skills(BIG)
    assert (caught.value.code, caught.value.details["error_code"]) == (4017, 413)


async def test_every_name_is_a_claim_at_a_server_that_does_not_say_who_asks(
    url: str, agent: AsyncSMCPAgentClient
) -> None:
    rules, problems = parse_rules([{"effect": "allow", "agent": "ada"}, {"effect": "deny", "agent": "intern"}])
    assert not problems
    computer = Computer("ruled", mcp_servers=[pictures()], timings=FAST)
    async with computer, SMCPComputerClient(computer, url, api_key="secret") as client:
        await client.join_office(OFFICE)
        await agent.settled()
        (tool,) = [tool["name"] for tool in await agent.get_tools("ruled") if "image" in tool["name"]]
        assert not (await agent.call_tool("ruled", tool, {"size": 10}, timeout=30)).is_error
        computer.decisions.rules.use_config(rules)
        refused = await agent.call_tool("ruled", tool, {"size": 10}, timeout=30)
        assert refused.meta is not None and refused.meta["outcome"] == "rule"
        assert computer.ended_calls[-1].call.asker == Asker("ada", office=OFFICE)


def test_their_agent_hears_of_an_answer_that_is_too_large(url: str) -> None:
    with peer_04("agent04.py") as theirs:
        theirs.ready()
        theirs.do("connect", url, OFFICE)
        said = _asked(theirs, "get_skills", BIG)
        theirs.do("leave", OFFICE)
    assert (said["error"], said["payload"]["code"], said["payload"]["details"]["error_code"]) == (
        "SMCPProtocolError",
        4017,
        413,
    )


def _asked(peer: Peer04, *what: str) -> dict[str, Any]:
    said = peer.ask(*what)
    assert "error" in said, said
    return said


async def test_a_polling_computer_sends_no_more_at_once_than_the_server_takes(agent: AsyncSMCPAgentClient) -> None:
    sizes: list[int] = []

    async def fetch() -> None:
        result = await agent.call_tool(POLLING, "p___image", {"size": 1_500_000}, timeout=30)
        sizes.append(len(getattr(result.content[0], "data", "")) * 3 // 4)

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(fetch)
    assert sizes == [1_500_000] * 8


async def test_a_tool_that_cannot_be_called_is_refused_with_its_own_code(url: str, agent: AsyncSMCPAgentClient) -> None:
    strict = Computer("strict", mcp_servers=[pictures(forbidden_tools=["sleep"])], timings=FAST)
    async with strict as computer, SMCPComputerClient(computer, url, api_key="secret") as client:
        await client.join_office(OFFICE)
        refused = await agent.call_tool("strict", "pictures__sleep", {}, timeout=10)
        assert (refused.meta or {})["error_code"] == 4002
        await computer.stop_server("pictures")
        stopped = await agent.call_tool("strict", "pictures__echo", {"text": "x"}, timeout=10)
        assert (stopped.meta or {})["error_code"] == 4003


async def test_a_shared_seat_knows_what_its_server_speaks(url: str) -> None:
    link = LinkOptions(url, api_key="secret")
    seat = shared_seat(link, OFFICE, "seat", linger=0.1)
    async with (
        AsyncSMCPAgentClient(link, name="ada", link=seat) as agent,
        AsyncSMCPAgentClient(link, name="bob", link=shared_seat(link, OFFICE, "seat", linger=0.1)) as other,
    ):
        for each in (agent, other):
            await each.join_office(OFFICE)
            assert (await each.get_finder(BIG))["documents"] == []

"""One trace from the agent, or from an MCP host, to the MCP server, as a collector gets it by OTLP."""

import re
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import StdioServerParameters, stdio_client
from mcp.client.client import Client

from a2c_smcp.agent import AsyncSMCPAgentClient
from tests.computer.fakes.offices import options
from tests.traces.collector import TakenSpan, tree
from tests.traces.offices import TracedOffice, a2c, traced_office

PAGE = Path(__file__).parents[2] / "docs" / "operating.md"

INSIDE = """
client:tool_call {tool}  [office, client]
   client:tool_call  [office, server]
      client:tool_call {tool}  [a2c-computer, server]
         {sent}  [a2c-computer, client]
            {taken}  [{service}, server]
"""
ACROSS = """
client:tool_call {tool}  [office, client]
   client:tool_call  [office, server]
      send client:tool_call  [office, producer]
         process client:tool_call  [office, consumer]
            client:tool_call {tool}  [a2c-computer, server]
               {sent}  [a2c-computer, client]
                  {taken}  [{service}, server]
"""


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TracedOffice]:
    with traced_office(tmp_path_factory.mktemp("traces")) as running:
        yield running


def a_trace() -> dict[str, str]:
    return {"traceparent": f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01"}


async def call(office: TracedOffice, url: str, tool: str, count: int) -> list[TakenSpan]:
    """Call a tool in a new trace, and return its spans."""
    meta = a_trace()
    async with AsyncSMCPAgentClient(options(url), name="ag") as agent:
        await agent.join_office("lab")
        await agent.wait_for_tool("pc", tool, 60)
        await agent.call_tool("pc", tool, {"text": "hunter2"}, timeout=30, meta=meta)
    _, trace_id, parent_id, _ = meta["traceparent"].split("-")
    spans = office.collector.trace(trace_id, lambda spans: len(spans) >= count)
    assert parent_id in {span.parent_id for span in spans}
    return spans


def picture(template: str, tool: str, service: str) -> list[str]:
    name = tool.partition("_")[2]
    sent = f"tools/call {name}" if tool.startswith("pipe") else f"MCP send tools/call {name}"
    return template.strip().format(tool=tool, sent=sent, taken=f"tools/call {name}", service=service).splitlines()


async def test_a_call_inside_one_process_is_one_tree_down_to_a_server_on_pipes(office: TracedOffice) -> None:
    spans = await call(office, office.near, "pipe_echo", 5)
    assert tree(spans) == picture(INSIDE, "pipe_echo", "mcp-stdio")
    agent, server, computer, sent, _ = sorted(spans, key=lambda span: span.began)
    for span in (agent, server, computer):
        assert span.attributes["messaging.destination.name"] == "pc"
        assert span.attributes["messaging.operation.name"] == "client:tool_call"
    assert {agent.attributes["gen_ai.tool.name"], computer.attributes["gen_ai.tool.name"]} == {"pipe_echo"}
    assert (sent.attributes["mcp.method.name"], sent.attributes["network.transport"]) == ("tools/call", "pipe")
    assert not any(span.is_error for span in spans)


async def test_a_call_across_nats_is_the_tree_on_the_page_for_operators(office: TracedOffice) -> None:
    spans = await call(office, office.far, "web_fail", 7)
    lines = picture(ACROSS, "web_fail", "mcp-http")
    assert tree(spans) == lines
    # The page names the services as they are called when each is a command.
    shown = re.search(r"```text\n(client:tool_call .*?)\n```", PAGE.read_text("utf-8"), re.DOTALL)
    assert shown is not None
    assert re.sub(r"\[\S+, ", "[", shown[1]).splitlines() == [re.sub(r"\[\S+, ", "[", line) for line in lines]
    assert {span.attributes.get("error.type") for span in spans if span.is_error} == {"4003", "-32602"}
    assert sum(span.is_error for span in spans) == 4
    assert not any(span.message for span in spans)  # mcp's own two had the message of the error


async def test_the_trace_of_a_host_goes_on_through_the_bridge(office: TracedOffice) -> None:
    meta = a_trace()
    words = a2c("mcp", "--office", "lab", "--url", office.near, "--computer", "pc")
    server = StdioServerParameters(command=words[0], args=words[1:], env=office.environment)
    async with Client(stdio_client(server)) as host:
        result = await host.call_tool("pipe_echo", {"text": "hunter2"}, meta=meta)  # type: ignore[arg-type]
    assert not result.is_error
    _, trace_id, parent_id, _ = meta["traceparent"].split("-")
    spans = office.collector.trace(trace_id, lambda spans: len(spans) >= 6)
    agent, *below = picture(INSIDE, "pipe_echo", "mcp-stdio")
    expected = ["tools/call pipe_echo  [a2c-mcp, server]", agent.replace("office", "a2c-mcp"), *below]
    assert tree(spans) == [expected[0], *("   " + line for line in expected[1:])]
    assert parent_id in {span.parent_id for span in spans}


async def test_no_span_says_what_was_called_with(office: TracedOffice) -> None:
    await call(office, office.near, "pipe_fail", 5)
    assert len(office.collector.spans) > 20
    assert not [span for span in office.collector.spans if "hunter2" in f"{span} {span.attributes}"]

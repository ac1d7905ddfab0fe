"""The office as one MCP server: every computer's tools, resources and prompts, for any MCP host."""

from collections.abc import Mapping
from functools import partial
from typing import Final

from a2c_smcp import __version__
from a2c_smcp.agent.for_models.office_agent import OfficeAgent
from a2c_smcp.agent.for_models.remembered_office import RememberedOffice
from a2c_smcp.agent.for_models.tool_names import checked_labels
from a2c_smcp.agent.for_models.watching import WatchedOffice
from a2c_smcp.mcp_server.server import ContextServer
from a2c_smcp.office_mcp.host_calls import HostCalls
from a2c_smcp.office_mcp.host_tasks import TaskTimes
from a2c_smcp.office_mcp.instructions import office_instructions
from a2c_smcp.office_mcp.prompts import OfficePrompts
from a2c_smcp.office_mcp.resources import OfficeResources
from a2c_smcp.office_mcp.shared_lists import SharedLists
from a2c_smcp.office_mcp.tools import OfficeTools, SearchMode
from a2c_smcp.smcp import ToolQuestion
from a2c_smcp.utils.text import cut, printable

__all__ = ["DEFAULT_TIMEOUT", "office_server"]

#: How many seconds a tool call may take. Hosts have shorter limits of their own.
DEFAULT_TIMEOUT: Final = 300


def office_server(
    agent: OfficeAgent,
    *,
    computer: str | None = None,
    short_names: Mapping[str, str] | None = None,
    search: SearchMode = "auto",
    timeout: int = DEFAULT_TIMEOUT,
    approval_timeout: int | None = None,
    memory: RememberedOffice | None = None,
    task_times: TaskTimes | None = None,
) -> ContextServer:
    """The office of an agent as an MCP server, to be run or mounted: `office_server(agent).http_app()`.

    Give it an agent that is in its office, or that `attend`s it. `computer` limits the server to one computer, whose
    tools, prompts and resources keep their names, as if its MCP servers were local. `short_names` maps computers to
    the labels in the names of their tools. `search` says whether hosts get every tool or a search tool: `auto` means a
    search from 40 tools on. `timeout` is how many seconds a tool may run; it covers the wait for a person, unless
    `approval_timeout` gives that wait its own limit. `memory` has the tools of the last time, which hosts get while the
    office cannot be reached. `task_times` says when a call becomes a task, for hosts that take tasks.
    """
    office = WatchedOffice(agent, computer, checked_labels(short_names or {}), memory)
    intro = _who_asks if computer is None else _as_it_is
    calls = HostCalls(intro, task_times)
    tools = OfficeTools(office, calls, search, timeout, approval_timeout)
    shared = SharedLists(office)
    resources, prompts = OfficeResources(office, shared), OfficePrompts(office, shared, short_names or {}, intro)
    server = ContextServer(
        "a2c-office",
        host="a2c",
        version=__version__,
        title="The computers of an office",
        instructions=partial(office_instructions, office),
        tools=tools,
        resources=[resources],
        prompts=prompts,
    )

    def tell_of_tools() -> None:
        if not tools.only_searched:
            server.tools.changed()

    def tell_of_prompts() -> None:
        if prompts.given:
            server.changes.prompts_changed()

    calls.serve(server.mcp)
    office.on_tools = tell_of_tools
    shared.on_prompts = tell_of_prompts
    resources.announce_to(server.changes)
    office.look()
    return server


def _who_asks(question: ToolQuestion) -> str:
    """What stands before a question: the person at the host sees many computers as one server."""
    return f"{printable(cut(question.get('mcp_server', 'a tool')))} on {printable(question['computer'])} asks: "


def _as_it_is(_: ToolQuestion) -> str:
    return ""

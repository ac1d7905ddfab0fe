"""The functions for people who build agents, in both colours: a blocking agent gets results, an asyncio agent awaits
them.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, overload

from a2c_smcp.agent.client import AsyncSMCPAgentClient
from a2c_smcp.agent.for_models.sizing import MODEL_SIZE
from a2c_smcp.agent.llm.context import DEFAULT_BUDGET, LEAST_BUDGET, OfficeContext, context_of
from a2c_smcp.agent.llm.running import (
    DEFAULT_APPROVAL_SECONDS,
    DEFAULT_TOOL_SECONDS,
    CallEvents,
    ModelOffice,
    TurnOptions,
    model_office,
)
from a2c_smcp.agent.llm.styles import Style, checked_style
from a2c_smcp.agent.questions import QuestionCallback
from a2c_smcp.agent.sync_client import SMCPAgentClient

__all__ = ["office_context", "office_tools", "run_tool_calls"]


@overload
def office_tools(
    agent: AsyncSMCPAgentClient, style: Style, *, search: bool | None = None
) -> Coroutine[Any, Any, list[dict[str, Any]]]: ...
@overload
def office_tools(agent: SMCPAgentClient, style: Style, *, search: bool | None = None) -> list[dict[str, Any]]: ...
def office_tools(agent: AsyncSMCPAgentClient | SMCPAgentClient, style: Style, *, search: bool | None = None) -> Any:
    """The tools of the office, in the shape that the SDK of `style` takes as `tools`.

    `style` is `openai` (chat completions, of any compatible service), `openai-responses`, `anthropic` or `gemini`. For
    `gemini` it is a list of function declarations: `tools=[{"function_declarations": …}]`.

    Beside the tools of the computers, called `<computer>__<tool>`, there are tools of the office itself: to see
    desktops, to find and read documents, and to read on in results. If the computers have 40 tools or more, the list
    has a search for tools instead of them. `search=True` always gives the search, and `search=False` never. OpenAI
    takes at most 128 tools, so `search=False` is for offices that have fewer.

    Ask again before each request: tools come and go. The order changes only when the tools do, so that prompt caches
    stay valid.
    """
    wanted = checked_style(style)
    return _in_its_colour(agent, lambda office: office.tools(wanted, search))


@overload
def run_tool_calls(
    agent: AsyncSMCPAgentClient,
    message: Any,
    *,
    style: Style | None = None,
    budget: int = MODEL_SIZE,
    timeout: int = DEFAULT_TOOL_SECONDS,
    approval_timeout: int | None = DEFAULT_APPROVAL_SECONDS,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    events: CallEvents | None = None,
    on_question: QuestionCallback | None = None,
    images: bool = True,
) -> Coroutine[Any, Any, list[Any]]: ...
@overload
def run_tool_calls(
    agent: SMCPAgentClient,
    message: Any,
    *,
    style: Style | None = None,
    budget: int = MODEL_SIZE,
    timeout: int = DEFAULT_TOOL_SECONDS,
    approval_timeout: int | None = DEFAULT_APPROVAL_SECONDS,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    events: CallEvents | None = None,
    on_question: QuestionCallback | None = None,
    images: bool = True,
) -> list[Any]: ...
def run_tool_calls(
    agent: AsyncSMCPAgentClient | SMCPAgentClient,
    message: Any,
    *,
    style: Style | None = None,
    budget: int = MODEL_SIZE,
    timeout: int = DEFAULT_TOOL_SECONDS,
    approval_timeout: int | None = DEFAULT_APPROVAL_SECONDS,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    events: CallEvents | None = None,
    on_question: QuestionCallback | None = None,
    images: bool = True,
) -> Any:
    """Run the tools that a model asked for, all at the same time, and return the messages to append to the
    conversation: the model's own message, and the answers. The list is empty if the model asked for no tool.

    `message` is what the SDK returned: the whole answer or its message, an object or a dict. A streamed answer may be
    what the SDK assembled, or the list of its chunks (`openai` and `gemini`) or events (`openai-responses`). The style
    is recognised by the shape of the message, unless `style` names it.

    A tool that fails raises nothing: the model gets an answer in words that help it. `budget` is how many characters
    one result may have, at least 500. The model reads the rest of a longer result with the tool `read_more`. If there
    are more than four results, they share four budgets. All results share the room for images and documents. With
    `images=False`, for models that take text only, images and documents are mentioned in words.

    `timeout` is how many seconds a tool may take, and `approval_timeout` how many a person may take to agree to a call.
    `functions` are functions of your own that the model may call, by name; give the model their definitions, too. They
    have no limit of time. `events` tells what happens, and `on_question` answers questions of tools, as in `call_tool`.
    Cancelling the task that waits here cancels the calls at the computers.
    """
    options = TurnOptions(
        None if style is None else checked_style(style),
        budget,
        timeout,
        approval_timeout,
        functions or {},
        events or CallEvents(),
        on_question,
        images,
    )
    return _in_its_colour(agent, lambda office: office.run(message, options))


@overload
def office_context(
    agent: AsyncSMCPAgentClient,
    *,
    budget: int = DEFAULT_BUDGET,
    task: str | None = None,
    since: OfficeContext | None = None,
) -> Coroutine[Any, Any, OfficeContext]: ...
@overload
def office_context(
    agent: SMCPAgentClient, *, budget: int = DEFAULT_BUDGET, task: str | None = None, since: OfficeContext | None = None
) -> OfficeContext: ...
def office_context(
    agent: AsyncSMCPAgentClient | SMCPAgentClient,
    *,
    budget: int = DEFAULT_BUDGET,
    task: str | None = None,
    since: OfficeContext | None = None,
) -> Any:
    """What is going on in the office: its `text` is for a system prompt, at most `budget` characters.

    It names the computers with their states, and the documents that match the words of `task` (without a task the
    newest). It shows the windows, the most important first. A budget of less than 400 raises `ValueError`.

    The text is the same as long as nothing changes, and what changes often is at its end: so prompt caches stay valid.
    `since` is the context of the last turn. With it, `changes` is a short note of what is different now, or empty. To
    keep a system prompt in the cache, leave it as it is, and put this note before the next message of the user.
    """
    if budget < LEAST_BUDGET:
        raise ValueError(f"a context needs a budget of at least {LEAST_BUDGET} characters, not {budget}")
    return _in_its_colour(agent, lambda office: context_of(office.office, budget, task, since))


def _in_its_colour(agent: AsyncSMCPAgentClient | SMCPAgentClient, work: Callable[[ModelOffice], Awaitable[Any]]) -> Any:
    """The coroutine for an asyncio agent. For a blocking agent it runs in the agent's thread, and its result is
    returned.
    """
    client = agent if isinstance(agent, AsyncSMCPAgentClient) else agent._client

    async def run() -> Any:
        return await work(model_office(client))

    return run() if isinstance(agent, AsyncSMCPAgentClient) else agent._run(run)

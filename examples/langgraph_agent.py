"""An agent on LangGraph: a model that has every tool of the office, and a node that runs what the model asked for.

graph = office_graph(agent, ChatOpenAI(model="…"))
answer = await graph.ainvoke({"messages": [("user", "What is on the screen of the laptop?")]})
"""

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import convert_to_openai_messages
from langgraph.graph import START, MessagesState, StateGraph

from a2c_smcp.agent import AsyncSMCPAgentClient
from a2c_smcp.agent.llm import office_tools, run_tool_calls


def office_graph(agent: AsyncSMCPAgentClient, model: BaseChatModel) -> Any:
    """The graph: the model, then its tools, until the model asks for none."""

    async def think(state: MessagesState) -> dict[str, Any]:
        tools = await office_tools(agent, "openai")  # asked again every time: tools come and go
        return {"messages": [await model.bind_tools(tools).ainvoke(state["messages"])]}

    async def act(state: MessagesState) -> dict[str, Any]:
        asked = convert_to_openai_messages(state["messages"][-1])
        _, *answers = await run_tool_calls(agent, asked, style="openai")
        return {"messages": answers}

    def has_calls(state: MessagesState) -> str:
        return "act" if getattr(state["messages"][-1], "tool_calls", None) else "__end__"

    graph = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_node("act", act)
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", has_calls, ["act", "__end__"])
    graph.add_edge("act", "think")
    return graph.compile()

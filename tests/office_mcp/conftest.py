"""The offices and the scripted computers of the agents' tests."""

from tests.agent.conftest import agents_async_server, make_agent, make_computer, office, server, stack

__all__ = ["agents_async_server", "make_agent", "make_computer", "office", "server", "stack"]

"""An extension of griffe, which reads our docstrings for the API reference without running the code.

The blocking agent takes signatures and docstrings from the asyncio agent when it is imported. This does the same for
the pages, so that the two agents read alike there.
"""

from typing import Any

import griffe

__all__ = ["BlockingAgentDocs"]


class BlockingAgentDocs(griffe.Extension):
    """Fills in the members of `SMCPAgentClient` that have no docstring."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        if pkg.name != "a2c_smcp":
            return
        blocking, asynchronous = pkg["agent.sync_client.SMCPAgentClient"], pkg["agent.client.AsyncSMCPAgentClient"]
        for name, member in list(blocking.members.items()):
            if member.has_docstring or name not in asynchronous.members:
                continue
            model = asynchronous.members[name]
            if member.is_attribute and model.is_function:
                parameters, returns = model.parameters, model.returns
                member = griffe.Function(name, lineno=member.lineno, parameters=parameters, returns=returns)
                blocking.set_member(name, member)
            member.docstring = model.docstring

"""Makes places that answer decisions from the two callbacks that a program may give a Computer."""

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeAlias

import anyio.to_thread

from a2c_smcp.computer.decisions.book import Accepted, Confirmation, Decision, DecisionAnswer, Declined, MissingInput
from a2c_smcp.computer.decisions.store import AskHandler
from a2c_smcp.computer.inputs.base import BaseInputResolver
from a2c_smcp.errors import InputNotFoundError
from a2c_smcp.types import SERVER_NAME, TOOL_NAME

__all__ = ["ConfirmCallback", "confirming", "resolving"]

#: Called with `(req_id, server, tool, params)`. If it returns `True`, the call runs. If no person answers, it raises
#: `TimeoutError`. If it is not async, it runs in a thread. Just before the call's deadline it is cancelled. For a read
#: that a rule asks about, the tool is `read window` or the like.
ConfirmCallback: TypeAlias = Callable[[str, SERVER_NAME, TOOL_NAME, dict[str, Any]], bool | Awaitable[bool]]


def confirming(callback: ConfirmCallback) -> AskHandler:
    """Ask this callback for confirmations. Only `True` is a yes, so that a callback without a `return` refuses."""

    async def ask(decision: Decision) -> DecisionAnswer | None:
        assert isinstance(decision, Confirmation)
        call = decision.call
        tool = call.name if decision.reads is not None else call.tool or ""
        asking = partial(callback, call.req_id, call.server or "", tool, dict(call.arguments))
        try:
            if inspect.iscoroutinefunction(callback):
                answer: object = asking()
            else:
                # It may wait for a person. The event loop and the call's deadline must not wait for it.
                answer = await anyio.to_thread.run_sync(asking, abandon_on_cancel=True)
            answer = await answer if inspect.isawaitable(answer) else answer
        except TimeoutError:
            return None
        return Accepted() if answer is True else Declined()

    return ask


def resolving(resolver: BaseInputResolver) -> AskHandler:
    """Ask this resolver for inputs. If it raises `InputNotFoundError`, it has no answer."""

    async def ask(decision: Decision) -> DecisionAnswer | None:
        assert isinstance(decision, MissingInput)
        try:
            return Accepted(await resolver.resolve(decision.definition))
        except InputNotFoundError:
            return None

    return ask

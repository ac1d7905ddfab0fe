"""The two callbacks that a program may give a Computer, as places that answer decisions: one of several."""

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

#: Called with `(req_id, server, tool, params)`; `True` runs the call. A callback that is not async runs in a thread. It
#: has until just before the call's deadline, then it is cancelled. It raises `TimeoutError` if no person answered.
ConfirmCallback: TypeAlias = Callable[[str, SERVER_NAME, TOOL_NAME, dict[str, Any]], bool | Awaitable[bool]]


def confirming(callback: ConfirmCallback) -> AskHandler:
    """Ask this callback for confirmations. Only `True` is a yes: a callback that forgets to return refuses."""

    async def ask(decision: Decision) -> DecisionAnswer | None:
        assert isinstance(decision, Confirmation)
        call = decision.call
        asking = partial(callback, call.req_id, call.server or "", call.tool or "", dict(call.arguments))
        try:
            if inspect.iscoroutinefunction(callback):
                answer: object = asking()
            else:
                # It may block on a person; the loop, and the call's deadline, must not wait for that.
                answer = await anyio.to_thread.run_sync(asking, abandon_on_cancel=True)
            answer = await answer if inspect.isawaitable(answer) else answer
        except TimeoutError:
            return None
        return Accepted() if answer is True else Declined()

    return ask


def resolving(resolver: BaseInputResolver) -> AskHandler:
    """Ask this resolver for inputs. One that raises `InputNotFoundError` has no answer."""

    async def ask(decision: Decision) -> DecisionAnswer | None:
        assert isinstance(decision, MissingInput)
        try:
            return Accepted(await resolver.resolve(decision.definition))
        except InputNotFoundError:
            return None

    return ask

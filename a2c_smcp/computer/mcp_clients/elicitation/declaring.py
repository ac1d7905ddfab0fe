"""What we declare to MCP servers: which of their questions a person answers, while there is such a person.

This matters, because a server that cannot ask may act without asking. mcp's client always declares what it has a
callback for. Here that declaration is removed if nobody would answer.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import anyio
from anyio.abc import TaskStatus
from mcp_types import CLIENT_CAPABILITIES_META_KEY

from a2c_smcp.computer.mcp_clients.elicitation.asking import ALL_MODES, NO_MODES, QuestionMode
from a2c_smcp.computer.mcp_clients.mcp_internals import (
    CallOptions,
    Dispatcher,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
)

__all__ = ["ANSWERED_KEY", "DeclaringDispatcher", "capability", "declared"]

_ELICITATION: Final = "elicitation"
#: In the `_meta` of one request, and never sent: the questions that its agent answers.
ANSWERED_KEY: Final = "a2c_smcp/answered"


def capability(modes: frozenset[QuestionMode]) -> dict[str, Any]:
    """The capability as MCP spells it: forms to fill in, and URLs to visit. Empty if nobody answers."""
    return {_ELICITATION: {mode: {} for mode in sorted(modes)}} if modes else {}


def declared(method: str, params: Mapping[str, Any] | None, modes: frozenset[QuestionMode]) -> Mapping[str, Any] | None:
    """The parameters of a request of mcp's client, with those questions declared that somebody answers.

    Before 2026-07-28 the handshake declares it for the whole session. Since then every request does.
    """
    # Windows and documents are read in the background: nobody is asked about that.
    if method == "resources/read":
        modes = NO_MODES
    if params is not None and (others := _answered_elsewhere(params)):
        params, modes = _without_others(params), modes | others
    if params is None or modes == ALL_MODES:
        return params
    if method == "initialize":
        return {**params, "capabilities": _with_questions(params.get("capabilities"), modes)}
    meta = params.get("_meta")
    if not isinstance(meta, Mapping) or CLIENT_CAPABILITIES_META_KEY not in meta:
        return params
    capabilities = _with_questions(meta[CLIENT_CAPABILITIES_META_KEY], modes)
    return {**params, "_meta": {**meta, CLIENT_CAPABILITIES_META_KEY: capabilities}}


def _answered_elsewhere(params: Mapping[str, Any]) -> frozenset[QuestionMode]:
    meta = params.get("_meta")
    return frozenset(meta.get(ANSWERED_KEY, ())) if isinstance(meta, Mapping) else NO_MODES


def _without_others(params: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**params, "_meta": {key: value for key, value in params["_meta"].items() if key != ANSWERED_KEY}}


def _with_questions(capabilities: Mapping[str, Any] | None, modes: frozenset[QuestionMode]) -> dict[str, Any]:
    others = {key: value for key, value in (capabilities or {}).items() if key != _ELICITATION}
    return {**others, **capability(modes)}


class DeclaringDispatcher(Dispatcher[Any]):
    """The dispatcher for mcp's session: it sends `declared` requests over the dispatcher of the transport.

    `declares` says for a method which questions somebody answers now.
    """

    def __init__(self, inner: Dispatcher[Any], declares: Callable[[str], frozenset[QuestionMode]]) -> None:
        self._inner = inner
        self._declares = declares

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        return await self._inner.send_raw_request(method, declared(method, params, self._declares(method)), opts)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        await self._inner.notify(method, params, opts)

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        await self._inner.run(on_request, on_notify, on_notify_intercept, task_status=task_status)

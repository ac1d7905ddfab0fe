"""Asks the person at the terminal whether an agent's call may run: who asks, which tool, which arguments."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import anyio

from a2c_smcp.computer.approvals import CALLING_AGENT
from a2c_smcp.computer.cli.output import Output, printable, quoted
from a2c_smcp.computer.cli.terminal import Terminal
from a2c_smcp.types import SERVER_NAME, TOOL_NAME

__all__ = ["Confirmations"]

_CHOICES: Final = {"y": "yes", "yes": "yes", "n": "no", "no": "no", "a": "always", "always": "always"}


class Confirmations:
    """The `confirm_callback` of a Computer at a terminal is `ask`. With `yes`, every call may run."""

    def __init__(self, terminal: Terminal, output: Output, *, yes: bool = False) -> None:
        self._terminal = terminal
        self._output = output
        self._yes = yes
        self._always: set[tuple[SERVER_NAME, TOOL_NAME]] = set()
        self._own: set[str] = set()

    @contextmanager
    def own(self, req_id: str) -> Iterator[None]:
        """While inside, this is a call that the person made: it needs no confirmation."""
        self._own.add(req_id)
        try:
            yield
        finally:
            self._own.discard(req_id)

    async def ask(self, req_id: str, server: SERVER_NAME, tool: TOOL_NAME, params: dict[str, Any]) -> bool:
        """Whether this call may run. The Computer cancels the question when no answer comes in time."""
        if self._yes or req_id in self._own or (server, tool) in self._always:
            return True
        deadline = anyio.current_effective_deadline()
        try:
            async with self._terminal.turn():
                # Perhaps answered while this one waited for its turn.
                return (server, tool) in self._always or await self._ask(req_id, server, tool, params)
        except anyio.get_cancelled_exc_class():
            if anyio.current_time() >= deadline:
                self._output.text(f"Nobody answered in time: {printable(tool)} is not run.")
            raise

    async def _ask(self, req_id: str, server: SERVER_NAME, tool: TOOL_NAME, params: dict[str, Any]) -> bool:
        agent = CALLING_AGENT.get(None)
        left = anyio.current_effective_deadline() - anyio.current_time()
        seconds = None if math.isinf(left) else round(left, 1)
        within = "" if seconds is None else f" within {seconds:.0f} s"
        self._output.event(
            "confirm_request",
            f"{printable(agent or 'an agent')} asks to run {printable(tool)} of {printable(server)} with\n"
            + quoted(json.dumps(params, indent=2, ensure_ascii=False)),
            req_id=req_id,
            agent=agent,
            server=server,
            tool=tool,
            params=params,
            seconds=seconds,
        )
        try:
            answer = await self._terminal.choose(f"Run it? y(es), n(o), a(lways){within}: ", _CHOICES)
        except (KeyboardInterrupt, EOFError):
            return False
        if answer == "always":
            self._always.add((server, tool))
        return answer != "no"

"""Shows a call from the prompt while it runs: a line for people, and `tool_call_progress` lines for programs."""

import time
from types import TracebackType
from typing import Self

from a2c_smcp.computer.calls.progress import PROGRESS_SECONDS
from a2c_smcp.computer.cli.output import Output
from a2c_smcp.terminal.progress_line import progress_line
from a2c_smcp.utils.latest import LatestOnly

__all__ = ["ShownCall"]


class ShownCall:
    """`async with` it while the call runs. `take` is the call's `on_progress`; `line` is what the terminal shows."""

    def __init__(self, output: Output, req_id: str, tool: str) -> None:
        self._output = output
        self._req_id = req_id
        self._tool = tool
        self._report = ""
        self._began = time.monotonic()
        self._paced = LatestOnly(self._print, PROGRESS_SECONDS)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            await self._paced.end()
        else:
            self._paced.stop()

    def take(self, progress: float, total: float | None, message: str | None) -> None:
        self._report = progress_line(progress, total, message)
        self._paced.put(progress, total, message)

    def line(self) -> str:
        """The tool, its seconds, and its progress if it reports any. Empty at first: a short call shows no line."""
        seconds = time.monotonic() - self._began
        if seconds < 0.3:
            return ""
        return f"{self._tool}  {int(seconds)} s  {self._report}".rstrip()

    async def _print(self, progress: float, total: float | None, message: str | None) -> None:
        self._output.event(
            "tool_call_progress",
            req_id=self._req_id,
            tool=self._tool,
            progress=progress,
            total=total,
            message=message,
        )

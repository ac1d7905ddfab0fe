"""VRL: a program in a server's config transforms what the server's tools return. Needs the extra `vrl`.

The library holds the GIL while a program runs, so programs run in a worker process. The worker is killed at the
deadline and aborts when it needs too much memory; the next call then starts a new one. When a program fails, that is
logged, and the result stays as it was.
"""

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from mcp_types import CallToolResult

from a2c_smcp.results import VRL_MARKER, to_wire, with_markers
from a2c_smcp.types import TOOL_NAME
from a2c_smcp.utils.kept_child import ChildOutOfMemoryError, KeptChild
from a2c_smcp.utils.serving_child import ChildBounds

__all__ = ["VRLWorker"]

logger = logging.getLogger(__name__)

# By its file, not as a module: importing the packages around it would cost the worker a second.
_WORKER: Final = (str(Path(__file__).with_name("worker.py")),)


class VRLWorker(KeptChild):
    """One worker process, started by the first transformation, closed with `aclose`. It runs one program at a time.

    `deadline` is how many seconds a run may take, `memory` how many bytes the worker may use: a result that is one text
    of 16 MiB needs 550 MiB. `quote` redacts the message of a failure: it may quote the program.
    """

    def __init__(self, deadline: float = 5.0, quote: Callable[[object], str] = str, memory: int = 768 * 2**20) -> None:
        super().__init__(_WORKER, ChildBounds(memory, deadline, 64 * 2**20))
        self._quote = quote

    async def transform(
        self, program: str, result: CallToolResult, tool_name: TOOL_NAME, parameters: Mapping[str, Any]
    ) -> CallToolResult:
        """The result, with the output of the program in its meta.

        An error result comes back as it was, and so does any result when the program fails.
        """
        if result.is_error:
            return result
        event = {**to_wire(result), "tool_name": tool_name, "parameters": dict(parameters)}
        answer = await self._run(program, event)
        if "error" in answer:
            logger.warning("VRL left the result of %s alone: %s", tool_name, self._quote(_first_line(answer["error"])))
            return result
        return with_markers(result, {VRL_MARKER: json.dumps(answer["event"], ensure_ascii=False)})

    async def _run(self, program: str, event: Mapping[str, Any]) -> dict[str, Any]:
        """A dict with the `event` that the program made, or with an `error` in words."""
        try:
            async with self.exchange({"program": program, "event": event}) as next_answer:
                answer: dict[str, Any] = await next_answer()
                return answer
        except TimeoutError:
            return {"error": f"it took longer than {self.bounds.answer_seconds:g} s"}
        except ChildOutOfMemoryError:
            return {"error": f"it took more than {self.bounds.memory_bytes // 2**20} MiB of memory"}
        except (OSError, RuntimeError, ValueError, TypeError) as error:
            # The worker ended or is closed, the answer is too large, or the event cannot be written as JSON.
            return {"error": str(error)}


def _first_line(text: str) -> str:
    return next(filter(None, map(str.strip, text.splitlines())), "")[:200]

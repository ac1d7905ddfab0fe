"""VRL: a config's program that transforms what its server's tools return. Needs the extra `vrl`.

The library holds the GIL while a program runs, so programs run in a kept worker process, which is killed at the
deadline, aborts when it needs too much memory, and is replaced by the next call. A program that fails never harms a
result: it is logged, and the result stays.
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

__all__ = ["VRL_MEMORY", "VRL_SECONDS", "VRLWorker"]

logger = logging.getLogger(__name__)

#: How long one run of a program may take.
VRL_SECONDS: Final = 5.0
#: How many bytes of memory the worker may have. A result of 16 MiB that is one text takes 550 MiB there and back.
VRL_MEMORY: Final = 768 * 1024 * 1024

# By its file, not as a module: importing the packages around it would cost the worker a second.
_WORKER: Final = (str(Path(__file__).with_name("worker.py")),)
_LARGEST_ANSWER: Final = 64 * 2**20


class VRLWorker(KeptChild):
    """One worker process, started by the first transformation, closed with `aclose`; runs one program at a time.

    `quote` is how a program's failure is logged, which may quote the program. `memory` are the bytes of memory that
    the worker may have.
    """

    def __init__(
        self, deadline: float = VRL_SECONDS, quote: Callable[[object], str] = str, memory: int = VRL_MEMORY
    ) -> None:
        super().__init__(_WORKER, ChildBounds(memory, deadline, _LARGEST_ANSWER))
        self._quote = quote

    async def transform(
        self, program: str, result: CallToolResult, tool_name: TOOL_NAME, parameters: Mapping[str, Any]
    ) -> CallToolResult:
        """The result with what the program made of it in its meta.

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
        """The `event` that the program made, or an `error` in words."""
        try:
            async with self.exchange({"program": program, "event": event}) as next_answer:
                answer: dict[str, Any] = await next_answer()
                return answer
        except TimeoutError:
            return {"error": f"it took longer than {self.bounds.answer_seconds:g} s"}
        except ChildOutOfMemoryError:
            return {"error": f"it took more than {self.bounds.memory_bytes // 2**20} MiB of memory"}
        except (OSError, RuntimeError, ValueError, TypeError) as error:
            # The worker ended or is closed, the answer is larger than any result may be, or the event is no JSON.
            return {"error": str(error)}


def _first_line(text: str) -> str:
    return next(filter(None, map(str.strip, text.splitlines())), "")[:200]

"""The worker process of `programs`: runs VRL programs. Knows nothing of tools.

A request is `{"program", "event"}`, its answer `{"event"}` or `{"error"}`.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from vrl_python import VRLRuntime

from a2c_smcp.utils.serving_child import serve


def _answers(runtime: VRLRuntime, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    try:
        yield {"event": runtime.execute(request["program"], request["event"]).processed_event}
    except MemoryError:
        raise
    except Exception as error:  # a boundary: the next request must be answered
        yield {"error": str(error)}


if __name__ == "__main__":
    serve(partial(_answers, VRLRuntime()))

"""A child that reads the same words in every picture, and dies of the picture whose bytes are `die`."""

import base64
import os
from collections.abc import Iterator
from typing import Any

from a2c_smcp.utils.serving_child import serve


def answers(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if base64.b64decode(request["picture"]) == b"die":
        os._exit(1)
    yield {"lines": [["A scanned line", 0, 0, 1, 0.1], ["and another", 0, 0.1, 1, 0.2]]}


if __name__ == "__main__":
    serve(answers)

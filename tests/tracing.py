"""Which functions of ours are entered, in every thread that starts meanwhile. Slow: for a few calls, not for many."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import a2c_smcp

_PACKAGE = Path(a2c_smcp.__file__).parent
_OURS = str(_PACKAGE) + "/"


class Trace:
    """The names of the functions that were entered, the first time of each since the last `begin`."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self._known: dict[Any, str | None] = {}

    def begin(self) -> None:
        self.names = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            code = frame.f_code
            try:
                name = self._known[code]
            except KeyError:
                name = self._known[code] = _name(code.co_filename, code.co_qualname)
            if name is not None:
                self.names.setdefault(name)


def _name(file: str, qualname: str) -> str | None:
    if not file.startswith(_OURS):
        return None
    module = ".".join(Path(file).relative_to(_PACKAGE).with_suffix("").parts)
    return f"{module}.{qualname}"


@contextmanager
def tracing() -> Iterator[Trace]:
    trace = Trace()
    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        yield trace
    finally:
        sys.setprofile(None)
        threading.setprofile(None)

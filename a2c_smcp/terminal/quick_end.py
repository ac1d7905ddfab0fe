"""How a command begins and ends: without searches for garbage that cannot be there. Knows nothing of what it does."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["quick_end", "quick_imports"]

#: How many objects more there are before Python searches for garbage; it says 700. Sixty calls at once are more than
#: that, and none of it is garbage.
_SEARCHED_AT: Final = 10_000


@contextmanager
def quick_imports() -> Iterator[None]:
    """Import without searching for garbage, which is a fifth of the time with all of MCP: modules stay.

    Later searches leave out what is there by now, and are seldom.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(_SEARCHED_AT, *gc.get_threshold()[1:])
        gc.enable()


@contextmanager
def quick_end() -> Iterator[None]:
    """End the process without a last search for garbage, which takes half a second of CPU with all of MCP in memory:
    on a busy machine a computer that has stopped everything would be there for many seconds more.
    """
    try:
        yield
    finally:
        gc.freeze()

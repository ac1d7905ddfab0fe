"""Starts and ends a command quickly: without searches for garbage where there can be none."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["quick_end", "quick_imports"]


@contextmanager
def quick_imports() -> Iterator[None]:
    """Import without searching for garbage, which takes a fifth of the time with all of MCP: modules are not garbage.

    Later searches leave out the objects that are there now. They come after 10,000 new objects instead of Python's 700:
    sixty calls at once make more than 700, and none of that is garbage.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(10_000, *gc.get_threshold()[1:])
        gc.enable()


@contextmanager
def quick_end() -> Iterator[None]:
    """End the process without a last search for garbage. With all of MCP in memory it takes half a second of CPU, which
    on a busy machine may be many seconds.
    """
    try:
        yield
    finally:
        gc.freeze()

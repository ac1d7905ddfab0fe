"""Callbacks: one that does nothing, and one that does not keep its object alive."""

import weakref
from collections.abc import Callable
from typing import ParamSpec

__all__ = ["ignore", "weakly"]

_P = ParamSpec("_P")


def ignore(*_: object) -> None:
    """The callback of a caller that wants to hear nothing."""


def weakly(method: Callable[_P, None]) -> Callable[_P, None]:
    """A function that calls this bound method, and does nothing once the object of the method is gone."""
    found = weakref.WeakMethod(method)

    def call(*args: _P.args, **kwargs: _P.kwargs) -> None:
        if (bound := found()) is not None:
            bound(*args, **kwargs)

    return call

"""Whether a value fulfils a condition: yes, no, or nobody can say. Pure."""

from collections.abc import Iterator
from enum import Enum

__all__ = ["Fit", "all_of", "any_of"]


class Fit(Enum):
    HOLDS = "holds"
    FAILS = "fails"
    MISFIT = "misfit"
    """The value has another type, or cannot be understood for certain."""


def all_of(fits: Iterator[Fit]) -> Fit:
    """Whether all hold. One that fails decides."""
    found = Fit.HOLDS
    for fit in fits:
        if fit is Fit.FAILS:
            return fit
        if fit is Fit.MISFIT:
            found = fit
    return found


def any_of(fits: Iterator[Fit]) -> Fit:
    """Whether at least one holds. One that holds decides."""
    found = Fit.FAILS
    for fit in fits:
        if fit is Fit.HOLDS:
            return fit
        if fit is Fit.MISFIT:
            found = fit
    return found

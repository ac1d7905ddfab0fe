"""The problems that pydantic found: the field and a sentence; never the value, which may be a secret or a megabyte."""

from typing import Annotated, TypeAlias

from pydantic import Field, ValidationError

__all__ = ["Patterns", "first_problem", "sentence"]

#: A field for names, or patterns of `fnmatch`. An empty list would match nothing, so it is a mistake.
Patterns: TypeAlias = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]


def first_problem(error: ValidationError) -> tuple[str, str]:
    """The first wrong field, and its problem."""
    return _problems(error)[0]


def sentence(error: ValidationError, whole: str, most: int = 100) -> str:
    """All problems, at most `most` of them. `whole` stands for a problem that is not in one field."""
    return "; ".join(f"{field or whole}: {message}" for field, message in _problems(error)[:most])


def _problems(error: ValidationError) -> list[tuple[str, str]]:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [(".".join(map(str, problem["loc"]))[:200], problem["msg"]) for problem in found]

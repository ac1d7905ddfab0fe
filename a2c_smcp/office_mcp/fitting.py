"""Whether arguments fit the schema of a tool. Pure."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

__all__ = ["misfit"]


def misfit(schema: Mapping[str, Any], arguments: Any) -> str | None:
    """What is wrong with arguments, in a sentence; `None` if nothing is, or if the schema makes no sense."""
    from jsonschema import exceptions

    try:
        problem = exceptions.best_match(_validator(schema).iter_errors(arguments))
    except Exception:
        # A schema is other people's, and may be anything: then its own server says what it does not like.
        return None
    if problem is None:
        return None
    place = ".".join(map(str, problem.absolute_path))
    message = problem.message if len(problem.message) <= 300 else problem.message[:300] + "…"
    return f"{place}: {message}" if place else message


def _validator(schema: Mapping[str, Any]) -> Any:
    from jsonschema import validators
    from referencing import Registry

    kind = validators.validator_for(schema, default=validators.Draft202012Validator)
    kind.check_schema(schema)
    # An empty registry: a reference to another place is not fetched.
    return _careful(kind)(schema, registry=Registry())


@lru_cache(maxsize=16)
def _careful(kind: Any) -> Any:
    """A validator that leaves patterns to the tool's server: one of them could hold this process for ever."""
    from jsonschema import validators

    additional = kind.VALIDATORS.get("additionalProperties")

    def without_patterns(validator: Any, value: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
        if additional is not None and "patternProperties" not in schema:
            yield from additional(validator, value, instance, schema) or ()

    def nothing(*_: Any) -> Iterator[Any]:
        return iter(())

    return validators.extend(
        kind, {"pattern": nothing, "patternProperties": nothing, "additionalProperties": without_patterns}
    )

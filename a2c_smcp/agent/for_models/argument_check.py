"""The arguments that a model wrote: read as an object, and checked against the schema of the tool. Pure.

We use one undocumented thing of jsonschema, and `test_argument_check.py` names it: for a part of a schema that names
its dialect, a validator calls `evolve` to get the validator of that dialect. We override it, because that validator
would have no limit on its steps.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from a2c_smcp.terminal.suggestions import near_names
from a2c_smcp.utils.text import cut

__all__ = ["argument_object", "argument_problem", "misnamed_arguments"]

#: How many keywords are checked at most: a short schema can demand more checks than anybody could wait for.
_MOST_STEPS: Final = 20_000
#: How many names are compared with each other.
_MOST_NAMES: Final = 50
_steps: ContextVar[int] = ContextVar("a2c_smcp_schema_steps")
#: These are left to the tool's server: one pattern could run for ever, and unevaluated items take unbounded time.
_LEFT_TO_THE_SERVER: Final = ("pattern", "patternProperties", "unevaluatedProperties", "unevaluatedItems")


class _EndlessSchemaError(Exception):
    """The schema needs more checks than the limit."""


def argument_object(value: Any) -> Mapping[str, Any] | None:
    """The arguments of a call as an object; `None` if they are not one. Some models and APIs write them as a text that
    holds JSON, and nothing stands for no arguments.
    """
    if value is None or value == "":
        return {}
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    if isinstance(value, Mapping):
        return value
    # Some SDKs have maps of their own, which are not registered as such.
    return dict(value) if isinstance(value, Iterable) and hasattr(value, "keys") else None


def argument_problem(schema: Mapping[str, Any], arguments: Any) -> str | None:
    """What is wrong with the arguments, in a sentence; `None` if they fit, or if the schema makes no sense."""
    from jsonschema import exceptions

    try:
        validator = _validator(schema)
        _steps.set(_MOST_STEPS)
        problem = exceptions.best_match(validator.iter_errors(arguments))
    except Exception:
        # Strangers write schemas, and a schema may be anything. Then the tool's own MCP server checks the arguments.
        return None
    if problem is None:
        return None
    place = ".".join(map(str, problem.absolute_path))
    message = cut(problem.message, 300)
    said = f"{place}: {message}" if place else message
    return "; ".join([said, *misnamed_arguments(schema, arguments)])


def misnamed_arguments(schema: Mapping[str, Any], arguments: Any) -> list[str]:
    """For each argument that the schema does not have, and that looks like one which is missing: what was meant."""
    known = schema.get("properties")
    if not isinstance(known, Mapping) or not isinstance(arguments, Mapping) or len(known) > _MOST_NAMES:
        return []
    missing = [name for name in known if isinstance(name, str) and name not in arguments]
    unknown = [name for name in islice(arguments, _MOST_NAMES) if isinstance(name, str) and name not in known]
    meant = ((name, near_names(name, missing)) for name in unknown)
    return [f"there is no argument {cut(name, 100)!r}: did you mean {near[0]!r}?" for name, near in meant if near]


def _validator(schema: Mapping[str, Any]) -> Any:
    from jsonschema import validators
    from referencing import Registry

    kind = validators.validator_for(schema, default=validators.Draft202012Validator)
    _steps.set(_MOST_STEPS)
    _careful(kind)(kind.META_SCHEMA).validate(schema)
    # An empty registry: remote references are not fetched.
    return _careful(kind)(schema, registry=Registry())


@lru_cache(maxsize=16)
def _careful(kind: Any) -> Any:
    """A validator with a limit on its steps. It leaves the keywords that could run for ever to the tool's server."""
    from jsonschema import validators

    additional = kind.VALIDATORS.get("additionalProperties")

    def without_patterns(validator: Any, value: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
        if additional is not None and "patternProperties" not in schema:
            yield from additional(validator, value, instance, schema) or ()

    def nothing(*_: Any) -> Iterator[Any]:
        return iter(())

    checks = {
        **kind.VALIDATORS,
        "additionalProperties": without_patterns,
        **dict.fromkeys(_LEFT_TO_THE_SERVER, nothing),
    }
    careful: Any = validators.extend(kind, {keyword: _counted(check) for keyword, check in checks.items()})
    evolve = careful.evolve

    def stay_careful(self: Any, **changes: Any) -> Any:
        # jsonschema's own validator would check a part that names its dialect.
        schema = changes.get("schema", self.schema)
        if isinstance(schema, Mapping) and "$schema" in schema:
            changes["schema"] = {name: value for name, value in schema.items() if name != "$schema"}
        return evolve(self, **changes)

    careful.evolve = stay_careful
    return careful


def _counted(check: Callable[..., Any]) -> Callable[..., Any]:
    def one_step(validator: Any, value: Any, instance: Any, schema: Mapping[str, Any]) -> Any:
        left = _steps.get()
        if left <= 0:
            raise _EndlessSchemaError
        _steps.set(left - 1)
        return check(validator, value, instance, schema)

    return one_step

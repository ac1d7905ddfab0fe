"""The output schemas of a server's tools, and whether results keep to them. Pure."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mcp_types import CallToolResult, Tool

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

__all__ = ["OutputSchemas"]


class OutputSchemas:
    """The schemas of the tools that the server listed last."""

    def __init__(self) -> None:
        self._schemas: dict[str, dict[str, Any] | None] = {}
        self.unchecked: frozenset[str] = frozenset()
        """The listed tools without an output schema: their results are not checked."""
        self._validators: dict[str, Validator] = {}
        """Compiled schemas: to compile one takes sixty times as long as to use it."""

    def __contains__(self, tool: str) -> bool:
        return tool in self._schemas

    def note(self, tools: Sequence[Tool], *, are_all: bool) -> None:
        """Note a page of the list, or with `are_all` the whole list."""
        listed = {tool.name: tool.output_schema for tool in tools}
        for name in [name for name in self._validators if name in listed]:
            if not _are_equal(self._schemas.get(name), listed[name]):
                del self._validators[name]
        self._schemas = listed if are_all else {**self._schemas, **listed}
        self.unchecked = frozenset(name for name, schema in self._schemas.items() if schema is None)
        if are_all:
            self._validators = {name: found for name, found in self._validators.items() if name in listed}

    def check(self, tool: str, result: CallToolResult) -> None:
        """Raise `RuntimeError` if the result breaks the output schema of its tool."""
        if (schema := self._schemas.get(tool)) is None:
            return
        from jsonschema.exceptions import best_match
        from referencing.exceptions import Unresolvable

        if result.structured_content is None and "structured_content" not in result.model_fields_set:
            raise RuntimeError(f"Tool {tool} has an output schema but did not return structured content")
        errors = self._validator(tool, schema).iter_errors(result.structured_content)
        try:
            error = best_match(errors)
        except Unresolvable as problem:
            raise RuntimeError(f"Invalid schema for tool {tool}: {problem}") from problem
        if error is not None:
            raise RuntimeError(f"Invalid structured content returned by tool {tool}: {error}") from error

    def _validator(self, tool: str, schema: dict[str, Any]) -> "Validator":
        from jsonschema import SchemaError
        from jsonschema.validators import validator_for
        from referencing import Registry

        if (found := self._validators.get(tool)) is not None:
            return found
        kind = validator_for(schema)
        try:
            kind.check_schema(schema)
        except SchemaError as problem:
            raise RuntimeError(f"Invalid schema for tool {tool}: {problem}") from None
        # With an empty registry, no reference leads out of the schema: nothing is fetched.
        made = self._validators[tool] = kind(schema, registry=Registry())
        return made


def _are_equal(one: object, other: object) -> bool:
    """Whether two schemas are the same JSON: for Python, `True` equals 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)

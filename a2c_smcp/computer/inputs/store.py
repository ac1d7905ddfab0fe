"""The definitions of inputs and the values that are known: create, read, update, delete. Asks for no value.

Listeners are told the id of each input whose value may have changed, so that a restart of its servers can be offered.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from a2c_smcp.computer.config.problems import InvalidConfigError, Problem
from a2c_smcp.computer.inputs.base import check_value
from a2c_smcp.computer.mcp_clients.model import MCPServerInput
from a2c_smcp.errors import InputNotFoundError

__all__ = ["InputListener", "InputStore"]

InputListener: TypeAlias = Callable[[str], None]


class InputStore:
    """The inputs of one Computer. Changing one does not touch the values of the others."""

    def __init__(self, definitions: Iterable[MCPServerInput] = ()) -> None:
        self._definitions: dict[str, MCPServerInput] = {}
        self._values: dict[str, Any] = {}
        self._listeners: dict[object, InputListener] = {}
        for definition in definitions:
            self.add(definition)

    # --- definitions

    @property
    def definitions(self) -> Mapping[str, MCPServerInput]:
        """The definitions by id, in the order in which they were added. A view, not a copy."""
        return MappingProxyType(self._definitions)

    def definition(self, input_id: str) -> MCPServerInput:
        """The definition of an input, or `InputNotFoundError`."""
        try:
            return self._definitions[input_id]
        except KeyError:
            raise InputNotFoundError(input_id, "no input has this id") from None

    def add(self, definition: MCPServerInput) -> None:
        """Define a new input, or raise `InvalidConfigError` when its id is taken."""
        if definition.id in self._definitions:
            raise InvalidConfigError([Problem("there is another input with this id", "id", f"input {definition.id!r}")])
        self._definitions[definition.id] = definition
        self._tell(definition.id)

    def put(self, definition: MCPServerInput) -> None:
        """Define an input, or replace its definition. If the definition changes, the value is forgotten."""
        before = self._definitions.get(definition.id)
        if before == definition:
            return
        self._definitions[definition.id] = definition
        self._values.pop(definition.id, None)
        self._tell(definition.id)

    def remove(self, input_id: str) -> None:
        """Forget an input and its value, or raise `InputNotFoundError`."""
        self.definition(input_id)
        del self._definitions[input_id]
        self._values.pop(input_id, None)
        self._tell(input_id)

    # --- values

    @property
    def values(self) -> Mapping[str, Any]:
        """The values that are known, by id. They may be secrets: render with them, and do not show them."""
        return MappingProxyType(self._values)

    def set_value(self, input_id: str, value: Any) -> None:
        """Give an input a value. Raises `InputNotFoundError`, or `InputFailedError` if the value is not allowed."""
        check_value(self.definition(input_id), value)
        if input_id in self._values and self._values[input_id] == value:
            return
        self._values[input_id] = value
        self._tell(input_id)

    def clear_value(self, input_id: str) -> bool:
        """Forget a value: it is asked for when it is needed again. Returns whether there was one."""
        self.definition(input_id)
        if input_id not in self._values:
            return False
        del self._values[input_id]
        self._tell(input_id)
        return True

    def clear_values(self) -> None:
        """Forget all values: they are asked for when they are needed again."""
        for input_id in list(self._values):
            self.clear_value(input_id)

    def keep_answer(self, definition: MCPServerInput, value: Any) -> None:
        """Keep an answer, unless the input was defined anew, or got a value, meanwhile.

        Listeners are not told: the server that needed the value gets it, and no server used another value.
        """
        if self._definitions.get(definition.id) is definition:
            self._values.setdefault(definition.id, value)

    # --- listeners

    def subscribe(self, listener: InputListener) -> Callable[[], None]:
        """Call `listener` with the id of each input that changes, until the returned function is called."""
        token = object()
        self._listeners[token] = listener

        def unsubscribe() -> None:
            self._listeners.pop(token, None)

        return unsubscribe

    def _tell(self, input_id: str) -> None:
        for listener in tuple(self._listeners.values()):
            listener(input_id)

"""How inputs get their values: from the environment, the known values, a command, or a person. Each is asked once.

Knows no terminal and no window: a program that can ask a person hands in the last layer.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import anyio

from a2c_smcp.computer.config.problems import InvalidConfigError
from a2c_smcp.computer.inputs.base import BaseInputResolver, check_value
from a2c_smcp.computer.inputs.command import CommandInputResolver
from a2c_smcp.computer.inputs.env import EnvInputResolver, variable_of
from a2c_smcp.computer.inputs.render import ConfigRender
from a2c_smcp.computer.inputs.store import InputStore
from a2c_smcp.computer.mcp_clients.model import (
    MCPServerConfig,
    MCPServerInput,
    parse_server,
    parse_unrendered,
)
from a2c_smcp.computer.redaction import Redaction
from a2c_smcp.computer.utils.callbacks import ignore
from a2c_smcp.errors import InputNotFoundError

__all__ = ["CacheInputResolver", "CompositeResolver", "InputResolver"]

#: Called with a server and the input that it begins to wait for, and with `None` when it does not wait any more.
OnWaiting: TypeAlias = Callable[[str, str | None], None]


class CacheInputResolver(BaseInputResolver):
    """Answers with the values of the store, and gives the store the values that later layers found."""

    def __init__(self, store: InputStore) -> None:
        self._store = store

    async def resolve(self, definition: MCPServerInput) -> Any:
        try:
            return self._store.values[definition.id]
        except KeyError:
            raise InputNotFoundError(definition.id) from None

    def remember(self, definition: MCPServerInput, value: Any) -> None:
        self._store.keep_answer(definition, value)


class CompositeResolver(BaseInputResolver):
    """Several layers. The first one that has a value gives it, and those before it are told the value."""

    def __init__(self, layers: Sequence[BaseInputResolver]) -> None:
        self._layers = tuple(layers)

    async def resolve(self, definition: MCPServerInput) -> Any:
        for index, layer in enumerate(self._layers):
            try:
                value = await layer.resolve(definition)
            except InputNotFoundError:
                continue
            check_value(definition, value)
            for earlier in self._layers[:index]:
                earlier.remember(definition, value)
            return value
        raise InputNotFoundError(definition.id)


class _LastLayer(BaseInputResolver):
    """The layer that asks a person. `asks` is told when it begins to ask, and when it ends."""

    def __init__(self, layer: BaseInputResolver, asks: Callable[[str, bool], None]) -> None:
        self._layer = layer
        self._asks = asks

    async def resolve(self, definition: MCPServerInput) -> Any:
        self._asks(definition.id, True)
        try:
            return await self._layer.resolve(definition)
        finally:
            self._asks(definition.id, False)


@dataclass(slots=True)
class _OpenQuestion:
    """One input that is asked for, and the servers that wait for it. `None` stands for a caller that is not a
    server.
    """

    definition: MCPServerInput
    answer: asyncio.Task[Any]
    waiting: list[str | None] = field(default_factory=list)
    is_with_person: bool = False


class InputResolver:
    """Renders configs with the values of inputs. Each input is asked for once, even if many servers start together.

    `redaction` learns every value that was used, and takes it out of texts. `last` is the layer that can ask a person;
    without it, defaults are used. `on_waiting` is told which servers wait for that person; it must return at once.
    """

    def __init__(
        self,
        store: InputStore,
        last: BaseInputResolver | None = None,
        *,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._store = store
        self._environ = environ
        self._layers = CompositeResolver(
            [
                EnvInputResolver(environ),
                CacheInputResolver(store),
                CommandInputResolver(),
                *([] if last is None else [_LastLayer(last, self._person_asked)]),
            ]
        )
        self.on_waiting: OnWaiting = ignore
        self._questions: dict[str, _OpenQuestion] = {}
        self.redaction = Redaction()

    async def resolve(self, input_id: str, server: str | None = None) -> Any:
        """The value of an input. `server` is the one that needs it, if any.

        Raises `InputNotFoundError` if there is no value, and `InputFailedError` if a layer failed.
        """
        definition = self._store.definition(input_id)
        question = self._questions.get(input_id)
        if question is None or question.definition is not definition:
            question = self._questions[input_id] = _OpenQuestion(definition, asyncio.create_task(self._ask(definition)))
            # If all callers have left, nobody reads the failure: asyncio must not complain.
            question.answer.add_done_callback(lambda answer: answer.cancelled() or answer.exception())
        return await self._wait(question, server)

    async def is_disabled(self, raw: dict[str, Any]) -> bool:
        """Whether this config, as written, is disabled. Asks only for inputs in `disabled` itself."""
        written = parse_unrendered(raw)
        switch = await self._render({"disabled": written.disabled}, written.name)
        return parse_unrendered({**raw, **switch}).disabled

    async def config(self, raw: dict[str, Any]) -> MCPServerConfig:
        """The config with its placeholders rendered.

        `InvalidConfigError` names every wrong field, `InputNotFoundError` the input and the server, `InputFailedError`
        the input. A config that is invalid as written is refused before a person is asked anything.
        """
        written = parse_unrendered(raw)
        rendered = await self._render(raw, written.name)
        self.redaction.learn_config(raw, rendered)
        return parse_server(rendered)

    # --- rendering

    async def _render(self, part: dict[str, Any], server: str) -> Any:
        try:
            template = ConfigRender(part)
            if unset := template.unset(self._environ):
                raise InvalidConfigError(unset)
        except InvalidConfigError as error:
            raise InvalidConfigError([problem.within(f"server {server!r}") for problem in error.problems]) from None
        for input_id in template.inputs:
            if input_id not in self._store.definitions:
                raise InputNotFoundError(input_id, f"server {server!r} refers to it, and no input has this id")
        values = {input_id: await self._value(input_id, server) for input_id in template.inputs}
        for input_id, value in values.items():
            self.redaction.learn_value(f"${{input:{input_id}}}", value)
        for name in template.variables:
            self.redaction.learn_value(f"${{env:{name}}}", self._environ[name])
        return template.render(values, self._environ)

    async def _value(self, input_id: str, server: str) -> Any:
        try:
            return await self.resolve(input_id, server)
        except InputNotFoundError as error:
            way_out = f"set {variable_of(input_id)}, or give it a default"
            raise InputNotFoundError(input_id, f"server {server!r} refers to it; {way_out}") from error

    # --- one question, many waiting callers

    async def _ask(self, definition: MCPServerInput) -> Any:
        try:
            return await self._layers.resolve(definition)
        except InputNotFoundError:
            # The default is not kept: next time a person may be there to be asked.
            if definition.fallback is None:
                raise
            return definition.fallback

    def _person_asked(self, input_id: str, is_asked: bool) -> None:
        question = self._questions.get(input_id)
        # Nothing is told for a question whose last caller has left, or whose input has a new definition.
        if question is not None and question.answer is asyncio.current_task():
            question.is_with_person = is_asked
            for server in question.waiting:
                self._tell_waiting(server, input_id if is_asked else None)

    def _tell_waiting(self, server: str | None, input_id: str | None) -> None:
        if server is not None:
            self.on_waiting(server, input_id)

    async def _wait(self, question: _OpenQuestion, server: str | None) -> Any:
        question.waiting.append(server)
        if question.is_with_person:
            self._tell_waiting(server, question.definition.id)
        try:
            return await asyncio.shield(question.answer)
        finally:
            if question.is_with_person:
                self._tell_waiting(server, None)
            question.waiting.remove(server)
            if not question.waiting:
                await self._close(question)

    async def _close(self, question: _OpenQuestion) -> None:
        """The last caller has left: end the prompt or the command, and give it 5 s for that."""
        if self._questions.get(question.definition.id) is question:
            del self._questions[question.definition.id]
        if not question.answer.done():
            question.answer.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait([question.answer], timeout=5)

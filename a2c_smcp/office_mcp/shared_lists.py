"""What the computers of an office share besides windows and documents: the last lists of resources and of prompts."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

import mcp_types as types
from pydantic import BaseModel, ValidationError

from a2c_smcp.agent.for_models.watching import WatchedOffice
from a2c_smcp.errors import SMCPError
from a2c_smcp.utils.text import cut, in_log, printable

__all__ = ["ResourceLists", "SharedLists", "SharedPrompt", "SharedResource", "SharedTemplate"]

logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _SharedBounds:
    """How many items of one computer are used. More are a mistake or an attack."""

    resources: int = 10_000
    templates: int = 1_000
    prompts: int = 1_000


_MOST: Final = _SharedBounds()
#: Seconds that the lists of all computers wait for the list of one.
_PATIENCE: Final = 2.0
#: What hosts on the TypeScript SDK take as a time. If one item has another, they refuse the whole list.
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)


@dataclass(frozen=True, slots=True)
class SharedResource:
    """A resource of a computer, and the MCP server that has it."""

    server: str
    resource: types.Resource


@dataclass(frozen=True, slots=True)
class SharedTemplate:
    server: str
    template: types.ResourceTemplate


@dataclass(frozen=True, slots=True)
class SharedPrompt:
    server: str
    prompt: types.Prompt


@dataclass(frozen=True, slots=True)
class ResourceLists:
    """The resources and templates of one computer."""

    resources: Mapping[str, SharedResource] = field(default_factory=dict)
    """By their own URIs."""
    templates: Sequence[SharedTemplate] = ()


@dataclass(frozen=True, slots=True)
class _ListKind(Generic[T]):
    """Resources, or prompts: where their lists are kept, how one is read, and who is told of a new one."""

    known: dict[str, T]
    read: Callable[[str], Awaitable[T]]
    nothing: T
    name: str
    callback: str


class SharedLists:
    """Keeps the lists of each computer until it announces a change. `on_resources` and `on_prompts` are called then."""

    def __init__(self, office: WatchedOffice) -> None:
        self._office = office
        self._resources: dict[str, ResourceLists] = {}
        self._prompts: dict[str, Sequence[SharedPrompt]] = {}
        self._reading: dict[tuple[str, str], asyncio.Task[Any]] = {}
        self._changes = 0
        self.on_resources: Callable[[], None] = lambda: None
        self.on_prompts: Callable[[], None] = lambda: None
        agent = office.agent
        agent.on("update_resources")(lambda notice: self._changed(notice, self._resources, "on_resources"))
        agent.on("update_prompts")(lambda notice: self._changed(notice, self._prompts, "on_prompts"))
        for name in ("enter_office", "leave_office"):
            agent.on(name)(self._came_or_went)
        agent.on("connection")(lambda _: self._forget_all())

    async def resources(self, computer: str) -> ResourceLists:
        """What a computer shares; nothing if it cannot be read now."""
        kind = _ListKind(self._resources, self._read_resources, ResourceLists(), "resources", "on_resources")
        return await self._once(computer, kind)

    async def prompts(self, computer: str) -> Sequence[SharedPrompt]:
        nothing: Sequence[SharedPrompt] = ()
        return await self._once(
            computer, _ListKind(self._prompts, self._read_prompts, nothing, "prompts", "on_prompts")
        )

    async def _once(self, computer: str, kind: "_ListKind[T]") -> T:
        """The list that is known, or that the computer tells in time. A list that comes later is announced."""
        if computer in kind.known:
            return kind.known[computer]
        key = (kind.name, computer)
        if (reading := self._reading.get(key)) is None:
            reading = self._reading[key] = asyncio.create_task(self._read(computer, kind))
        await asyncio.wait({reading}, timeout=_PATIENCE)
        if reading.done():
            found: T = reading.result()
            return found
        logger.warning("the %s of %s are not listed yet: it takes long to tell them", kind.name, in_log(computer))
        reading.add_done_callback(lambda reading: self._tell_late(reading, kind))
        return kind.nothing

    def _tell_late(self, reading: asyncio.Task[T], kind: "_ListKind[T]") -> None:
        # A host that hears of a change asks again. If a computer never answers, that would go on for ever.
        if not reading.cancelled() and reading.result() is not kind.nothing:
            getattr(self, kind.callback)()

    async def _read(self, computer: str, kind: "_ListKind[T]") -> T:
        changes = self._changes
        try:
            found = await kind.read(computer)
        except SMCPError as error:
            logger.warning("the %s of %s are not listed: %s", kind.name, in_log(computer), printable(cut(str(error))))
            return kind.nothing
        finally:
            del self._reading[kind.name, computer]
        if changes == self._changes:  # otherwise it may be old already
            kind.known[computer] = found
        return found

    async def _read_resources(self, computer: str) -> ResourceLists:
        answer = await self._office.agent.get_resources(computer)
        resources = _models(answer["resources"][: _MOST.resources], types.Resource, computer)
        templates = _models(answer.get("templates", [])[: _MOST.templates], types.ResourceTemplate, computer)
        return ResourceLists(
            {each.uri: SharedResource(server, each) for server, each in resources},
            [SharedTemplate(server, each) for server, each in templates],
        )

    async def _read_prompts(self, computer: str) -> Sequence[SharedPrompt]:
        answer = await self._office.agent.get_prompts(computer)
        prompts = _models(answer["prompts"][: _MOST.prompts], types.Prompt, computer)
        return [SharedPrompt(server, each) for server, each in prompts]

    # --- changes

    def _changed(self, notice: Mapping[str, Any], known: dict[str, Any], callback: str) -> None:
        computer = notice.get("computer")
        if computer is not None and self._office.only in (None, computer):
            self._changes += 1
            known.pop(computer, None)
            getattr(self, callback)()

    def _came_or_went(self, notice: Mapping[str, Any]) -> None:
        if (computer := notice.get("computer")) is not None and self._office.only in (None, computer):
            self._changes += 1
            self._resources.pop(computer, None)
            self._prompts.pop(computer, None)
            self.on_prompts()

    def _forget_all(self) -> None:
        self._changes += 1
        self._resources.clear()
        self._prompts.clear()


def _models(items: Sequence[Mapping[str, Any]], kind: type[BaseModel], computer: str) -> list[tuple[str, Any]]:
    """The items that are MCP's, each with its server. An item that is not is left out, and the others stay."""
    found: list[tuple[str, Any]] = []
    wrong = 0
    for item in items:
        server = item.get("mcp_server")
        try:
            model = kind.model_validate({key: value for key, value in item.items() if key != "mcp_server"})
        except ValidationError:
            wrong += 1
        else:
            found.append((server if isinstance(server, str) else "", _readable(model)))
    if wrong:
        logger.warning("%d of the %ss of %s are not MCP's, and are hidden", wrong, kind.__name__, in_log(computer))
    return found


def _readable(item: BaseModel) -> BaseModel:
    """The item without a time of its last change that some hosts cannot read."""
    annotations: types.Annotations | None = getattr(item, "annotations", None)
    if annotations is None or annotations.last_modified is None or _is_time(annotations.last_modified):
        return item
    return item.model_copy(update={"annotations": annotations.model_copy(update={"last_modified": None})})


def _is_time(text: str) -> bool:
    if _TIME.fullmatch(text) is None:
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True

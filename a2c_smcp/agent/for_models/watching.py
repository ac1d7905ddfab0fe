"""The current state of an office: its directory of tools, its windows and documents. Updated with every change."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from a2c_smcp.agent.for_models.addresses import Addresses
from a2c_smcp.agent.for_models.model_answers import unusable_office
from a2c_smcp.agent.for_models.office_agent import OfficeAgent
from a2c_smcp.agent.for_models.remembered_office import RememberedOffice, ToolsByComputer
from a2c_smcp.agent.for_models.tool_directory import SchemaNews, ToolDirectory
from a2c_smcp.agent.for_models.tool_names import computer_label
from a2c_smcp.agent.types import Change
from a2c_smcp.agent.view import ComputerView, Part
from a2c_smcp.errors import BadRequestError, SMCPError
from a2c_smcp.smcp import GetFinderRet
from a2c_smcp.types import Desktop
from a2c_smcp.utils.bounded import BoundedDict

__all__ = ["OfficeWaits", "WatchedOffice", "window_uri"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OfficeWaits:
    """How many seconds a host's request waits for the office."""

    list_away: float = 1.4
    """For a list, while the office cannot be used. Some hosts give up after five seconds, and never ask again."""
    list_here: float = 3.0
    """For a list, until the computers have told all their tools: hosts load tools once. It is also the wait for a list
    that would be empty while the agent enters the office and nothing has failed: on a busy machine that takes seconds.
    """
    call: float = 5.0
    """For a call, while the office cannot be used."""


_WAITS: Final = OfficeWaits()
#: How many seconds pass at least between two writings of the list of tools.
_SAVE_PAUSE: Final = 1.0


class WatchedOffice:
    """What an agent knows of its office.

    `only` is the one computer to show, if set. `on_tools` is called when the tools have changed, `on_resources` when
    windows or documents came or went, and `on_update` with the computer whose windows or documents changed. `memory`
    has the tools of the last time: they are shown until the office itself has told its tools.
    """

    def __init__(
        self,
        agent: OfficeAgent,
        only: str | None = None,
        short: Mapping[str, str] | None = None,
        memory: RememberedOffice | None = None,
    ) -> None:
        self.agent = agent
        self.only = only
        self.addresses = Addresses(only)
        self._short = short or {}
        self._schema_news = SchemaNews()
        self.directory = ToolDirectory({})
        self.tools_given = self.resources_given = False
        """Whether a host has asked for the list. Before that a change is not announced. Clients of mcp 1.x fail if a
        notification arrives while they close, and some make one call and close at once.
        """
        self.known: BoundedDict[str, tuple[str, str]] = BoundedDict(10_000)
        """The computer and the tool behind every name so far: a host may call a tool whose computer has left."""
        self.on_tools: Callable[[], None] = lambda: None
        self.on_resources: Callable[[], None] = lambda: None
        self.on_update: Callable[[str, Part], None] = lambda computer, part: None
        self._news = asyncio.Event()
        self._first_asked: float | None = None
        self._has_waited = False
        """Whether somebody has already waited for the office: its problem is known by now."""
        self._computers: set[str] = set()
        self._read: dict[tuple[str, Part], Any] = {}
        self._listed: dict[tuple[str, Part], list[str]] = {}
        self._settling: asyncio.Task[None] | None = None
        self._memory = memory
        self._saving: asyncio.Task[None] | None = None
        self.remembered: ToolsByComputer = memory.load() if memory is not None else {}
        """The tools of the last time. Empty as soon as the office has told its own."""
        self._is_complete = False
        """Whether the office has told its tools at least once."""
        self._listen()

    # --- who is here

    @property
    def computers(self) -> dict[str, ComputerView]:
        """The computers to show, by name."""
        found = self.agent.computers
        if self.only is None:
            return dict(found)
        return {self.only: found[self.only]} if self.only in found else {}

    def label(self, computer: str) -> str:
        """The label of a computer in the names of its tools."""
        return computer_label(computer, self._short)

    def computer(self, name: str | None) -> str:
        """The computer that is meant. Raises `BadRequestError`, which lists the computers."""
        if self.only is not None:
            return self.only
        names = list(self.computers)
        if name is not None and name in names:
            return name
        if not name and len(names) == 1:
            return names[0]
        alike = [each for each in names if name and (name == self.label(each) or name.lower() == each.lower())]
        if len(alike) == 1:
            return alike[0]
        if self.agent.problem is not None:
            raise BadRequestError(unusable_office(self.agent.problem))
        if not names:
            raise BadRequestError("The office is empty: no computer is in it now.")
        wanted = f"There is no computer {name[:100]!r} in the office now." if name else "Say which computer."
        raise BadRequestError(f"{wanted} In the office: {', '.join(names)}.")

    # --- waiting

    async def ready(self) -> None:
        """Wait a moment until the tools of the office are known, and there is at least one."""
        await self._wait_until_ready()
        self._has_waited = True

    async def ready_once(self) -> None:
        """As `ready`, unless somebody has already waited: then the problem of the office is known."""
        if not self._has_waited:
            await self.ready()

    async def _wait_until_ready(self) -> None:
        now = asyncio.get_running_loop().time
        began = now()
        if self._first_asked is None:
            self._first_asked = began
        while True:
            left = began + self._patience() - now()
            if left <= 0:
                return
            if self.agent.problem is None:
                with suppress(SMCPError):  # it takes too long, or the agent is being closed
                    await self.agent.settled(left)
                    self._complete()
                self.look()
                # An office that is empty for so long may be empty on purpose.
                if self.directory.by_name or now() >= self._first_asked + _WAITS.list_here:
                    return
                left = began + _WAITS.list_here - now()
            # Not every failure is news: look again after the shorter time.
            await self._wait_for_news(min(left, _WAITS.list_away))

    def _patience(self) -> float:
        """How many seconds a list waits, as things are now."""
        is_all_new = self.agent.is_entering and not self.directory.by_name
        return _WAITS.list_here if self.agent.problem is None or is_all_new else _WAITS.list_away

    async def usable(self) -> None:
        """Wait a few seconds until requests can be sent."""
        await self.ready_once()
        now = asyncio.get_running_loop().time
        deadline = now() + _WAITS.call
        while self.agent.problem is not None and now() < deadline:
            await self._wait_for_news(deadline - now())

    async def knows(self, tool: Callable[[], object]) -> None:
        """As `usable`, but only until this tool is known: other computers may take long to list theirs."""
        usable = asyncio.create_task(self.usable())
        try:
            while not tool() and not usable.done():
                self._news.clear()
                news = asyncio.create_task(self._news.wait())
                await asyncio.wait({usable, news}, return_when=asyncio.FIRST_COMPLETED)
                news.cancel()
            if usable.done():
                usable.result()
        finally:
            usable.cancel()
            await asyncio.wait({usable})

    async def _wait_for_news(self, seconds: float) -> None:
        self._news.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()

    # --- tools

    async def listed_directory(self) -> ToolDirectory:
        """The directory, with its listing made. This may take a second, and others get their turn in between."""
        directory = self.directory
        while directory.list_some():  # noqa: ASYNC110 - it does work, and lets others run in between
            await asyncio.sleep(0)
        return directory

    # --- windows and documents

    async def desktop(self, computer: str) -> Sequence[Desktop]:
        """The windows of a computer after its last announced change."""
        view = self.computers.get(computer)
        if view is not None and view.desktop is not None:
            return view.desktop
        found: Sequence[Desktop] = await self._once((computer, Part.DESKTOP), self.agent.get_desktop, computer)
        return found

    async def documents(self, computer: str) -> GetFinderRet:
        """The first thousand documents of a computer after its last announced change."""
        view = self.computers.get(computer)
        if view is not None and view.documents is not None:
            return view.documents
        found: GetFinderRet = await self._once(
            (computer, Part.DOCUMENTS), partial(self.agent.get_finder, limit=1000), computer
        )
        return found

    async def _once(self, key: tuple[str, Part], read: Callable[[str], Awaitable[Any]], computer: str) -> Any:
        if key not in self._read:
            found = await read(computer)
            if computer not in self._computers:
                return found  # it has left meanwhile
            self._read[key] = found
            self._listed[key] = _uris(found)
        return self._read[key]

    # --- changes

    def _listen(self) -> None:
        for name in ("enter_office", "leave_office"):
            self.agent.on(name)(lambda _: self.look())
        self.agent.on("change")(self._on_change)
        self.agent.on("connection")(self._on_connection)
        for name, part in (("update_desktop", Part.DESKTOP), ("update_finder", Part.DOCUMENTS)):
            self.agent.on(name)(lambda notice, part=part: self._on_update(notice.get("computer"), part))

    def look(self) -> None:
        """Update the directory, and announce what is new."""
        self._news.set()
        views = self.computers
        known = {name: view.tools for name, view in views.items() if view.tools is not None}
        tools = {**self.remembered, **known}
        if tools != self.directory.tools:
            self.directory = ToolDirectory(tools, self._short, only=self.only, news=self._schema_news)
            for each in self.directory.by_name.values():
                self.known.put(each.name, (each.computer, each.tool["name"]))
            if self.tools_given:
                self.on_tools()
            if self._is_complete:
                self._save()
        if set(views) != self._computers:
            for computer in self._computers - set(views):
                for part in Part:
                    self._read.pop((computer, part), None)
                    self._listed.pop((computer, part), None)
            self._computers = set(views)
            self._tell_of_resources()

    def _on_change(self, change: Change) -> None:
        self.look()
        view = self.computers.get(change.computer)
        if view is None or change.part not in (Part.DESKTOP, Part.DOCUMENTS) or change.error is not None:
            return
        uris = _uris(view.desktop if change.part is Part.DESKTOP else view.documents)
        if self._listed.get((change.computer, change.part)) != uris:
            self._listed[change.computer, change.part] = uris
            self._tell_of_resources()

    def _tell_of_resources(self) -> None:
        if self.resources_given:
            self.on_resources()

    def _on_update(self, computer: str | None, part: Part) -> None:
        if computer is not None and self.only in (None, computer):
            self._read.pop((computer, part), None)
            self.on_update(computer, part)

    def _on_connection(self, _: object) -> None:
        self._read.clear()
        self.look()
        if self._settling is None or self._settling.done():
            # If a computer left while the connection was lost, no event tells. The new list shows it.
            self._settling = asyncio.create_task(self._look_when_settled())

    async def _look_when_settled(self) -> None:
        with suppress(SMCPError):
            await self.agent.settled(60.0)
            self._complete()
        self.look()

    def _complete(self) -> None:
        """The office has told its tools. From now on they are shown, and kept for the next time."""
        if not self._is_complete:
            self._is_complete, self.remembered = True, {}
            self._save()

    def _save(self) -> None:
        if self._memory is not None and (self._saving is None or self._saving.done()):
            self._saving = asyncio.create_task(self._keep(self._memory))

    async def _keep(self, memory: RememberedOffice) -> None:
        kept: ToolsByComputer | None = None
        while kept is not self.directory.tools:
            self.look()
            kept = self.directory.tools
            await asyncio.to_thread(memory.save, kept)
            await asyncio.sleep(_SAVE_PAUSE)


def window_uri(window: Desktop) -> str:
    """The URI of a window: the first line of its text."""
    return window.partition("\n")[0].strip()


def _uris(found: Any) -> list[str]:
    if isinstance(found, Mapping):
        return [document["uri"] for document in found["documents"]]
    return [window_uri(window) for window in found or ()]

"""Which windows, documents, resources and prompts the announced changes are about. Pure.

An event says only that the desktop has changed. Whoever must keep from an agent what it may not read needs to know what
has changed on it.
"""

from collections.abc import Callable, Iterable
from typing import Final

from a2c_smcp.types import SERVER_NAME

__all__ = ["MOST_NOTED", "ChangeFanOut", "ChangeJournal"]

#: How many changes of one kind are noted. More count as a change of everything.
MOST_NOTED: Final = 1000


class ChangeJournal:
    """What has changed since it was last taken, by the event that announces it."""

    def __init__(self) -> None:
        self._changed: dict[str, set[tuple[SERVER_NAME, str]] | None] = {}

    def note(self, event: str, server: SERVER_NAME, names: Iterable[str] | None) -> None:
        """These URIs or names of a server have changed; with `None`, nobody knows which."""
        noted = self._changed.setdefault(event, set())
        if noted is None:
            return
        if names is not None:
            noted.update((server, name) for name in names)
        if names is None or len(noted) > MOST_NOTED:
            self._changed[event] = None

    def take(self, event: str) -> set[tuple[SERVER_NAME, str]] | None:
        """What has changed, once; `None` if nobody knows. Nothing, if an earlier announcement told of all of it."""
        return self._changed.pop(event, set())


class ChangeFanOut:
    """Notes changes in every journal that was added."""

    def __init__(self) -> None:
        self._journals: set[ChangeJournal] = set()

    def add(self, journal: ChangeJournal) -> None:
        self._journals.add(journal)

    def discard(self, journal: ChangeJournal) -> None:
        self._journals.discard(journal)

    def note(self, event: str, server: SERVER_NAME, names: Callable[[], Iterable[str] | None]) -> None:
        """Note a change. `names` is called only if there is a journal."""
        if self._journals:
            found = names()
            kept = None if found is None else list(found)
            for journal in self._journals:
                journal.note(event, server, kept)

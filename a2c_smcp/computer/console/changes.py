"""Events of a Computer, gathered into one message for the page. Pure.

Only the last state of a server, and the last progress of a call, are told. Of tools, windows and documents a page is
told only that they changed. So a thousand events in a second make a few small messages.
"""

from collections import deque
from typing import Any, Final

from a2c_smcp.computer.console.decision_views import decision_list
from a2c_smcp.computer.console.limits import CONSOLE_LIMITS
from a2c_smcp.computer.console.views import call_view, ended_view, office_view, progress_view, server_view
from a2c_smcp.computer.decisions.shown_text import visible
from a2c_smcp.computer.watching.events import (
    AnswerersChanged,
    CallEnded,
    CallProgressed,
    CallStarted,
    ComputerEvent,
    DecisionAsked,
    DecisionDecided,
    DesktopChanged,
    FinderChanged,
    OfficeStatus,
    RestartOffered,
    RulesChanged,
    ServerLogged,
    ServerStatus,
    SharedPromptsChanged,
    SharedResourcesChanged,
    ToolHidden,
    ToolInvalid,
    ToolListChanged,
)
from a2c_smcp.utils.bounded import BoundedDict

__all__ = ["PageChanges"]

_MARKED: Final = {
    ToolListChanged: "tools",
    # The page reads the clash together with the tools.
    ToolHidden: "tools",
    # So it does the rules.
    RulesChanged: "tools",
    DesktopChanged: "desktop",
    FinderChanged: "finder",
    SharedResourcesChanged: "shared",
    SharedPromptsChanged: "shared",
}


class PageChanges:
    """The events after `since`, the number of the last event that the page knows.

    If very many calls have ended, only the newest ones are told. Of an older call that the page still shows as running,
    only the id is told.
    """

    def __init__(self, since: int) -> None:
        self._since = since
        self._marked: set[str] = set()
        self._servers: dict[str, ServerStatus] = {}
        self._offices: dict[str, OfficeStatus] = {}
        self._logs: set[str] = set()
        self._started: dict[str, CallStarted] = {}
        self._progress: dict[str, CallProgressed] = {}
        self._ended: BoundedDict[str, CallEnded] = BoundedDict(CONSOLE_LIMITS.listed_calls)
        #: Calls that began before this message, so that the page may show them as running.
        self._began_before: set[str] = set()
        self._over: list[str] = []
        self._skipped = 0
        self._asked: dict[str, DecisionAsked] = {}
        self._decided: dict[str, DecisionDecided] = {}
        self._answerers: AnswerersChanged | None = None
        self._notices: deque[dict[str, Any]] = deque(maxlen=20)

    def add(self, event: ComputerEvent) -> None:
        """Add an event."""
        match event:
            case RulesChanged(outcome="gone", says=says, denies=denies):
                self._marked.add(_MARKED[RulesChanged])
                self._notice("gone", visible(says), denies=denies)
            case _ if type(event) in _MARKED:
                self._marked.add(_MARKED[type(event)])
            case ServerStatus(server=server):
                self._servers[server] = event
            case OfficeStatus(id=link):
                self._offices[str(link)] = event
            case ServerLogged(server=server):
                self._logs.add(server)
            case CallStarted(call=call):
                self._started[call.id] = event
            case CallProgressed(call_id=call_id):
                self._progress[call_id] = event
            case CallEnded(ended=ended):
                self._end(ended.call.id, event)
            case DecisionAsked(decision=decision):
                self._asked[decision.id] = event
            case DecisionDecided(decision_id=decision_id):
                self._decided[decision_id] = event
            case AnswerersChanged():
                self._answerers = event
            case RestartOffered(server=server, reason=reason):
                self._notice("restart", f"{server}: {reason}", server=server, restart=True)
            case ToolInvalid(server=server, tool=tool, problem=problem):
                said = {"tool": visible(tool), "problem": visible(problem)}
                self._notice("invalid", visible(str(event)), server=server, **said)

    def _end(self, call_id: str, event: CallEnded) -> None:
        if self._started.pop(call_id, None) is None:
            self._began_before.add(call_id)
        self._progress.pop(call_id, None)
        for oldest, _ in self._ended.put(call_id, event):
            self._skipped += 1
            if oldest in self._began_before:
                # The page must not show it as running for ever.
                self._began_before.discard(oldest)
                self._over.append(oldest)

    def _notice(self, says: str, text: str, **values: Any) -> None:
        """`says` names the page's text, which gets the values. `text` is the same in English, for programs."""
        self._notices.append({"says": says, "text": text, **values})

    def message(self, number: int, now: float) -> dict[str, Any]:
        """All changes up to the event with this number, as JSON. Empty parts are left out."""
        told = {
            "marked": sorted(self._marked),
            "logs": sorted(self._logs),
            "servers": [server_view(status) for status in self._servers.values()],
            "offices": [office_view(office) for office in self._offices.values()],
            "started": [call_view(event.call) for event in self._started.values()],
            "progress": {call_id: progress_view(event.progress) for call_id, event in self._progress.items()},
            "ended": [ended_view(event.ended) for event in self._ended.values()],
            "over": self._over,
            "skipped": self._skipped,
            "asked": decision_list([event.decision for event in self._asked.values()]),
            "decided": [
                {
                    "id": event.decision_id,
                    "outcome": str(event.outcome),
                    "by": event.by,
                    "always": event.always,
                    "reason": event.reason,
                    "rule": event.rule,
                }
                for event in self._decided.values()
            ],
            "notices": list(self._notices),
        }
        answerers = {} if self._answerers is None else {"answerers": list(self._answerers.names)}
        return {
            "kind": "changes",
            "since": self._since,
            "number": number,
            "now": now,
            **{key: value for key, value in told.items() if value},
            **answerers,
        }

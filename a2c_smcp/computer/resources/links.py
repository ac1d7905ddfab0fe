"""Links in the results of calls: which agent may read which resource because a tool handed it over. Pure.

Such a resource need not be in any list. The link is good for ten minutes, for the agent that made the call, and for
requests with the same `agent` in them.
"""

from collections.abc import Iterable
from typing import Final

from a2c_smcp.computer.asker import Asker
from a2c_smcp.types import SERVER_NAME
from a2c_smcp.utils.bounded import BoundedDict

__all__ = ["LINK_SECONDS", "LinkedResources"]

#: How long a link can be followed.
LINK_SECONDS: Final = 600.0
#: How many links of one server are remembered, and how many characters all of them have. So one server cannot push out
#: the links of another.
_MOST: Final = 1000
_CHARACTERS: Final = 1024 * 1024


class LinkedResources:
    """The links of all servers."""

    def __init__(self) -> None:
        self._links: dict[SERVER_NAME, BoundedDict[tuple[Asker, str, str], int]] = {}

    def remember(self, server: SERVER_NAME, caller: Asker, uris: Iterable[str], now: float) -> None:
        """A tool of this server gave these links to an agent."""
        for uri in uris:
            links = self._links.setdefault(server, BoundedDict(_MOST, heaviest=_CHARACTERS, weigh=int))
            links.put((caller, caller.own_id, uri), len(uri), now)

    def servers(self, caller: Asker | None, uri: str, now: float) -> list[SERVER_NAME]:
        """The servers that gave this link to the agent in the last ten minutes."""
        if caller is None:
            return []
        for links in self._links.values():
            links.forget_before(now - LINK_SECONDS)
        return [server for server, links in self._links.items() if (caller, caller.own_id, uri) in links]

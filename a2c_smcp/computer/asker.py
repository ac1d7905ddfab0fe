"""Who asks a Computer for something: the agent of an office, as the server vouches for it. Pure.

A server that announces `stamps` when a client connects writes into every request from whom it comes (`a2c_from`). On
any other connection that key is what a client wrote itself, and is not read. Then the only name is `agent` in the
request, which is an id of the sender's own: a claim.

The `agent` of a request is an id of the sender's own in any case: it decides nothing, is echoed, and tells the sender's
own calls, links and questions apart.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from a2c_smcp.smcp import STAMP_FIELD

__all__ = ["ASKER", "Asker", "asker_of"]


@dataclass(frozen=True, slots=True)
class Asker:
    """Who made a request. `None` in the place of an `Asker` means that no agent did: this program, or the person at
    the computer.
    """

    name: str
    key: str | None = None
    """The name of its key, or the subject of its token; `None` if the server has no keys, or does not say."""
    bound: bool = False
    """Whether the key may only be used under such a name. Otherwise the name is claimed: anybody may say it."""
    office: str = ""
    own_id: str = field(default="", compare=False)
    """The `agent` in the request. It does not make an asker another one."""

    @property
    def is_claimed(self) -> bool:
        """Whether nobody vouches for the name. Such a name satisfies no `allow`, and every `deny` and `ask`."""
        return not self.bound


#: Who made the request that this task answers; unset if no agent did.
ASKER: Final[ContextVar[Asker]] = ContextVar("asker")


def asker_of(request: Mapping[str, Any], office: str, *, stamps: bool) -> Asker:
    """Who made a request that has passed its check, in this office. `stamps` is whether the server that sent it
    announced them. A stamp that is missing or broken makes the name a claim, like a server without stamps.
    """
    agent: str = request["agent"]
    if stamps and type(stamp := request.get(STAMP_FIELD)) is dict and isinstance(name := stamp.get("name"), str):
        key = stamp.get("key")
        is_named = isinstance(key, str) and key != ""
        return Asker(name, key if is_named else None, stamp.get("bound") is True, office, agent)
    return Asker(agent, None, False, office, agent)

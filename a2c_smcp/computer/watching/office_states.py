"""The state of a Computer's connections to servers, made of the events of these connections. Pure."""

from dataclasses import replace

from a2c_smcp.computer.mcp_clients.masking import masked_url
from a2c_smcp.computer.watching.events import OfficeStatus
from a2c_smcp.link.interface import Connected, Disconnected, Joined, Left, LinkEvent, RejoinFailed

__all__ = ["OfficeStates", "office_after"]


def office_after(status: OfficeStatus, event: LinkEvent) -> OfficeStatus:
    """The status of a connection after one more event."""
    match event:
        case Connected(url=url):
            return replace(status, state="connected", url=masked_url(url), reason=None, final=False)
        case Joined(membership=membership):
            joined = replace(status, state="joined", office=membership.office_id, name=membership.name)
            return replace(joined, reason=None, final=False)
        case Left():
            return replace(status, state="connected", office=None, name=None, reason=None)
        case Disconnected(reason=reason, final=final):
            return replace(status, state="disconnected", reason=reason, final=final)
        case RejoinFailed(error=error, final=final):
            return replace(status, reason=str(error), final=final)


class OfficeStates:
    """The connections of one Computer, oldest first, until they are closed."""

    def __init__(self) -> None:
        self._statuses: dict[str, OfficeStatus] = {}

    @property
    def statuses(self) -> tuple[OfficeStatus, ...]:
        return tuple(self._statuses.values())

    def hear(self, connection: str, url: str, event: LinkEvent, at: float = 0.0) -> OfficeStatus:
        """Take an event of a connection to the server at `url`. Returns its new status. `at` is Unix time."""
        before = self._statuses.get(connection)
        status = office_after(before or OfficeStatus(connection, "disconnected", masked_url(url)), event)
        if before is None or status.state != before.state:
            status = replace(status, since=at)
        self._statuses[connection] = status
        return status

    def close(self, connection: str) -> OfficeStatus | None:
        """Take the end of a connection that was closed on purpose. Returns `None` if it is unknown."""
        status = self._statuses.pop(connection, None)
        return None if status is None else replace(status, state="closed", final=True)

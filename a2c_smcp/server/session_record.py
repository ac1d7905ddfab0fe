"""What an operator is shown about a session, beside its place in an office. Pure: the clock is handed in."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

from a2c_smcp.dialects.handshake import VERSION_FIELD, Dialect, dialect_of_client
from a2c_smcp.server.offices import Grant
from a2c_smcp.server.port import Newcomer
from a2c_smcp.types import Role
from a2c_smcp.utils.text import printable

__all__ = ["SessionRecord", "session_record"]

#: What stands before the version in the `User-Agent` of our own clients.
_OUR_CLIENTS: Final = "a2c-smcp"
#: Characters of a version that are kept.
_LONGEST: Final = 32


@dataclass(slots=True)
class SessionRecord:
    """One connection, from its first moment on."""

    grant: Grant
    """What its key allows."""
    address: str
    version: str
    """The version that the client says it has; empty if it says none."""
    since: float
    """When it connected, in seconds since 1970."""
    office: str = ""
    """Where it is; empty if it is in no office."""
    role: Role | None = None
    name: str = ""
    calls: int = 0
    """Tool calls that it made, or that it was asked to run."""
    dialect: Dialect = Dialect.OURS
    """What the client speaks."""

    @property
    def place(self) -> tuple[Role | None, str, str]:
        """The role, the office and the name that its key must allow."""
        return self.role, self.office, self.name

    def enters(self, office: str, role: Role, name: str) -> None:
        self.office, self.role, self.name = office, role, name

    def leaves(self) -> None:
        self.office = ""


def session_record(newcomer: Newcomer, grant: Grant, now: float) -> SessionRecord:
    """The record of a connection that begins now."""
    query = newcomer.query
    dialect = dialect_of_client(query)
    agent, _, version = newcomer.headers.get("user-agent", "").partition("/")
    said = version if agent == _OUR_CLIENTS else ""
    if dialect is not Dialect.OURS:  # ours have the version of the protocol there
        said = dict(parse_qsl(query, max_num_fields=100)).get(VERSION_FIELD, said)
    return SessionRecord(grant, newcomer.address, printable(said[:_LONGEST]), now, dialect=dialect)

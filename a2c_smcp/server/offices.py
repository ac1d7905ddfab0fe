"""Who may be in which office, and who may say what to whom. Pure: no sockets, no clocks, no storage.

A decision looks at one session and at most two facts about the office: who has the agent's seat, and who has the name.
So its cost does not depend on the size of the office. It returns what is to change, or raises the coded refusal.
"""

import hashlib
import hmac
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from a2c_smcp.errors import (
    AlreadyInRoomError,
    BadRequestError,
    CrossRoomAccessError,
    ForbiddenError,
    NameTakenError,
    NotFoundError,
    NotInRoomError,
    RoomFullError,
)
from a2c_smcp.server.effects import Broadcast, RoomChange
from a2c_smcp.smcp import (
    ENTER_OFFICE_NOTIFICATION,
    EVENTS,
    LEAVE_OFFICE_NOTIFICATION,
    MAX_URI,
    EnterOfficeReq,
    Event,
    Kind,
    LeaveOfficeReq,
    ListRoomReq,
    ListRoomRet,
    RecordHeadReq,
)
from a2c_smcp.types import Role
from a2c_smcp.utils.text import first_invisible_character, has_control_characters

__all__ = [
    "ANYONE",
    "MAX_ID",
    "MAX_NAME",
    "MAX_OFFICE_ID",
    "RESUME_LENGTH",
    "Grant",
    "Member",
    "MemberChange",
    "Session",
    "Transition",
    "admit",
    "announce",
    "check_ids",
    "check_names",
    "check_office_left",
    "computer_gone",
    "disconnect",
    "effects_of",
    "join",
    "leave",
    "list_room",
    "listing",
    "member_for",
    "record_head",
    "route",
    "superseded",
]

#: Announcements that something has changed. One is enough for a client that has not fetched the change yet.
_SAID_ONCE_IS_ENOUGH = frozenset(
    event.name
    for event in EVENTS.values()
    if event.notification and "computer" in event.senders and not EVENTS[event.notification].agent_only
)

_HEAD = re.compile(r"[0-9]{1,18}:[0-9a-f]{64}")
MAX_NAME = 64
#: Characters of the secret with which a client takes its place over.
RESUME_LENGTH = (16, 128)
MAX_OFFICE_ID = 128
MAX_ID = 1000
#: The name of a grant that no key and no token stands behind.
ANYONE = "anyone"
#: Names that a refusal lists.
_LISTED_NAMES = 10


@dataclass(frozen=True, slots=True)
class Grant:
    """What a client may do, as its authentication provider decided. The default allows everything."""

    name: str = ANYONE
    """The name of the key, for the log."""
    roles: frozenset[Role] = frozenset({"agent", "computer"})
    """The roles in which it may join."""
    offices: tuple[str, ...] = ("*",)
    """The offices that it may join: ids, or patterns of `fnmatch`."""
    fingerprint: str = field(default="", compare=False)
    """Tells keys apart, and does not show them; empty without a key."""
    expires_at: float = field(default=math.inf, compare=False)
    """When it ends, in seconds since 1970. Then the session ends, unless its client has shown a new token."""
    claims: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)
    """What the token says; `None` for a key."""
    names: tuple[str, ...] | None = None
    """The names that it may have in an office: names, or patterns of `fnmatch`; `None` for any name."""
    subject: str | None = None
    """Whose token it is; `None` for a key."""

    @property
    def key(self) -> str:
        """What computers are told of it: the name of the key, or the subject of the token. Empty for nobody's."""
        if self.subject is not None:
            return self.subject
        return self.name if self.fingerprint or self.name != ANYONE else ""

    @property
    def bound(self) -> bool:
        """Whether its names say who somebody is. A pattern without a letter, such as `*`, allows every name."""
        return self.names is not None and not any(set(pattern) <= {"*", "?"} for pattern in self.names)

    def allows(self, role: Role | None, office_id: str, name: str) -> bool:
        """Whether a member may be in this office in this role under this name."""
        return role in self.roles and self.allows_office(office_id) and self.allows_name(name)

    def allows_office(self, office_id: str) -> bool:
        """Whether one of the patterns matches this office."""
        return any(fnmatchcase(office_id, pattern) for pattern in self.offices)

    def allows_name(self, name: str) -> bool:
        """Whether one of the patterns matches this name."""
        return self.names is None or any(fnmatchcase(name, pattern) for pattern in self.names)


@dataclass(frozen=True, slots=True)
class Member:
    """A client that is in an office."""

    sid: str
    role: Role
    name: str
    office_id: str
    process: str = ""
    """The server process that holds its connection; empty if there is only one process."""
    resume: str = ""
    """A hash of the secret with which a newer session of the same client takes this place over; empty without one."""
    key: str = ""
    """The name of its key, or the subject of its token; empty without one. Older server processes do not say it."""
    bound: bool = False
    """Whether its key may have such names only. Otherwise its name is what it says."""
    proof: str = field(default="", compare=False)
    """Shows other server processes that its own process says so; empty if they share no key."""

    @property
    def place(self) -> tuple[str, Role, str]:
        """What the others in the office know it by."""
        return self.office_id, self.role, self.name

    def yields_to(self, other: "Member") -> bool:
        """Whether the other one has shown the secret of this one. Takes the same time for every wrong secret."""
        return bool(self.resume) and hmac.compare_digest(self.resume, other.resume)


@dataclass(frozen=True, slots=True)
class Session:
    """One connection: what it may do, the role that it keeps, and where it is."""

    sid: str
    grant: Grant = field(default_factory=Grant)
    role: Role | None = None
    member: Member | None = None
    superseded: bool = False
    """Whether a newer session of the same client has its place. What was on its way is still served: the session acts
    as `member` until it is closed."""

    @property
    def place(self) -> Member | None:
        """The place in an office that it has, and that ends with it."""
        return None if self.superseded else self.member


@dataclass(frozen=True, slots=True)
class MemberChange:
    """A session has come, gone or moved; or a newer session of the same client has taken its place."""

    before: Member | None
    after: Member | None

    @property
    def left_office(self) -> bool:
        """Whether the session has left its office: calls to it and from it have lost their peer."""
        if self.before is None:
            return False
        return self.after is None or self.after.office_id != self.before.office_id


@dataclass(frozen=True, slots=True)
class Transition:
    """A change of membership, and what follows from it."""

    before: Member | None
    after: Session | None
    """The session as it is to be kept; `None` when it has ended."""
    rooms: tuple[RoomChange, ...] = ()
    notices: tuple[Broadcast, ...] = ()
    taken: Member | None = None
    """The place that another session of the same client had until now."""

    @property
    def left_office(self) -> bool:
        """Whether the session has left its office."""
        return MemberChange(self.before, self.after.member if self.after else None).left_office


def admit(event: object) -> Event:
    """The row of an event. Raises `BadRequestError` or `ForbiddenError` for an event that no client may send."""
    if not isinstance(event, str):
        raise BadRequestError("an event's name must be text")
    if (row := EVENTS.get(event)) is None:
        raise BadRequestError(f"unknown event {event[:100]!r}")
    if row.kind is Kind.NOTIFICATION:
        raise ForbiddenError(f"{row.name} is sent by the server only")
    return row


def check_ids(request: Mapping[str, Any]) -> None:
    """Raise `BadRequestError` if an id of a request is too long.

    A cancel consists of these ids, and everybody in the office gets it. Calls have the same limit, so that every call
    can be cancelled.
    """
    for name in ("agent", "req_id"):
        if len(request.get(name, "")) > MAX_ID:
            raise BadRequestError(f"field {name!r}: must have at most {MAX_ID} characters", {"field": name})


# --- membership


def check_names(request: EnterOfficeReq) -> None:
    """Raise `BadRequestError` for a name or an office id that breaks a rule."""
    _check_name("name", request["name"], MAX_NAME)
    _check_name("office_id", request["office_id"], MAX_OFFICE_ID)
    least, most = RESUME_LENGTH
    if not least <= len(request.get("resume", "x" * least)) <= most:
        raise BadRequestError(f"field 'resume': must have {least} to {most} characters", {"field": "resume"})


def check_office_left(request: LeaveOfficeReq) -> None:
    """Raise `BadRequestError` if an office id is too long. `leave` accepts only the id of the session's own office."""
    if len(request["office_id"]) > MAX_OFFICE_ID:
        raise BadRequestError(
            f"field 'office_id': must have at most {MAX_OFFICE_ID} characters", {"field": "office_id"}
        )


def join(
    session: Session, request: EnterOfficeReq, *, seat: Member | None, holder: Member | None, process: str = ""
) -> Transition:
    """Enter an office, move to another, take another name in it, or take over what another session of the same client
    has there.

    `seat` is the agent of the office. `holder` is the member of this role that has the name, or a name that looks like
    it. `process` is the server process that holds the connection.
    """
    _check_has_no_successor(session)
    role, name, office_id = request["role"], request["name"], request["office_id"]
    if role not in session.grant.roles:
        raise ForbiddenError(f"this key does not allow the role {role!r}")
    if not session.grant.allows_office(office_id):
        raise ForbiddenError("this key does not allow that office")
    if not session.grant.allows_name(name):
        raise _name_not_allowed(name, session.grant.names or ())
    if session.role not in (None, role):
        raise ForbiddenError(f"the role of this session is {session.role}; connect again to be {role}")
    secret, grant = _hashed(request), session.grant
    here = session.place
    target = Member(session.sid, role, name, office_id, process, secret, key=grant.key, bound=grant.bound)
    taken = None
    if role == "agent":
        if here is not None and here.office_id != office_id:
            raise AlreadyInRoomError("this agent is in another office; it must leave that one first")
        if seat is not None and seat.sid != session.sid:
            if not seat.yields_to(target):
                raise RoomFullError(f"the office has an agent: {seat.name!r}", {"agent": seat.name})
            taken = seat
    if holder is not None and holder.sid != session.sid:
        if not holder.yields_to(target):
            raise _name_taken(name, holder)
        taken = holder
    return _move(session, target, taken)


def _hashed(request: EnterOfficeReq) -> str:
    """The hash of a client's secret. It differs between offices, so that it says nothing about other memberships."""
    if not (secret := request.get("resume")):
        return ""
    text = "\0".join((request["office_id"], request["role"], secret))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _name_not_allowed(name: str, names: tuple[str, ...]) -> ForbiddenError:
    listed = ", ".join(map(repr, names[:_LISTED_NAMES]))
    more = f" and {len(names) - _LISTED_NAMES} more" if len(names) > _LISTED_NAMES else ""
    return ForbiddenError(f"this key allows the names {listed}{more}, and not {name!r}")


def _name_taken(name: str, holder: Member) -> NameTakenError:
    if holder.name == name:
        return NameTakenError(f"the name {name!r} is taken by another {holder.role} of the office")
    return NameTakenError(
        f"the name {name!r} looks like {holder.name!r}, which another {holder.role} of the office has"
    )


def regranted(session: Session, grant: Grant) -> Session:
    """The session with what its key allows now. Its member says so, too; it stays where it is."""
    member = session.member
    if member is not None:
        member = replace(member, key=grant.key, bound=grant.bound)
    return replace(session, grant=grant, member=member)


def asker(member: Member | None) -> Member:
    """The sender of a request to a computer, as a member. Raises `ForbiddenError` for nobody."""
    if member is None or member.role != "agent":
        raise ForbiddenError("no agent of an office, as this server process knows it, asks this")
    return member


def leave(session: Session, request: LeaveOfficeReq) -> Transition:
    _check_has_no_successor(session)
    here = _member_of(session)
    if here.office_id != request["office_id"]:
        raise CrossRoomAccessError("this session is in another office")
    return _move(session, None)


def _check_has_no_successor(session: Session) -> None:
    """Each session is superseded once: two of them that take the place from each other would never come to an end."""
    if session.superseded:
        raise superseded()


def superseded() -> NotInRoomError:
    """The error for a request of a session whose place a newer session of the same client has."""
    return NotInRoomError("a newer session of this client has its place in the office")


def disconnect(session: Session) -> Transition:
    """The session has ended: free its name, and tell its office, if it was in one."""
    return replace(_move(session, None), after=None)


def effects_of(change: MemberChange) -> tuple[tuple[RoomChange, ...], tuple[Broadcast, ...]]:
    """What follows from a change: the rooms that the session leaves and enters, and the notices to the offices.

    A session whose place was taken over stays in the room for a while: the shell closes it when nothing is on its way.
    """
    here, target = change.before, change.after
    rooms: list[RoomChange] = []
    notices = []
    stays, taken_over, told = False, False, True
    if here is not None and target is not None:
        taken_over = here.sid != target.sid
        stays = not taken_over and here.office_id == target.office_id
        told = here.place != target.place
    if here is not None:
        if not stays and not taken_over:
            rooms.append(RoomChange(here.sid, here.office_id, enters=False))
        if told:
            notices.append(_notice(LEAVE_OFFICE_NOTIFICATION, here))
    if target is not None:
        if not stays:
            rooms.append(RoomChange(target.sid, target.office_id, enters=True))
        if told:
            notices.append(_notice(ENTER_OFFICE_NOTIFICATION, target))
    return tuple(rooms), tuple(notices)


def _move(session: Session, target: Member | None, taken: Member | None = None) -> Transition:
    here = session.place
    after = replace(session, member=target, role=target.role if target else session.role)
    changes = [MemberChange(here, target)] if taken is None else [MemberChange(here, None), MemberChange(taken, target)]
    effects = [effects_of(change) for change in changes]
    rooms = tuple(room for rooms, _ in effects for room in rooms)
    return Transition(here, after, rooms, tuple(notice for _, notices in effects for notice in notices), taken)


def _notice(event: str, member: Member) -> Broadcast:
    # The notice has no key for the other role.
    return Broadcast(member.office_id, event, {"office_id": member.office_id, member.role: member.name}, member.sid)


def _check_name(field_name: str, text: str, longest: int) -> None:
    if not 1 <= len(text) <= longest:
        raise BadRequestError(f"field {field_name!r}: must have 1 to {longest} characters", {"field": field_name})
    if text != text.strip() or has_control_characters(text):
        raise BadRequestError(
            f"field {field_name!r}: must not have control characters or surrounding blanks", {"field": field_name}
        )
    # Two names that look alike are one name to the person who reads them.
    if (invisible := first_invisible_character(text)) is not None:
        raise BadRequestError(
            f"field {field_name!r}: must not have the invisible character U+{ord(invisible):04X}", {"field": field_name}
        )


# --- everything that needs an office


def member_for(session: Session, event: Event) -> Member:
    """The sender of an event as a member. Raises `ForbiddenError` if its role may not send the event."""
    if session.role is not None and session.role not in event.senders:
        raise ForbiddenError(f"{event.name} is not for {session.role}s")
    return session.member or _member_of(session)


def computer_gone() -> NotFoundError:
    """The error for a request whose computer has left, or has lost its connection, before it answered."""
    return NotFoundError("the computer has gone", details={"gone": "computer"})


def route(session: Session, event: Event, computer: str, target: Member | None) -> Member:
    """The computer that a relay goes to. `target` is the computer of that name in the sender's office, if any."""
    if session.member is None or session.role not in event.senders:
        member_for(session, event)
    if target is None:
        # The text is the same if the computer is in another office, so that nobody learns that it exists.
        raise NotFoundError(f"Computer {computer[:MAX_NAME]!r} not found")
    return target


def announce(session: Session, event: Event, request: dict[str, Any]) -> Broadcast:
    """The notification that an announcement becomes."""
    sender = member_for(session, event)
    assert event.notification is not None
    if sender.role == "computer":
        if request.get("computer", sender.name) != sender.name:
            raise ForbiddenError("a computer can announce only its own changes")
        if len(request.get("uri", "")) > MAX_URI:
            raise BadRequestError(f"field 'uri': must have at most {MAX_URI} characters", {"field": "uri"})
        request = {**request, "computer": sender.name}
    return Broadcast(
        sender.office_id, event.notification, request, sender.sid, collapses=event.name in _SAID_ONCE_IS_ENOUGH
    )


def record_head(session: Session, event: Event, request: RecordHeadReq) -> str:
    """The head of the sender's record, checked."""
    member_for(session, event)
    if _HEAD.fullmatch(request["head"]) is None:
        raise BadRequestError("field 'head': must be NUMBER:SHA256", {"field": "head"})
    return request["head"]


def list_room(session: Session, event: Event, request: ListRoomReq) -> str:
    """The office whose members may be listed."""
    sender = member_for(session, event)
    if request["office_id"] != sender.office_id:
        raise CrossRoomAccessError("an agent can list only its own office")
    return sender.office_id


def listing(members: Iterable[Member], request: ListRoomReq) -> ListRoomRet:
    """The reply to a listing."""
    return {
        "sessions": [
            {"sid": member.sid, "name": member.name, "role": member.role, "office_id": member.office_id}
            for member in members
        ],
        "req_id": request["req_id"],
    }


def _member_of(session: Session) -> Member:
    if session.member is None:
        raise NotInRoomError("join an office first")
    return session.member

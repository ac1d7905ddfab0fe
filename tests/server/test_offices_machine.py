"""Random lives of an office, checked after every step."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from a2c_smcp.errors import SMCPError
from a2c_smcp.relay.asks import Ask
from a2c_smcp.server import offices
from a2c_smcp.server.effects import Broadcast, RoomChange
from a2c_smcp.server.offices import Grant, Transition
from a2c_smcp.server.registry import Counts, MemoryRegistry
from a2c_smcp.server.relays import Relay, RelayAsk, relay_table
from a2c_smcp.smcp import EVENTS, EnterOfficeReq
from a2c_smcp.types import Role

OFFICES = ("o1", "o2", "o3")
NAMES = ("n1", "n2", "n3")
SECRETS = ("the first secret of all", "the second secret of all")


class Life(RuleBasedStateMachine):
    sessions = Bundle("sessions")

    def __init__(self) -> None:
        super().__init__()
        self.registry = MemoryRegistry()
        self.rooms: dict[str, set[str]] = {office: set() for office in OFFICES}
        self.relays = relay_table(most_per_caller=1000)
        self.failed: list[RelayAsk] = []
        self.known: set[str] = set()
        self.secrets: dict[str, str] = {}
        self.count = 0
        self.calls = 0

    @rule(target=sessions)
    def connect(self) -> str:
        self.count += 1
        sid = f"s{self.count}"
        self.registry.connect(sid, Grant())
        self.known.add(sid)
        return sid

    @rule(sid=sessions, role=st.sampled_from(["agent", "computer"]), name=st.sampled_from(NAMES))
    def join_first_office(self, sid: str, role: Role, name: str) -> None:
        self.join(sid, role, name, OFFICES[0])

    @rule(
        sid=sessions,
        role=st.sampled_from(["agent", "computer"]),
        name=st.sampled_from(NAMES),
        office=st.sampled_from(OFFICES),
    )
    def join(self, sid: str, role: Role, name: str, office: str) -> None:
        self.attempt(sid, lambda: self.registry.join(sid, {"role": role, "name": name, "office_id": office}))

    @rule(
        sid=sessions,
        role=st.sampled_from(["agent", "computer"]),
        name=st.sampled_from(NAMES[:2]),
        secret=st.sampled_from(SECRETS),
    )
    def join_with_a_secret(self, sid: str, role: Role, name: str, secret: str) -> None:
        request: EnterOfficeReq = {"role": role, "name": name, "office_id": OFFICES[0], "resume": secret}
        before = {member.sid: member for member in self.registry.members(OFFICES[0])}
        secrets = {member: self.secrets.get(member) for member in before}
        self.attempt(sid, lambda: self.registry.join(sid, request))
        after = {member.sid for member in self.registry.members(OFFICES[0])}
        for gone in before.keys() - after - {sid}:
            assert secrets[gone] == secret, "nobody loses a place to another secret"
        session = self.registry.session(sid)
        if session.place and session.place.place == (OFFICES[0], role, name):
            self.secrets[sid] = secret

    @rule(sid=sessions, office=st.sampled_from(OFFICES))
    def leave(self, sid: str, office: str) -> None:
        self.attempt(sid, lambda: self.registry.leave(sid, {"office_id": office}))

    @rule(sid=consumes(sessions))
    def disconnect(self, sid: str) -> None:
        transition = self.registry.disconnect(sid)
        assert transition is not None
        self.known.discard(sid)
        self.perform(sid, transition)

    @rule(sid=sessions, name=st.sampled_from(NAMES))
    def call(self, sid: str, name: str) -> None:
        before = self.picture()
        try:
            target = self.registry.route(sid, EVENTS["client:tool_call"], name)
        except SMCPError:
            pass
        else:
            caller = self.registry.session(sid).member
            assert caller is not None
            assert caller.office_id == target.office_id
            assert (caller.role, target.role) == ("agent", "computer")
            self.calls += 1
            relay = Relay("client:tool_call", "a", "1", "pc", lambda *_: None)
            self.relays.ask(Ask(self.calls, relay, sid, target.sid))
        assert self.picture() == before

    @rule(sid=sessions)
    def announce(self, sid: str) -> None:
        session = self.registry.session(sid)
        try:
            notice = offices.announce(session, EVENTS["server:update_config"], {})
        except SMCPError:
            return
        assert session.member is not None
        assert notice.office_id == session.member.office_id

    def attempt(self, sid: str, action: Any) -> None:
        before = self.picture()
        try:
            transition = action()
        except SMCPError:
            assert self.picture() == before, "a refusal changes nothing"
            return
        self.perform(sid, transition)

    def perform(self, sid: str, transition: Transition) -> None:
        touched = {transition.before.office_id} if transition.before else set()
        if transition.after and transition.after.member:
            touched.add(transition.after.member.office_id)
        effects: tuple[RoomChange | Broadcast, ...] = (*transition.rooms, *transition.notices)
        for effect in effects:
            assert effect.office_id in touched, "no effect crosses offices"
            match effect:
                case RoomChange(enters=True):
                    self.rooms[effect.office_id].add(effect.sid)
                case RoomChange(enters=False):
                    self.rooms[effect.office_id].discard(effect.sid)
                case Broadcast():
                    assert effect.skip_sid in (sid, transition.taken.sid if transition.taken else sid)
        if transition.taken is not None:
            assert transition.after is not None and transition.after.member is not None
            if transition.before is None and transition.after.member.name == transition.taken.name:
                assert not transition.notices, "the others hear nothing"
            self.rooms[transition.taken.office_id].discard(transition.taken.sid)  # by the shell, a moment later
        if transition.left_office:
            self.relays.lost(sid)

    def picture(self) -> Any:
        return (
            {office: self.registry.members(office) for office in OFFICES},
            {sid: self.registry.session(sid) for sid in self.known},
        )

    @invariant()
    def one_agent_an_office_and_unique_names(self) -> None:
        for office in OFFICES:
            members = self.registry.members(office)
            assert sum(member.role == "agent" for member in members) <= 1
            assert len({(member.role, member.name) for member in members}) == len(members)

    @invariant()
    def registry_and_rooms_agree(self) -> None:
        for office in OFFICES:
            assert {member.sid for member in self.registry.members(office)} == self.rooms[office]

    @invariant()
    def sessions_and_offices_agree(self) -> None:
        members = {member.sid: member for office in OFFICES for member in self.registry.members(office)}
        for sid in self.known:
            assert self.registry.session(sid).place == members.get(sid)
        assert members.keys() <= self.known

    @invariant()
    def counts_and_members_agree(self) -> None:
        present = [members for office in OFFICES if (members := self.registry.members(office))]
        roles = [member.role for members in present for member in members]
        counts = Counts(len(self.known), roles.count("agent"), roles.count("computer"), len(present))
        assert self.registry.counts() == counts

    @invariant()
    def no_relay_outlives_its_peers(self) -> None:
        waiting = {party for ask in self.relays.waiting() for party in (ask.caller, ask.target)}
        assert waiting <= self.known


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=60, stateful_step_count=40, deadline=None, derandomize=True)

"""Every sentence of the contract's *Offices*, directly on the core."""

from typing import Any

import pytest

from a2c_smcp.errors import SMCPError
from a2c_smcp.server.effects import Broadcast, RoomChange
from a2c_smcp.server.offices import (
    Grant,
    Transition,
    admit,
    announce,
    check_ids,
    check_names,
    list_room,
    listing,
    member_for,
)
from a2c_smcp.server.registry import MemoryRegistry
from a2c_smcp.smcp import EVENTS, Kind
from a2c_smcp.types import Role


def registry(*sids: str) -> MemoryRegistry:
    made = MemoryRegistry()
    for sid in sids:
        made.connect(sid, Grant())
    return made


def join(reg: MemoryRegistry, sid: str, role: Role, name: str, office: str = "o") -> Transition:
    return reg.join(sid, {"role": role, "name": name, "office_id": office})


def refused(code: int, action: Any, *args: Any) -> str:
    with pytest.raises(SMCPError) as caught:
        action(*args)
    assert caught.value.code == code
    return caught.value.message


def entered(name: str, role: Role = "computer", office: str = "o", sid: str | None = None) -> Broadcast:
    return Broadcast(office, "notify:enter_office", {"office_id": office, role: name}, sid or name)


def left(name: str, role: Role = "computer", office: str = "o", sid: str | None = None) -> Broadcast:
    return Broadcast(office, "notify:leave_office", {"office_id": office, role: name}, sid or name)


# --- joining


def test_a_join_enters_the_room_and_tells_the_others() -> None:
    transition = join(registry("c"), "c", "computer", "c")
    assert transition.rooms == (RoomChange("c", "o", enters=True),)
    assert transition.notices == (entered("c"),)


def test_a_notification_names_one_role_and_the_other_key_is_absent() -> None:
    assert join(registry("a"), "a", "agent", "a").notices[0].data == {"office_id": "o", "agent": "a"}


def test_one_agent_an_office() -> None:
    reg = registry("a", "b")
    join(reg, "a", "agent", "ada")
    refused(4101, join, reg, "b", "agent", "b")


def test_a_full_office_names_who_has_the_seat() -> None:
    reg = registry("a", "b")
    join(reg, "a", "agent", "ada")
    with pytest.raises(SMCPError, match="'ada'"):
        join(reg, "b", "agent", "b")


@pytest.mark.parametrize("name", ["Laptop", "l\u0430ptop", "\uff4c\uff41\uff50\uff54\uff4f\uff50"])
def test_a_name_that_looks_like_anothers_is_refused_with_the_other_name(name: str) -> None:
    reg = registry("c", "d")
    join(reg, "c", "computer", "laptop")
    assert "'laptop'" in refused(4105, join, reg, "d", "computer", name)
    assert reg.session("d").member is None
    join(reg, "d", "computer", name, "elsewhere")
    assert "'laptop'" in refused(4105, join, reg, "d", "computer", name)
    assert reg.members("elsewhere")[0].name == name


def test_plain_names_that_differ_in_more_than_case_are_all_let_in() -> None:
    names = ["Iris", "lris", "1ris", "node0", "nodeO", "mac", "rnac", "a-b", "a_b", "a b"]
    reg = registry(*names)
    for name in names:
        join(reg, name, "computer", name)
    assert [member.name for member in reg.members("o")] == names


def test_a_computer_may_take_a_name_that_looks_like_its_own_and_an_agent_one_like_a_computers() -> None:
    reg = registry("c", "a")
    join(reg, "c", "computer", "laptop")
    assert join(reg, "c", "computer", "Laptop").notices == (left("laptop", sid="c"), entered("Laptop", sid="c"))
    assert join(reg, "c", "computer", "Laptop").notices == ()
    join(reg, "a", "agent", "laptop")
    reg.disconnect("c")
    assert join(reg, "a", "agent", "LAPTOP").notices[-1] == entered("LAPTOP", "agent", sid="a")


def test_any_number_of_computers() -> None:
    reg = registry(*map(str, range(50)))
    for n in range(50):
        join(reg, str(n), "computer", str(n))
    assert len(reg.members("o")) == 50


def test_names_are_unique_within_an_office_per_role() -> None:
    reg = registry("a", "c", "d")
    join(reg, "c", "computer", "x")
    refused(4105, join, reg, "d", "computer", "x")
    join(reg, "a", "agent", "x")


def test_two_offices_may_each_have_a_laptop() -> None:
    reg = registry("c", "d")
    join(reg, "c", "computer", "laptop", "o1")
    join(reg, "d", "computer", "laptop", "o2")


def test_an_agent_in_another_office_must_leave_first() -> None:
    reg = registry("a")
    join(reg, "a", "agent", "a", "o1")
    refused(4106, join, reg, "a", "agent", "a", "o2")
    reg.leave("a", {"office_id": "o1"})
    join(reg, "a", "agent", "a", "o2")


def test_a_computer_that_joins_another_office_leaves_the_old_one_by_itself() -> None:
    reg = registry("c")
    join(reg, "c", "computer", "c", "o1")
    transition = join(reg, "c", "computer", "c", "o2")
    assert transition.rooms == (RoomChange("c", "o1", enters=False), RoomChange("c", "o2", enters=True))
    assert transition.notices == (left("c", office="o1"), entered("c", office="o2"))
    assert transition.left_office
    assert reg.members("o1") == ()


def test_joining_the_same_office_under_the_same_name_is_idempotent_and_silent() -> None:
    reg = registry("c")
    join(reg, "c", "computer", "c")
    again = join(reg, "c", "computer", "c")
    assert (again.rooms, again.notices, again.left_office) == ((), (), False)


def test_under_another_name_it_is_a_rename_that_frees_the_old_name() -> None:
    reg = registry("c", "d")
    join(reg, "c", "computer", "old")
    renamed = join(reg, "c", "computer", "new")
    assert renamed.rooms == ()
    assert renamed.notices == (left("old", sid="c"), entered("new", sid="c"))
    assert not renamed.left_office
    join(reg, "d", "computer", "old")


def test_an_agent_may_rename_itself_in_its_own_seat() -> None:
    reg = registry("a")
    join(reg, "a", "agent", "old")
    join(reg, "a", "agent", "new")
    assert [member.name for member in reg.members("o")] == ["new"]


def test_a_session_keeps_one_role_for_its_life() -> None:
    reg = registry("c")
    join(reg, "c", "computer", "c")
    refused(403, join, reg, "c", "agent", "c")
    reg.leave("c", {"office_id": "o"})
    refused(403, join, reg, "c", "agent", "c")
    join(reg, "c", "computer", "c")


def test_a_refused_join_changes_nothing() -> None:
    reg = registry("a", "b", "c", "d")
    join(reg, "a", "agent", "a")
    join(reg, "c", "computer", "x")
    join(reg, "d", "computer", "y", "o2")
    before = (reg.members("o"), reg.members("o2"), reg.session("d"), reg.session("b"))
    refused(4105, join, reg, "d", "computer", "x")
    refused(4101, join, reg, "b", "agent", "b")
    assert (reg.members("o"), reg.members("o2"), reg.session("d"), reg.session("b")) == before


# --- leaving


def test_leaving_frees_the_name_and_tells_the_others() -> None:
    reg = registry("c", "d")
    join(reg, "c", "computer", "x")
    transition = reg.leave("c", {"office_id": "o"})
    assert transition.rooms == (RoomChange("c", "o", enters=False),)
    assert transition.notices == (left("x", sid="c"),)
    assert transition.left_office
    join(reg, "d", "computer", "x")


def test_a_disconnect_frees_the_name_and_tells_the_others() -> None:
    reg = registry("c", "d")
    join(reg, "c", "computer", "x")
    transition = reg.disconnect("c")
    assert transition is not None
    assert transition.notices == (left("x", sid="c"),)
    assert transition.after is None
    join(reg, "d", "computer", "x")
    refused(4103, join, reg, "c", "computer", "z")


def test_a_disconnect_of_someone_in_no_office_is_silent() -> None:
    transition = registry("c").disconnect("c")
    assert transition is not None
    assert (transition.rooms, transition.notices) == ((), ())
    assert registry().disconnect("nobody") is None


def test_leaving_when_in_none_is_4103() -> None:
    refused(4103, registry("c").leave, "c", {"office_id": "o"})


def test_leaving_another_office_is_4104() -> None:
    reg = registry("c")
    join(reg, "c", "computer", "c")
    refused(4104, reg.leave, "c", {"office_id": "o2"})


# --- names


@pytest.mark.parametrize("name", ["x", "x" * 64, "my laptop", "笔记本", "👩‍💻", "می\u200cخواهم", "क्\u200dष"])
def test_names_may_be(name: str) -> None:
    check_names({"role": "computer", "name": name, "office_id": "o" * 128})


@pytest.mark.parametrize("name", ["", "x" * 65, " x", "x ", "a\nb", "a\x00", "\u2028x"])
def test_names_may_not_be(name: str) -> None:
    assert "'name'" in refused(400, check_names, {"role": "computer", "name": name, "office_id": "o"})


@pytest.mark.parametrize("field", ["agent", "req_id"])
def test_ids_of_a_request_may_be_anything_of_a_thousand_characters(field: str) -> None:
    ids = {"agent": "\n", "req_id": "", field: "三" * 1000}
    check_ids(ids)
    check_ids({"computer": "c" * 2000})
    assert repr(field) in refused(400, check_ids, {**ids, field: "三" * 1001})


@pytest.mark.parametrize("office_id", ["", "x" * 129, " o", "o\t"])
def test_office_ids_may_not_be(office_id: str) -> None:
    assert "'office_id'" in refused(400, check_names, {"role": "computer", "name": "n", "office_id": office_id})


@pytest.mark.parametrize(
    "name",
    [
        *(
            "a\u200bb",
            "a\u00adb",
            "a\u202eb",
            "\u2066a\u2069",
            "a\u200e",
            "\ufeffa",
            "a\u2060b",
            "a\u061cb",
            "a\u180eb",
        ),
        *("\u3164", "a\u115fb", "a\ufe0f", "\u2800", "a\U000e0041", "a\u2065b"),
        *("\u200da", "a\u200d", "a\u200c b", "a\u200d\u200db", "\u200c"),
    ],
    ids=ascii,
)
def test_names_that_hold_what_nobody_sees_are_refused_and_the_character_is_named(name: str) -> None:
    for field in ("name", "office_id"):
        request: Any = {"role": "computer", "name": "n", "office_id": "o", field: name}
        message = refused(400, check_names, request)
        assert f"{field!r}" in message
        assert "U+" in message and message.isascii()


# --- keys


def test_a_key_may_allow_one_role_only() -> None:
    reg = MemoryRegistry()
    reg.connect("c", Grant(roles=frozenset({"computer"})))
    refused(403, join, reg, "c", "agent", "a")
    join(reg, "c", "computer", "c")


def test_a_key_may_allow_some_offices_only() -> None:
    reg = MemoryRegistry()
    reg.connect("c", Grant(offices=("team-*", "lab")))
    refused(403, join, reg, "c", "computer", "c", "other")
    refused(403, join, reg, "c", "computer", "c", "LAB")
    join(reg, "c", "computer", "c", "team-1")
    join(reg, "c", "computer", "c", "lab")


# --- who may say what

RELAYS = [event for event in EVENTS.values() if event.kind is Kind.RELAY]
UPDATES = [
    event for event in EVENTS.values() if event.kind is Kind.ANNOUNCE and event.name.startswith("server:update_")
]


def office() -> MemoryRegistry:
    reg = registry("a", "c", "d", "x", "lone")
    join(reg, "a", "agent", "a")
    join(reg, "c", "computer", "c")
    join(reg, "d", "computer", "d")
    join(reg, "x", "computer", "elsewhere", "o2")
    return reg


@pytest.mark.parametrize("event", RELAYS, ids=lambda event: event.name)
def test_relays_are_for_agents_and_reach_their_own_office_only(event: Any) -> None:
    reg = office()
    assert reg.route("a", event, "c").sid == "c"
    refused(403, reg.route, "c", event, "d")
    refused(4103, reg.route, "lone", event, "c")
    unknown = refused(404, reg.route, "a", event, "nobody")
    elsewhere = refused(404, reg.route, "a", event, "elsewhere")
    assert unknown.replace("nobody", "elsewhere") == elsewhere
    assert unknown == "Computer 'nobody' not found"


@pytest.mark.parametrize("event", UPDATES, ids=lambda event: event.name)
def test_updates_are_for_computers_which_speak_for_themselves(event: Any) -> None:
    reg = office()
    expected = Broadcast("o", str(event.notification), {"computer": "c"}, "c", collapses=True)
    assert announce(reg.session("c"), event, {"computer": "c"}) == expected
    assert announce(reg.session("c"), event, {}) == expected
    refused(403, announce, reg.session("c"), event, {"computer": "d"})
    refused(403, announce, reg.session("a"), event, {"computer": "c"})
    refused(4103, announce, reg.session("lone"), event, {})


def test_cancelling_is_for_agents_and_the_agent_field_is_passed_on_as_sent() -> None:
    reg = office()
    event = EVENTS["server:tool_call_cancel"]
    data = {"agent": "an identifier of its own", "req_id": "1"}
    assert announce(reg.session("a"), event, data) == Broadcast("o", "notify:tool_call_cancel", data, "a")
    refused(403, announce, reg.session("c"), event, data)


def test_listing_is_for_agents_and_their_own_office() -> None:
    reg = office()
    event = EVENTS["server:list_room"]
    request: Any = {"agent": "a", "req_id": "1", "office_id": "o"}
    assert list_room(reg.session("a"), event, request) == "o"
    refused(4104, list_room, reg.session("a"), event, {**request, "office_id": "o2"})
    refused(403, list_room, reg.session("c"), event, request)
    refused(4103, list_room, reg.session("lone"), event, request)
    reply = listing(reg.members("o"), request)
    assert reply["req_id"] == "1"
    assert [(s["sid"], s["name"], s["role"], s["office_id"]) for s in reply["sessions"]] == [
        ("a", "a", "agent", "o"),
        ("c", "c", "computer", "o"),
        ("d", "d", "computer", "o"),
    ]


@pytest.mark.parametrize("event", ["", "client:dance", "connect", "disconnect", None, 7, ["a"], {}])
def test_unknown_events_are_400(event: object) -> None:
    refused(400, admit, event)


def test_notifications_from_a_client_are_403() -> None:
    for event in EVENTS.values():
        if event.kind is Kind.NOTIFICATION:
            refused(403, admit, event.name)
        else:
            assert admit(event.name) is event


def test_someone_in_no_office_is_nobodys_member() -> None:
    refused(4103, member_for, registry("c").session("c"), EVENTS["server:update_config"])


def test_counts() -> None:
    counts = office().counts()
    assert (counts.sessions, counts.agents, counts.computers, counts.offices) == (5, 1, 3, 2)


# --- coming back with a secret

SECRET = "a secret of some length"


def come_back(reg: MemoryRegistry, sid: str, role: Role, name: str, secret: str = SECRET) -> Transition:
    return reg.join(sid, {"role": role, "name": name, "office_id": "o", "resume": secret})


@pytest.mark.parametrize("role", ["agent", "computer"])
def test_the_secret_of_the_session_that_has_the_place_takes_it_over_and_nobody_hears_of_it(role: Role) -> None:
    reg = registry("old", "new")
    come_back(reg, "old", role, "n")
    transition = come_back(reg, "new", role, "n")
    assert transition.taken is not None and transition.taken.sid == "old"
    assert transition.rooms == (RoomChange("new", "o", enters=True),) and transition.notices == ()
    assert [member.sid for member in reg.members("o")] == ["new"]
    assert reg.session("old").superseded and not reg.session("new").superseded


def test_what_the_old_session_still_sends_is_served_but_it_has_no_place_any_more() -> None:
    reg = registry("a", "old", "new")
    come_back(reg, "old", "agent", "n")
    come_back(reg, "new", "agent", "n")
    join(reg, "a", "computer", "c")
    assert reg.route("old", EVENTS["client:tool_call"], "c").sid == "a"
    refused(4103, reg.leave, "old", {"office_id": "o"})
    refused(4103, come_back, reg, "old", "agent", "n")  # two sessions do not take a place from each other for ever
    ended = reg.disconnect("old")
    assert ended is not None and ended.notices == () and not ended.left_office
    assert [member.sid for member in reg.members("o") if member.role == "agent"] == ["new"]


@pytest.mark.parametrize("secret", [None, "another secret of some length"])
@pytest.mark.parametrize(("role", "code"), [("agent", 4101), ("computer", 4105)])
def test_nobody_takes_a_place_over_without_the_secret(role: Role, code: int, secret: str | None) -> None:
    reg = registry("old", "new")
    come_back(reg, "old", role, "n")
    action = join if secret is None else come_back
    refused(code, action, reg, "new", role, "n", *([secret] if secret else []))
    assert [member.sid for member in reg.members("o")] == ["old"]


def test_a_place_without_a_secret_cannot_be_taken_over() -> None:
    reg = registry("old", "new")
    join(reg, "old", "computer", "n")
    refused(4105, come_back, reg, "new", "computer", "n")


def test_a_secret_is_for_one_office_and_one_role_and_only_its_hash_is_kept() -> None:
    reg = registry("old", "new")
    come_back(reg, "old", "computer", "n")
    member = reg.members("o")[0]
    assert SECRET not in repr(member) and len(member.resume) == 64
    elsewhere = reg.join("new", {"role": "computer", "name": "n", "office_id": "other", "resume": SECRET})
    assert elsewhere.after is not None and elsewhere.after.member is not None
    assert elsewhere.after.member.resume != member.resume


def test_an_agent_that_comes_back_under_another_name_is_heard() -> None:
    reg = registry("old", "new")
    come_back(reg, "old", "agent", "a")
    transition = come_back(reg, "new", "agent", "b")
    assert transition.notices == (left("a", "agent", sid="old"), entered("b", "agent", sid="new"))


def test_a_computer_leaves_its_office_when_it_takes_its_place_over_in_another() -> None:
    reg = registry("old", "new")
    come_back(reg, "old", "computer", "n")
    join(reg, "new", "computer", "n", "elsewhere")
    transition = come_back(reg, "new", "computer", "n")
    assert transition.left_office
    assert transition.notices == (left("n", office="elsewhere", sid="new"),)
    assert transition.rooms == (RoomChange("new", "elsewhere", enters=False), RoomChange("new", "o", enters=True))


@pytest.mark.parametrize("secret", ["x" * 15, "x" * 129, ""])
def test_a_secret_has_a_length(secret: str) -> None:
    refused(400, check_names, {"role": "agent", "name": "n", "office_id": "o", "resume": secret})

from a2c_smcp.server.directory import Directory
from a2c_smcp.server.offices import Member

AGENT = Member("s1", "agent", "a", "o", "p1")
LAPTOP = Member("s2", "computer", "laptop", "o", "p1")
TOWER = Member("s3", "computer", "tower", "o", "p2")


def directory(*members: Member) -> Directory:
    made = Directory()
    for member in members:
        made.add(member)
    return made


def test_a_member_is_found_by_office_role_and_name() -> None:
    made = directory(AGENT, LAPTOP)
    assert made.seat("o") == made.holder("o", "agent", "a") == AGENT
    assert made.computer("o", "laptop") == made.holder("o", "computer", "laptop") == LAPTOP
    assert made.holder("o", "agent", "laptop") is None and made.holder("o", "computer", "a") is None
    assert made.seat("elsewhere") is None and made.computer("elsewhere", "laptop") is None


def test_the_agent_is_listed_first() -> None:
    assert list(directory(LAPTOP, AGENT, TOWER)) == [AGENT, LAPTOP, TOWER]
    assert directory(LAPTOP, AGENT).members("o") == (AGENT, LAPTOP)


def test_a_process_holds_members_of_an_office_until_the_last_of_them_has_gone() -> None:
    made = directory(AGENT, LAPTOP, TOWER)
    assert set(made.processes("o")) == {"p1", "p2"}
    made.remove(LAPTOP)
    assert set(made.processes("o")) == {"p1", "p2"}
    made.remove(AGENT)
    assert set(made.processes("o")) == {"p2"}
    assert set(made.processes("elsewhere")) == set()


def test_an_office_without_members_is_forgotten() -> None:
    made = directory(AGENT)
    made.remove(AGENT)
    assert len(made) == 0 and list(made) == [] and made.members("o") == ()


def test_members_are_counted_as_they_come_and_go() -> None:
    made = Directory()
    for change, member in [
        (made.add, LAPTOP),
        (made.add, AGENT),
        (made.add, TOWER),
        (made.remove, AGENT),
        (made.remove, LAPTOP),
    ]:
        change(member)
        roles = [each.role for each in made]
        assert (made.count("agent"), made.count("computer")) == (roles.count("agent"), roles.count("computer"))


def test_a_name_is_held_by_who_has_one_that_looks_like_it_and_routed_to_by_itself_only() -> None:
    made = directory(AGENT, LAPTOP)
    assert made.holder("o", "computer", "Laptop") == made.holder("o", "computer", "l\u0430ptop") == LAPTOP
    assert made.holder("o", "agent", "A") == AGENT
    assert made.computer("o", "Laptop") is None
    made.remove(LAPTOP)
    assert made.holder("o", "computer", "Laptop") is None


def test_look_alikes_that_an_older_process_let_in_are_kept_apart() -> None:
    capital = Member("s4", "computer", "Laptop", "o", "p2")
    made = directory(LAPTOP, capital)
    assert made.holder("o", "computer", "Laptop") == made.computer("o", "Laptop") == capital
    assert made.holder("o", "computer", "LAPTOP") == LAPTOP
    made.remove(LAPTOP)
    assert made.holder("o", "computer", "laptop") == capital
    made.remove(capital)
    assert len(made) == 0

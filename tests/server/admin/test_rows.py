"""The rows of several processes become one answer."""

from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.server.admin.rows import (
    KeyRow,
    MemberRow,
    MembersPage,
    OfficeRow,
    OfficesPage,
    member_order,
    merge_keys,
    merge_members,
    merge_offices,
)


def member(office: str, name: str, process: str, session: str) -> MemberRow:
    row: dict[str, Any] = {"office": office, "role": "computer", "name": name, "process": process, "session": session}
    return cast(MemberRow, row)


def page_of(rows: list[MemberRow], limit: int, after: list[str] | None) -> MembersPage:
    """What one process answers."""
    left = [row for row in sorted(rows, key=member_order) if after is None or member_order(row) > after]
    more = len(left) > limit
    return {"members": left[:limit], "next": member_order(left[limit - 1]) if more else None}


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("abcd"), st.integers(0, 3)), max_size=30))
def test_page_after_page_shows_every_member_of_every_process_once_and_in_order(places: list[Any]) -> None:
    rows = [member(office, name, f"p{process}", str(at)) for at, (office, name, process) in enumerate(places)]
    processes = [[row for row in rows if row["process"] == f"p{number}"] for number in range(4)]
    seen: list[MemberRow] = []
    after: list[str] | None = None
    while True:
        page = merge_members([page_of(each, 3, after) for each in processes], 3)
        assert len(page["members"]) <= 3
        seen += page["members"]
        if (after := page["next"]) is None:
            break
    assert seen == sorted(rows, key=member_order)


def office(name: str, agent: str = "", **counts: Any) -> OfficeRow:
    row: dict[str, Any] = {
        "office": name,
        "agent": agent,
        "computers": 0,
        "calls": 0,
        "failed": 0,
        "per_minute": 0.0,
        **counts,
    }
    return cast(OfficeRow, row)


def test_an_office_that_is_spread_over_processes_is_one_row() -> None:
    pages: list[OfficesPage] = [
        {"offices": [office("a", computers=2), office("b")], "next": "b"},
        {"offices": [office("a", "smith", calls=3, per_minute=1.5)], "next": None},
    ]
    merged = merge_offices(pages, 2)
    assert merged["offices"][0] == office("a", "smith", computers=2, calls=3, per_minute=1.5)
    assert merged["next"] == "b"
    assert pages[0]["offices"][0] == office("a", computers=2)


def key(fingerprint: str, state: str, sessions: int) -> KeyRow:
    row: dict[str, Any] = {
        "name": "n",
        "fingerprint": fingerprint,
        "state": state,
        "sessions": sessions,
        "processes": 1,
    }
    return cast(KeyRow, row)


def test_a_key_is_revoked_only_if_no_process_accepts_it() -> None:
    merged = merge_keys(
        [[key("1", "revoked", 0), key("2", "revoked", 0)], [key("1", "valid", 4), key("2", "revoked", 1)]]
    )
    assert [(row["fingerprint"], row["state"], row["sessions"], row["processes"]) for row in merged] == [
        ("1", "valid", 4, 2),
        ("2", "revoked", 1, 2),
    ]

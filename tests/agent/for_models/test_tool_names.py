"""Names of tools: short, readable, and never two alike."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.agent.for_models.tool_names import MAX_TOOL_NAME, OWN_TOOLS, computer_label, is_label, tool_names

_ALLOWED = re.compile(r"[A-Za-z0-9_-]{1,45}")
#: Gemini's API wants a letter or an underscore first.
_ALLOWED_EVERYWHERE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,44}")

#: Any unicode, long, and many that become alike when characters are replaced.
names = st.one_of(
    st.text(min_size=1, max_size=200),
    st.text(alphabet="ab3_-.é 文", min_size=1, max_size=5),
    st.text(alphabet="ab_", min_size=40, max_size=60),
    st.sampled_from(sorted(OWN_TOOLS)),
)


@given(st.lists(st.tuples(names, names), max_size=40))
def test_names_are_short_and_allowed_and_never_two_alike(tools: list[tuple[str, str]]) -> None:
    found = tool_names(tools)
    assert set(found) == set(tools)
    assert len(set(found.values())) == len(found)
    assert all(_ALLOWED_EVERYWHERE.fullmatch(name) for name in found.values())
    assert not OWN_TOOLS & set(found.values())


@given(st.lists(names, max_size=40))
def test_plain_names_are_as_good(tools: list[str]) -> None:
    found = tool_names((("laptop", tool) for tool in tools), plain=True)
    assert len(set(found.values())) == len(set(tools))
    assert all(_ALLOWED.fullmatch(name) for name in found.values())
    assert not OWN_TOOLS & set(found.values())


@given(st.lists(st.tuples(names, names), min_size=1, max_size=20))
def test_a_name_does_not_depend_on_who_else_is_there(tools: list[tuple[str, str]]) -> None:
    together = tool_names(tools)
    assert all(tool_names([tool]) == {tool: together[tool]} for tool in tools)


@pytest.mark.parametrize(
    ("computer", "tool", "name"),
    [
        ("laptop", "read_file", "laptop__read_file"),
        ("my-pc", "browser-open", "my-pc__browser-open"),
        ("a_b", "_c", "a_b___c"),
    ],
)
def test_what_is_allowed_stays_as_it_is(computer: str, tool: str, name: str) -> None:
    assert tool_names([(computer, tool)]) == {(computer, tool): name}


@pytest.mark.parametrize(
    ("computer", "tool", "name"),
    [
        ("laptop", "files.read", r"laptop__files_read-[0-9a-f]{6}"),
        ("Zoë's Mac", "read", r"Zo_s_Mac-[0-9a-f]{6}__read"),
        ("书房的电脑", "截图", r"pc-[0-9a-f]{6}__tool-[0-9a-f]{6}"),
        ("12", "34", r"pc-[0-9a-f]{6}__34"),
        ("1 2", "34", r"pc-[0-9a-f]{6}__34"),
        ("3d-printer", "print", r"pc-3d-printer-[0-9a-f]{6}__print"),
        ("-pc", "print", r"pc--pc-[0-9a-f]{6}__print"),
        ("laptop", "a" * 200, r"laptop__a{30}-[0-9a-f]{6}"),
        ("a" * 64, "read", r"a{14}-[0-9a-f]{6}__read"),
    ],
)
def test_what_had_to_change_is_told_by_a_hash(computer: str, tool: str, name: str) -> None:
    [found] = tool_names([(computer, tool)]).values()
    assert re.fullmatch(name, found)
    assert len(found) <= MAX_TOOL_NAME


def test_the_two_parts_do_not_run_into_each_other() -> None:
    tools = [("a__b", "c"), ("a", "b__c"), ("a_", "b"), ("a", "_b"), ("a b", "c"), ("a_b", "c")]
    assert len(set(tool_names(tools).values())) == len(tools)


def test_a_name_of_ones_own_choice_stands_for_a_computer() -> None:
    tools = [("书房的电脑", "read"), ("study", "read")]
    found = tool_names(tools, {"书房的电脑": "study"})
    assert found[tools[0]] == "study__read"
    # Whoever is called so has another name, also while the one with the short name is away.
    assert found[tools[1]] == tool_names(tools[1:], {"书房的电脑": "study"})[tools[1]] != "study__read"


@pytest.mark.parametrize("computer", ["zoë", "书房的电脑", "a" * 30])
def test_a_computer_that_is_called_like_the_label_of_another_does_not_get_its_calls(computer: str) -> None:
    mimic = computer_label(computer)
    alone = tool_names([(computer, "read")])
    together = tool_names([(mimic, "read"), (computer, "read")])
    assert together[computer, "read"] == alone[computer, "read"]
    assert tool_names([(mimic, "read")])[mimic, "read"] == together[mimic, "read"] != alone[computer, "read"]


def test_of_two_tools_with_one_name_none_has_it() -> None:
    [name] = tool_names([("pc", "a b")]).values()
    mimic = ("pc", name.removeprefix("pc__"))
    assert tool_names([mimic]) == {mimic: name}
    found = tool_names([mimic, ("pc", "a b")])
    assert name not in found.values() and len(set(found.values())) == 2
    assert found == tool_names([("pc", "a b"), mimic])


def test_names_are_the_same_in_every_process() -> None:
    """A hash that Python salts would give others after every restart."""
    assert computer_label("书房的电脑") == "pc-55f055"


@pytest.mark.parametrize("text", ["", "a b", "a__b", "a_", "é", "12", "3d", "-a", "a" * 25])
def test_what_cannot_stand_for_a_computer(text: str) -> None:
    assert not is_label(text)

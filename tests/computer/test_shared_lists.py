"""Pages of what servers share: each item once, within bounds, whatever the items are."""

from typing import Any

import pytest

from a2c_smcp.computer.mcp_clients.item_lists import ItemList
from a2c_smcp.computer.resources.routing import Readable, find_target
from a2c_smcp.computer.resources.shared_lists import MAX_LISTED, MAX_PAGE, SharedItems, page_of
from a2c_smcp.computer.watching.announcements import Listed, Watch
from a2c_smcp.errors import SMCPError

ROOM = 10**6


async def items(*uris: str, templates: tuple[str, ...] = (), prompts: tuple[str, ...] = (), **more: Any) -> SharedItems:
    lists = [ItemList("resources"), ItemList("templates"), ItemList("prompts")]
    await lists[0].add([{"uri": uri, "name": "n", **more} for uri in uris])
    await lists[1].add([{"uriTemplate": text, "name": "n"} for text in templates])
    await lists[2].add([{"name": name} for name in prompts])
    return SharedItems().with_resources(lists[0]).with_templates(lists[1]).with_prompts(lists[2])


def walk(shared: dict[str, SharedItems], kinds: tuple[str, ...], room: int = ROOM) -> list[list[tuple[str, str]]]:
    """The items of each page, as server and URI or name."""
    pages, cursor = [], None
    while True:
        page = page_of(shared, kinds, cursor, room)
        pages.append(
            [
                (it["mcp_server"], it.get("uri") or it.get("uriTemplate") or it["name"])
                for kind in kinds
                for it in page.items[kind]
            ]
        )
        if (cursor := page.next_cursor) is None:
            return pages


async def test_every_item_comes_once_in_order_over_all_pages() -> None:
    first = await items(*(f"a:{n}" for n in range(MAX_PAGE + 7)), templates=("a:{x}",))
    second = await items("b:1", prompts=("p", "q"))
    shared = {"x": first, "empty": SharedItems(), "y": second}
    pages = walk(shared, ("resources", "templates"))
    assert [len(page) for page in pages] == [MAX_PAGE, 9]
    assert [it for page in pages for it in page if it[1] != "a:{x}"] == [
        *(("x", f"a:{n}") for n in range(MAX_PAGE + 7)),
        ("y", "b:1"),
    ]
    assert walk(shared, ("prompts",)) == [[("y", "p"), ("y", "q")]]
    assert walk({}, ("prompts",)) == [[]]


async def test_a_long_list_is_cut_and_the_others_are_whole() -> None:
    shared = {
        "long": await items(*(f"a:{n}" for n in range(12_000))),
        "short": await items(*(f"b:{n}" for n in range(50)), templates=("b:{x}",)),
        "other": await items(*(f"c:{n}" for n in range(12_000))),
    }
    found = [server for page in walk(shared, ("resources", "templates")) for server, _ in page]
    assert len(found) == MAX_LISTED
    assert found.count("short") == 51
    assert abs(found.count("long") - found.count("other")) <= 1
    assert shared["other"].lists("c:11999")


async def test_a_page_fits_its_room_and_has_one_item_at_least() -> None:
    shared = {"x": await items("a:1", "a:2", "a:3", "a:4", description="x" * 1000)}
    assert [len(page) for page in walk(shared, ("resources",), room=2500)] == [2, 2]
    assert [len(page) for page in walk(shared, ("resources",), room=10)] == [1, 1, 1, 1]


async def test_items_of_many_values_do_not_fill_an_agents_bounds() -> None:
    shared = {"x": await items(*(f"a:{n}" for n in range(100)), _meta={"w": [0] * 800})}
    assert len(walk(shared, ("resources",))) >= 4


async def test_a_server_that_has_gone_ends_the_walk_and_a_forged_cursor_does_not_begin_one() -> None:
    shared = {"x": await items(*(f"a:{n}" for n in range(MAX_PAGE + 1)))}
    cursor = page_of(shared, ("resources",), None, ROOM).next_cursor
    assert cursor is not None
    for wrong, there in ((cursor, {}), ("W10=", shared), ("bm90aGluZw==", shared), (cursor[:-4], shared)):
        with pytest.raises(SMCPError) as refused:
            page_of(there, ("resources",), wrong, ROOM)
        assert refused.value.code == 400


async def test_only_what_agents_see_makes_a_difference() -> None:
    one, other = await items("a:1", templates=("a:{x}",)), await items("a:1", templates=("a:{x}",))
    assert one == other
    assert one != await items("a:1", templates=("a:{y}",))
    assert one != await items("a:1", templates=("a:{x}",), title="t")


# --- who is asked


async def test_a_list_goes_before_a_link_and_a_link_before_a_template() -> None:
    watch, _ = Watch().relist("shy", Listed(["note:listed", "secret:x"]))
    shared = {
        "wide": await items(templates=("note:{+x}",)),
        "narrow": await items(templates=("note:deep/{x}",)),
        "lists": await items("note:mine", "window://w/1"),
    }
    order = ["wide", "narrow", "lists", "shy"]

    def asked(uri: str, *linked: str) -> str:
        return find_target(uri, Readable(watch, shared, linked), order).server

    assert asked("note:mine", "shy") == "lists"
    assert asked("note:any", "shy") == "shy"
    assert asked("note:any") == "wide"
    assert asked("note:deep/1") == "narrow"
    assert asked("note:listed") == "wide"  # its own list does not share it, but the other server may have it, too
    assert asked("window://w/1") == "lists"
    assert asked("secret:x", "shy") == "shy"
    for uri, code in (("secret:x", 403), ("secret:y", 4204), ("window://w/2", 404), ("dpe://h/1", 4201)):
        with pytest.raises(SMCPError) as refused:
            asked(uri)
        assert refused.value.code == code


async def test_templates_over_the_bound_are_listed_and_fit_nothing() -> None:
    shared = await items(templates=tuple(f"t{n}:" + "x" * 900 for n in range(30)))
    assert (len(shared.templates), len(shared.patterns)) == (30, 22)

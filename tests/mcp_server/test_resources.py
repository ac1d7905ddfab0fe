"""Lists of several rooms as pages of one."""

from collections.abc import Mapping, Sequence

import anyio
import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.mcp_server.resources import BadCursorError, Completions, Contents, Listing, ResourceRoom, list_page


class Room:
    """Resources `room/0`, `room/1`…, at most so many at a time."""

    def __init__(self, name: str, count: int, most: int) -> None:
        self._uris = [f"{name}/{number}" for number in range(count)]
        self._most = most

    def owns(self, uri: str) -> bool:
        return uri in self._uris

    def topic(self, uri: str) -> str:
        return uri

    async def listing(self, offset: int, limit: int) -> Listing:
        found = self._uris[offset : offset + min(limit, self._most)]
        return Listing([types.Resource(uri=uri, name=uri) for uri in found], offset + len(found) < len(self._uris))

    async def read(self, uri: str) -> Sequence[Contents]:
        return []

    async def templates(self) -> Sequence[types.ResourceTemplate]:
        return []

    async def complete(self, template: str, name: str, typed: str, known: Mapping[str, str]) -> Completions:
        return Completions()


async def pages(rooms: Sequence[ResourceRoom], size: int) -> list[list[str]]:
    found, cursor = [], None
    while True:
        page, cursor = await list_page(rooms, cursor, size)
        found.append([resource.uri for resource in page])
        if cursor is None:
            return found


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 5)), max_size=4), st.integers(1, 7))
def test_pages_together_are_every_resource_once_in_order(rooms: list[tuple[int, int]], size: int) -> None:
    made = [Room(f"r{number}", count, most) for number, (count, most) in enumerate(rooms)]
    found = anyio.run(pages, made, size)
    wanted = [f"r{number}/{each}" for number, (count, _) in enumerate(rooms) for each in range(count)]
    assert [uri for page in found for uri in page] == wanted
    assert all(len(page) == size for page in found[:-1]) and len(found[-1]) <= size


@pytest.mark.parametrize("cursor", ["", "x", "1", "-1.0", "0.x", "7.0", "0.1.2", "٣.٤", "0." + "9" * 40])
async def test_a_cursor_of_somebody_else_is_refused(cursor: str) -> None:
    with pytest.raises(BadCursorError):
        await list_page([Room("a", 3, 3)], cursor, 2)


async def test_a_cursor_beyond_what_is_left_ends_the_list() -> None:
    assert await list_page([Room("a", 3, 3)], "0.99", 2) == ([], None)

"""Contents in parts: every byte once, no character cut, no part of two readings."""

import base64
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.resources.links import LINK_SECONDS, LinkedResources
from a2c_smcp.computer.resources.parts import ResourceBody, read_range
from a2c_smcp.computer.socketio.kept_bodies import KeptBodies
from a2c_smcp.errors import BadRequestError, InternalError
from tests.computer.fakes.processes import eventually

ANN = Asker("ann", office="office")


def text(value: str) -> dict[str, Any]:
    return {"uri": "a:b", "text": value, "_meta": {"k": 1}}


def blob(value: bytes) -> dict[str, Any]:
    return {"uri": "a:c", "blob": base64.b64encode(value).decode()}


def size_of(content: dict[str, Any]) -> int:
    return len(content["text"].encode()) if "text" in content else len(base64.b64decode(content["blob"]))


def assembled(body: ResourceBody, length: int) -> list[Any]:
    """All contents, from as many parts as it takes."""
    whole: list[Any] = []
    offset = 0
    while True:
        part = body.part(offset, length)
        for place, content in enumerate(part.contents, part.first):
            value = content["text"] if "text" in content else base64.b64decode(content["blob"])
            if place < len(whole):
                whole[place] += value
            else:
                assert place == len(whole)
                whole.append(value)
        got = sum(map(size_of, part.contents))
        assert length - 3 <= got or offset + got == body.size
        offset += got
        if offset == body.size:
            return whole


@given(st.lists(st.one_of(st.text(max_size=12), st.binary(max_size=12)), max_size=4), st.integers(4, 40))
@settings(deadline=None, derandomize=True)
def test_parts_give_the_whole(bodies: list[str | bytes], length: int) -> None:
    bodies = [each if isinstance(each, bytes) else each.encode("utf-8", "replace").decode() for each in bodies]
    body = ResourceBody([text(each) if isinstance(each, str) else blob(each) for each in bodies])
    found = assembled(body, length)
    assert found == bodies[: len(found)]
    assert not any(bodies[len(found) :])  # nothing is missing but what is empty


def test_a_part_has_all_but_the_body_of_its_content() -> None:
    body = ResourceBody([text("abc"), blob(b"\x00\x01\x02")], {"m": 1})
    assert (body.size, body.meta) == (6, {"m": 1})
    part = body.part(2, 2)
    assert part.contents == [text("c"), blob(b"\x00")]
    assert (part.first, body.part(4, 100).first) == (0, 1)
    assert body.part(6, 1).contents == []


def test_a_character_is_not_cut_and_always_comes() -> None:
    body = ResourceBody([text("你好")])
    assert body.part(0, 5).contents == [text("你")]
    assert body.part(3, 1).contents == [text("好")]
    with pytest.raises(BadRequestError):
        body.part(1, 5)
    with pytest.raises(BadRequestError):
        body.part(7, 5)


def test_a_blob_that_is_not_base64_cannot_be_cut() -> None:
    with pytest.raises(InternalError):
        ResourceBody([{"uri": "a:b", "blob": "not base64!"}])


@pytest.mark.parametrize("wanted", [[], [1], [0, 0], [-1, 5], [0, 1, 2]])
def test_a_range_is_an_offset_and_a_length(wanted: list[int]) -> None:
    with pytest.raises(BadRequestError):
        read_range(wanted)
    assert read_range([0, 1]) == (0, 1)


async def test_parts_are_of_one_reading_and_of_one_agent() -> None:
    kept = KeptBodies(heaviest=10, seconds=20)
    first, second = ResourceBody([text("12345")]), ResourceBody([text("abcde")])
    kept.put(ANN, "u", first, is_read=False)
    assert kept.get(ANN, "u", begins=True) is first  # the reading that was too large for one message
    assert kept.get(ANN, "u", begins=True) is None  # a new series is a new reading
    assert kept.get(ANN, "u", begins=False) is first
    assert kept.get(Asker("bob", office="office"), "u", begins=False) is None
    kept.put(ANN, "v", second, is_read=True)
    kept.put(ANN, "w", ResourceBody([text("1")]), is_read=True)
    assert kept.get(ANN, "u", begins=False) is None  # over ten bytes, the oldest goes
    assert kept.get(ANN, "v", begins=False) is second
    kept.clear()
    assert kept.get(ANN, "v", begins=False) is None


async def test_only_so_many_contents_are_kept_however_short_they_are() -> None:
    kept = KeptBodies(heaviest=10**6)
    for number in range(300):
        kept.put(ANN, str(number), ResourceBody([text("")]), is_read=True)
    assert sum(kept.get(ANN, str(number), begins=False) is not None for number in range(300)) == 256
    kept.clear()


async def test_contents_are_forgotten_by_themselves() -> None:
    kept = KeptBodies(heaviest=10, seconds=0.6)
    kept.put(ANN, "u", ResourceBody([text("1")]), is_read=True)
    await eventually(lambda: kept.get(ANN, "u", begins=False) is None, 20)
    assert kept._timer is None


def test_a_link_is_good_for_its_agent_for_ten_minutes() -> None:
    links = LinkedResources()
    links.remember("s", ANN, ["a:b"], now=100)
    assert links.servers(ANN, "a:b", now=100 + LINK_SECONDS) == ["s"]
    assert links.servers(Asker("bob", office="office"), "a:b", now=101) == []
    assert links.servers(Asker("ann", office="other"), "a:b", now=101) == []
    assert links.servers(None, "a:b", now=101) == []
    assert links.servers(ANN, "a:b", now=101 + LINK_SECONDS) == []


def test_one_server_cannot_fill_the_memory_nor_push_out_the_links_of_another() -> None:
    links = LinkedResources()
    links.remember("honest", ANN, ["a:b"], now=0)
    links.remember("s", ANN, (f"a:{number}" for number in range(5000)), now=1)
    links.remember("fat", ANN, ("a:" + str(number) * 100_000 for number in range(100)), now=1)
    assert links.servers(ANN, "a:b", now=2) == ["honest"]
    assert links.servers(ANN, "a:4999", now=2) == ["s"]
    assert links.servers(ANN, "a:0", now=2) == []
    assert all(len(each) <= 1000 and each.weight <= 2**20 for each in links._links.values())
